//! `POST /v1/chat/completions`

use super::{ANSWER_TOKENS, PROMPT_TOKENS, ToolUse, event, words};
use crate::http::request::Request;
use crate::upstream::performed::{Performed, WorldChange, refused};
use crate::upstream::reply::UpstreamReply;
use serde_json::{Value, json};

pub fn answer(request: &Request, number: u64) -> Performed {
    let body = request.json();
    if !body["messages"].is_array() {
        return refused(400, "you must provide a messages parameter");
    }
    let id = format!("chatcmpl-{number:012}");
    let call = ToolUse::wanted(&body, &body["messages"]);
    let streamed = body["stream"] == true;
    let usage = json!({"prompt_tokens": PROMPT_TOKENS, "completion_tokens": ANSWER_TOKENS,
        "total_tokens": PROMPT_TOKENS + ANSWER_TOKENS});
    let envelope = |object: &str| json!({"id": id, "object": object, "created": 1, "model": body["model"]});
    let reply = if streamed {
        let include_usage = body["stream_options"]["include_usage"] == true;
        let mut events = deltas(number, call.as_ref(), &envelope("chat.completion.chunk"));
        if include_usage {
            let mut last = envelope("chat.completion.chunk");
            (last["choices"], last["usage"]) = (json!([]), usage);
            events.push(event(None, &last));
        }
        events.push("data: [DONE]\n\n".to_owned());
        let error = json!({"error": {"message": "the model is overloaded", "type": "server_error"}});
        UpstreamReply::events(events, event(None, &error))
    } else {
        let mut whole = envelope("chat.completion");
        whole["choices"] = json!([{"index": 0, "message": message(number, call.as_ref()),
            "finish_reason": finish(call.as_ref()), "logprobs": null}]);
        whole["usage"] = usage;
        UpstreamReply::json(200, &whole)
    };
    Performed { change: WorldChange::Generation { api: "chat.completions", id, streamed }, reply }
}

fn finish(call: Option<&ToolUse>) -> &'static str {
    if call.is_some() { "tool_calls" } else { "stop" }
}

fn message(number: u64, call: Option<&ToolUse>) -> Value {
    match call {
        None => json!({"role": "assistant", "content": words(number).concat(), "refusal": null}),
        Some(call) => {
            let function = json!({"name": call.tool, "arguments": call.arguments.to_string()});
            let made = json!({"id": format!("call_{number:012}"), "type": "function", "function": function});
            json!({"role": "assistant", "content": null, "tool_calls": [made]})
        }
    }
}

fn deltas(number: u64, call: Option<&ToolUse>, envelope: &Value) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let mut chunk = envelope.clone();
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        event(None, &chunk)
    };
    let mut events = Vec::new();
    match call {
        None => {
            events.push(chunk(json!({"role": "assistant", "content": ""}), Value::Null));
            events.extend(words(number).iter().map(|word| chunk(json!({"content": word}), Value::Null)));
        }
        Some(call) => {
            let begun = json!({"index": 0, "id": format!("call_{number:012}"), "type": "function",
                "function": {"name": call.tool, "arguments": ""}});
            events.push(chunk(json!({"role": "assistant", "tool_calls": [begun]}), Value::Null));
            events.extend(call.pieces().iter().map(|piece| {
                let more = json!({"index": 0, "function": {"arguments": piece}});
                chunk(json!({"tool_calls": [more]}), Value::Null)
            }));
        }
    }
    events.push(chunk(json!({}), finish(call).into()));
    events
}
