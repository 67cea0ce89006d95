//! `POST /v1/responses`

use super::{ANSWER_TOKENS, PROMPT_TOKENS, ToolUse, event, words};
use crate::http::request::Request;
use crate::upstream::performed::{Performed, WorldChange, refused};
use crate::upstream::reply::UpstreamReply;
use serde_json::{Value, json};

pub fn answer(request: &Request, number: u64) -> Performed {
    let body = request.json();
    if body["input"].is_null() {
        return refused(400, "you must provide an input parameter");
    }
    let id = format!("resp_{number:012}");
    let call = ToolUse::wanted(&body, &body["input"]);
    let streamed = body["stream"] == true;
    let item = item(number, call.as_ref(), "completed");
    let response = |status: &str, output: Value, usage: Value| {
        json!({"id": id, "object": "response", "created_at": 1, "status": status, "model": body["model"],
            "output": output, "usage": usage, "error": null, "incomplete_details": null, "instructions": null,
            "metadata": {}, "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [],
            "top_p": 1.0})
    };
    let usage = json!({"input_tokens": PROMPT_TOKENS, "output_tokens": ANSWER_TOKENS,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": PROMPT_TOKENS + ANSWER_TOKENS});
    let whole = response("completed", json!([item]), usage);
    let reply = if streamed {
        let begun = response("in_progress", json!([]), Value::Null);
        let mut all = vec![
            json!({"type": "response.created", "response": begun}),
            json!({"type": "response.in_progress", "response": begun}),
        ];
        all.extend(parts(number, call.as_ref(), &item));
        all.push(json!({"type": "response.completed", "response": whole}));
        let numbered = all.iter_mut().enumerate().map(|(sequence, one)| {
            one["sequence_number"] = sequence.into();
            event(one["type"].as_str(), one)
        });
        let error = json!({"type": "error", "code": "server_error", "message": "the model is overloaded",
            "param": null, "sequence_number": 99});
        UpstreamReply::events(numbered.collect(), event(Some("error"), &error))
    } else {
        UpstreamReply::json(200, &whole)
    };
    Performed { change: WorldChange::Generation { api: "responses", id, streamed }, reply }
}

fn item(number: u64, call: Option<&ToolUse>, status: &str) -> Value {
    match call {
        None => {
            let text = if status == "completed" { words(number).concat() } else { String::new() };
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            let content = if status == "completed" { content } else { json!([]) };
            let id = format!("msg_{number:012}");
            json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": content})
        }
        Some(call) => {
            let arguments = if status == "completed" { call.arguments.to_string() } else { String::new() };
            json!({"id": format!("fc_{number:012}"), "type": "function_call", "status": status,
                "call_id": format!("call_{number:012}"), "name": call.tool, "arguments": arguments})
        }
    }
}

/// From the item's beginning to its end.
fn parts(number: u64, call: Option<&ToolUse>, done: &Value) -> Vec<Value> {
    let begun = item(number, call, "in_progress");
    let mut parts = vec![json!({"type": "response.output_item.added", "output_index": 0, "item": begun})];
    let about = |kind: &str| json!({"type": kind, "item_id": done["id"], "output_index": 0});
    let with = |kind: &str, name: &str, value: Value| {
        let mut one = about(kind);
        one[name] = value;
        one
    };
    match call {
        None => {
            let in_part = |mut one: Value| {
                one["content_index"] = 0.into();
                one
            };
            let empty = json!({"type": "output_text", "text": "", "annotations": []});
            parts.push(in_part(with("response.content_part.added", "part", empty)));
            for word in words(number) {
                let mut delta = in_part(with("response.output_text.delta", "delta", word.into()));
                delta["logprobs"] = json!([]);
                parts.push(delta);
            }
            let text = words(number).concat();
            let mut ended = in_part(with("response.output_text.done", "text", text.into()));
            ended["logprobs"] = json!([]);
            parts.push(ended);
            parts.push(in_part(with("response.content_part.done", "part", done["content"][0].clone())));
        }
        Some(call) => {
            for piece in call.pieces() {
                parts.push(with("response.function_call_arguments.delta", "delta", piece.into()));
            }
            let mut ended =
                with("response.function_call_arguments.done", "arguments", call.arguments.to_string().into());
            ended["name"] = call.tool.as_str().into();
            parts.push(ended);
        }
    }
    parts.push(json!({"type": "response.output_item.done", "output_index": 0, "item": done}));
    parts
}
