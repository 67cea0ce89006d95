//! `POST /v1/messages`

use super::{ANSWER_TOKENS, PROMPT_TOKENS, ToolUse, event, words};
use crate::http::request::Request;
use crate::upstream::performed::{Performed, WorldChange, refused};
use crate::upstream::reply::UpstreamReply;
use serde_json::{Value, json};

pub fn answer(request: &Request, number: u64) -> Performed {
    let body = request.json();
    if !body["messages"].is_array() || body["max_tokens"].as_u64().is_none() {
        return refused(400, "messages and max_tokens: field required");
    }
    let id = format!("msg_{number:012}");
    let call = ToolUse::wanted(&body, &body["messages"]);
    let streamed = body["stream"] == true;
    let reason = if call.is_some() { "tool_use" } else { "end_turn" };
    let message = |content: Value, reason: Value, tokens: u64| {
        json!({"id": id, "type": "message", "role": "assistant", "model": body["model"], "content": content,
            "stop_reason": reason, "stop_sequence": null,
            "usage": {"input_tokens": PROMPT_TOKENS, "output_tokens": tokens}})
    };
    let reply = if streamed {
        let mut all = vec![json!({"type": "message_start", "message": message(json!([]), Value::Null, 1)})];
        all.extend(block(number, call.as_ref()));
        all.push(json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": ANSWER_TOKENS}}));
        all.push(json!({"type": "message_stop"}));
        let events = all.iter().map(|one| event(one["type"].as_str(), one)).collect();
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        UpstreamReply::events(events, event(Some("error"), &error))
    } else {
        let content = match &call {
            None => json!([{"type": "text", "text": words(number).concat()}]),
            Some(call) => json!([{"type": "tool_use", "id": format!("toolu_{number:012}"), "name": call.tool,
                "input": call.arguments}]),
        };
        UpstreamReply::json(200, &message(content, reason.into(), ANSWER_TOKENS))
    };
    let reply = reply.with("request-id", &format!("req_{number:012}"));
    Performed { change: WorldChange::Generation { api: "messages", id, streamed }, reply }
}

/// The one block of content, from its beginning to its end, with a ping in between.
fn block(number: u64, call: Option<&ToolUse>) -> Vec<Value> {
    let begun = match call {
        None => json!({"type": "text", "text": ""}),
        Some(call) => {
            json!({"type": "tool_use", "id": format!("toolu_{number:012}"), "name": call.tool, "input": {}})
        }
    };
    let deltas: Vec<Value> = match call {
        None => words(number).into_iter().map(|word| json!({"type": "text_delta", "text": word})).collect(),
        Some(call) => {
            let pieces = call.pieces().into_iter();
            pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect()
        }
    };
    let mut all = vec![json!({"type": "content_block_start", "index": 0, "content_block": begun})];
    all.push(json!({"type": "ping"}));
    let deltas = deltas.into_iter();
    all.extend(deltas.map(|delta| json!({"type": "content_block_delta", "index": 0, "delta": delta})));
    all.push(json!({"type": "content_block_stop", "index": 0}));
    all
}
