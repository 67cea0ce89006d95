//! A model API of our own: it answers as the real ones do, does on the way what its model is called, and counts.

use super::client::RawClient;
use super::server::{FakeServer, ServedExchange};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Clone)]
pub struct FakeModel {
    server: FakeServer,
    /// Answers that nobody took to their end.
    abandoned: Arc<AtomicUsize>,
}

impl Deref for FakeModel {
    type Target = FakeServer;

    fn deref(&self) -> &FakeServer {
        &self.server
    }
}

impl FakeModel {
    pub fn start() -> FakeModel {
        let abandoned: Arc<AtomicUsize> = Arc::default();
        let counts = Arc::clone(&abandoned);
        let server = FakeServer::start(move |exchange| {
            let answered = answer(exchange);
            if answered.is_none() {
                counts.fetch_add(1, Ordering::SeqCst);
            }
            answered
        });
        FakeModel { server, abandoned }
    }

    /// How often it was asked: each time is paid for.
    pub fn asked(&self) -> usize {
        self.requests().len()
    }

    /// How many answers were cut off by the client.
    pub fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::SeqCst)
    }
}

/// `None` if the client went away in the middle.
fn answer(exchange: &mut ServedExchange<'_>) -> Option<()> {
    let (number, body) = (exchange.number, exchange.request.json());
    let how = body["model"].as_str()?.to_owned();
    // The first time only, where its name says so.
    let fails = !how.contains("once") || number == 1;
    for status in [400, 401, 429, 500, 503, 529] {
        if how.contains(&status.to_string()) && fails {
            let mut said = format!("no, {number}");
            if how.contains("echo") {
                said.push_str(exchange.request.header("authorization").unwrap_or_default());
                said.push_str(&body["mcp_servers"].to_string());
            }
            let error = json!({"error": {"type": "some_error", "message": said}});
            return exchange.reply(
                status,
                "retry-after-ms: 5\r\nx-request-id: req_e\r\n",
                &error.to_string(),
            );
        }
    }
    if how.contains("silent") && fails {
        // Never so much as a head.
        return exchange.hang_up();
    }
    let api = FakeModelApi::of(&exchange.request.head.path);
    let text = match how.strip_prefix("long-") {
        Some(length) => "x".repeat(length.parse().ok()?),
        None => format!("answer {number}"),
    };
    if body["stream"] != true {
        if how.contains("waits") || how.contains("drips") {
            exchange.wait_for_release();
        }
        if how.contains("cut") && fails {
            // Where it says how long it is, its being cut is plain; otherwise only JSON tells.
            let length = if how.contains("unframed") { "" } else { "Content-Length: 500\r\n" };
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
            exchange.write(&format!("{head}{length}\r\n{{\"id\":"))?;
            return exchange.hang_up();
        }
        let mut document = api.document(number, &text);
        if how.contains("cached") {
            document["usage"] = api.cached_usage();
        }
        let document = document.to_string();
        return exchange.reply(200, "x-request-id: req_1\r\nset-cookie: a=secret\r\n", &document);
    }
    exchange.write(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nx-request-id: req_1\r\n\
         set-cookie: a=secret\r\nTransfer-Encoding: chunked\r\n\r\n",
    )?;
    let mut events = api.events(number, &text);
    if how.contains("nameless") {
        let rename = |event: &String| match event.split_once('\n') {
            Some((name, data)) if name.starts_with("event: ") => format!("event: message\n{data}"),
            _ => event.replace("\"created\"", "\"error\":\"\",\"created\""),
        };
        events = events.iter().map(rename).collect();
    }
    if body["stream_options"]["include_usage"] == true {
        let usage = json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}});
        events.insert(events.len() - 1, format!("data: {usage}\n\n"));
    }
    let half = events.len() / 2;
    for (index, event) in events.iter().enumerate() {
        if index == half && how.contains("waits") {
            exchange.wait_for_release();
        }
        // It waits too, and does not fall silent meanwhile.
        while index == half && how.contains("drips") && !exchange.server.is_released(number) {
            exchange.chunk(": still here\n\n")?;
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
        if index == half && how.contains("error") && fails {
            exchange.chunk(api.error())?;
            if how.contains("open") {
                exchange.wait_for_release();
            }
            return exchange.chunk("");
        }
        if index == half && how.contains("cut") && fails {
            return exchange.hang_up();
        }
        // All but the end, and then an end without a word.
        if index + 1 == events.len() && how.contains("short") && fails {
            break;
        }
        match index + 1 == events.len() && how.contains("bare") {
            true => exchange.chunk(event.trim_end())?,
            false => exchange.chunk(event)?,
        }
    }
    if how.contains("torn") && fails {
        return exchange.hang_up();
    }
    // It is at its end, and does not stop talking.
    while how.contains("lingers") && !exchange.server.is_released(number) {
        exchange.chunk(": still here\n\n")?;
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    exchange.chunk("")
}

/// The three APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeModelApi {
    Chat,
    Responses,
    Messages,
}

impl FakeModelApi {
    pub const ALL: [FakeModelApi; 3] = [FakeModelApi::Chat, FakeModelApi::Responses, FakeModelApi::Messages];

    fn of(path: &str) -> FakeModelApi {
        match path.split('?').next().unwrap_or_default() {
            path if path.ends_with("/chat/completions") => FakeModelApi::Chat,
            path if path.ends_with("/responses") => FakeModelApi::Responses,
            _ => FakeModelApi::Messages,
        }
    }

    pub fn path(self) -> &'static str {
        match self {
            FakeModelApi::Chat => "/p/openai/v1/chat/completions",
            FakeModelApi::Responses => "/p/openai/v1/responses",
            FakeModelApi::Messages => "/p/anthropic/v1/messages",
        }
    }

    pub fn action(self) -> &'static str {
        match self {
            FakeModelApi::Chat => "llm:openai/chat.completions",
            FakeModelApi::Responses => "llm:openai/responses",
            FakeModelApi::Messages => "llm:anthropic/messages",
        }
    }

    pub fn document(self, number: usize, text: &str) -> Value {
        match self {
            FakeModelApi::Chat => json!({
                "id": format!("chatcmpl-{number}"), "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14},
            }),
            FakeModelApi::Responses => response(number, text, "completed"),
            FakeModelApi::Messages => json!({
                "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "m",
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
                "usage": {"input_tokens": 9, "output_tokens": 5},
            }),
        }
    }

    /// A thousand tokens from a cache, a hundred into it, ten beside it, and five out, in the words of each.
    fn cached_usage(self) -> Value {
        let details = json!({"cached_tokens": 1_000, "cache_write_tokens": 100});
        match self {
            FakeModelApi::Chat => {
                json!({"prompt_tokens": 1_110, "completion_tokens": 5, "prompt_tokens_details": details})
            }
            FakeModelApi::Responses => {
                json!({"input_tokens": 1_110, "output_tokens": 5, "input_tokens_details": details})
            }
            FakeModelApi::Messages => json!({
                "input_tokens": 10, "output_tokens": 5,
                "cache_read_input_tokens": 1_000, "cache_creation_input_tokens": 100,
            }),
        }
    }

    /// Whole events, the last of which ends the answer.
    pub fn events(self, number: usize, text: &str) -> Vec<String> {
        let middle = text.len() / 2;
        let (first, second) = text.split_at(middle);
        let parts: Vec<&str> = match text.len() {
            0..PART_BYTES => vec![first, second],
            _ => text
                .as_bytes()
                .chunks(PART_BYTES)
                .map(|part| std::str::from_utf8(part).unwrap_or(""))
                .collect(),
        };
        match self {
            FakeModelApi::Chat => {
                let chunk = |delta: Value, finish: Value| {
                    let choice = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
                    let id = format!("chatcmpl-{number}");
                    let chunk = json!({"id": id, "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choice});
                    format!("data: {chunk}\n\n")
                };
                let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
                events.extend(parts.iter().map(|part| chunk(json!({"content": part}), Value::Null)));
                events.push(chunk(json!({}), json!("stop")));
                events.push("data: [DONE]\n\n".into());
                events
            }
            FakeModelApi::Responses => {
                let said = std::cell::Cell::new(0);
                let event = |kind: &str, mut data: Value| {
                    data["type"] = json!(kind);
                    data["sequence_number"] = json!(said.replace(said.get() + 1));
                    format!("event: {kind}\ndata: {data}\n\n")
                };
                let at = json!({"item_id": "msg_1", "output_index": 0, "content_index": 0});
                let with = |name: &str, value: Value| {
                    let mut data = at.clone();
                    data[name] = value;
                    data
                };
                let mut begun = response(number, text, "in_progress");
                begun["output"] = json!([]);
                begun["usage"] = Value::Null;
                vec![
                    event("response.created", json!({"response": begun})),
                    event("response.in_progress", json!({"response": begun})),
                    event("response.output_text.delta", with("delta", json!(first))),
                    event("response.output_text.delta", with("delta", json!(second))),
                    event("response.output_text.done", with("text", json!(text))),
                    event("response.completed", json!({"response": response(number, text, "completed")})),
                ]
            }
            FakeModelApi::Messages => {
                let event =
                    |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or(""));
                let mut message = self.document(number, text);
                message["content"] = json!([]);
                message["stop_reason"] = Value::Null;
                message["usage"] = json!({"input_tokens": 9, "output_tokens": 1});
                let delta = |text: &str| {
                    let delta = json!({"type": "text_delta", "text": text});
                    event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))
                };
                let block = json!({"type": "text", "text": ""});
                vec![
                    event(json!({"type": "message_start", "message": message})),
                    event(json!({"type": "content_block_start", "index": 0, "content_block": block})),
                    event(json!({"type": "ping"})),
                    delta(first),
                    delta(second),
                    event(json!({"type": "content_block_stop", "index": 0})),
                    event(json!({
                        "type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
                        "usage": {"output_tokens": 5},
                    })),
                    event(json!({"type": "message_stop"})),
                ]
            }
        }
    }

    fn error(self) -> &'static str {
        match self {
            FakeModelApi::Chat => {
                "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n"
            }
            FakeModelApi::Responses => {
                "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"overloaded\",\"sequence_number\":3}\n\n"
            }
            FakeModelApi::Messages => {
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"overloaded\"}}\n\n"
            }
        }
    }
}

/// A long text comes in parts of this size.
const PART_BYTES: usize = 1 << 20;

fn response(number: usize, text: &str, status: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    let item =
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content});
    let usage = json!({
        "input_tokens": 9, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 14,
    });
    json!({
        "id": format!("resp_{number}"), "object": "response", "created_at": 1, "status": status, "model": "m",
        "output": [item], "usage": usage, "error": null, "parallel_tool_calls": true, "tool_choice": "auto",
        "tools": [],
    })
}

/// A request to a model that does as it is called.
pub fn request(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 100})
}

pub fn streamed(model: &str) -> Value {
    let mut request = request(model);
    request["stream"] = json!(true);
    request
}

/// Two generations of 9 tokens in and 5 out, and three answers that needed none: two of a step that is known, and one
/// that an SDK's retry joins.
pub fn generate_two_of_five(model: &FakeModel, ask: impl Fn(FakeModelApi, &str, &Value) -> RawClient) {
    for _ in 0..3 {
        assert_eq!(ask(FakeModelApi::Messages, "Semel-Step: one\r\n", &request("m")).answer().status, 200);
    }
    let mut first = ask(FakeModelApi::Responses, "", &streamed("waits"));
    first.head();
    first.chunk();
    let mut retry = ask(FakeModelApi::Responses, "x-stainless-retry-count: 1\r\n", &streamed("waits"));
    retry.head();
    model.release();
    first.chunks();
    retry.chunks();
}
