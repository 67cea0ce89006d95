//! A model API of our own: it answers as the real ones do, does on the way what its model is called, and counts.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// One request, as it arrived.
#[derive(Debug, Clone)]
pub struct Heard {
    pub head: String,
    pub body: Value,
}

impl Heard {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

#[derive(Debug, Clone)]
pub struct Model {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    heard: Mutex<Vec<Heard>>,
    /// Answers that nobody took to their end.
    abandoned: AtomicUsize,
    /// Models that wait go on up to this number.
    released: Mutex<usize>,
    changed: Condvar,
}

impl Model {
    pub fn start() -> Model {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let model = Model { address: listener.local_addr().expect("an address"), state: Arc::default() };
        let serving = model.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        model
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How often it was asked: each time is paid for.
    pub fn asked(&self) -> usize {
        self.heard().len()
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.state.heard.lock().expect("nobody panicked").clone()
    }

    /// How many answers were cut off by whoever asked.
    pub fn abandoned(&self) -> usize {
        self.state.abandoned.load(Ordering::SeqCst)
    }

    /// Lets whatever waits go on, and whatever will wait.
    pub fn release(&self) {
        *self.state.released.lock().expect("nobody panicked") = usize::MAX;
        self.state.changed.notify_all();
    }

    /// Lets the first one go on, and no other.
    pub fn release_first(&self) {
        *self.state.released.lock().expect("nobody panicked") = 1;
        self.state.changed.notify_all();
    }

    fn is_released(&self, number: usize) -> bool {
        *self.state.released.lock().expect("nobody panicked") >= number
    }

    fn wait(&self, number: usize) {
        let released = self.state.released.lock().expect("nobody panicked");
        drop(self.state.changed.wait_while(released, |released| *released < number));
    }

    /// A client that goes away in the middle is noted, and else none of its business.
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head).ok()? == 0 {
                    return None;
                }
            }
            let heard = Heard { head, body: Value::Null };
            let mut body = vec![0; heard.header("content-length")?.parse().ok()?];
            reader.read_exact(&mut body).ok()?;
            let heard = Heard { body: serde_json::from_slice(&body).ok()?, ..heard };
            let number = {
                let mut all = self.state.heard.lock().expect("nobody panicked");
                all.push(heard.clone());
                all.len()
            };
            if self.answer(&mut stream, &heard, number).is_none() {
                self.state.abandoned.fetch_add(1, Ordering::SeqCst);
                return None;
            }
            if stream.peer_addr().is_err() || heard.body["model"].as_str()?.contains("cut") {
                return None;
            }
        }
    }

    fn answer(&self, stream: &mut TcpStream, heard: &Heard, number: usize) -> Option<()> {
        let how = heard.body["model"].as_str()?.to_owned();
        // The first time only, where its name says so.
        let fails = !how.contains("once") || number == 1;
        for status in [400, 401, 429, 500, 503, 529] {
            if how.contains(&status.to_string()) && fails {
                let mut said = format!("no, {number}");
                if how.contains("echo") {
                    said.push_str(heard.header("authorization").unwrap_or_default());
                    said.push_str(&heard.body["mcp_servers"].to_string());
                }
                let error = json!({"error": {"type": "some_error", "message": said}});
                return reply(
                    stream,
                    status,
                    "retry-after-ms: 5\r\nx-request-id: req_e\r\n",
                    &error.to_string(),
                );
            }
        }
        if how.contains("silent") && fails {
            // Never so much as a head.
            return stream.shutdown(std::net::Shutdown::Both).ok();
        }
        let api = Api::of(heard.path());
        let text = match how.strip_prefix("long-") {
            Some(length) => "x".repeat(length.parse().ok()?),
            None => format!("answer {number}"),
        };
        if heard.body["stream"] != true {
            if how.contains("waits") || how.contains("drips") {
                self.wait(number);
            }
            if how.contains("cut") && fails {
                // Where it says how long it is, its being cut is plain; otherwise only JSON tells.
                let length = if how.contains("unframed") { "" } else { "Content-Length: 500\r\n" };
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
                write(stream, &format!("{head}{length}\r\n{{\"id\":"))?;
                return stream.shutdown(std::net::Shutdown::Both).ok();
            }
            let mut document = api.document(number, &text);
            if how.contains("cached") {
                document["usage"] = api.cached_usage();
            }
            let document = document.to_string();
            return reply(stream, 200, "x-request-id: req_1\r\nset-cookie: a=secret\r\n", &document);
        }
        write(
            stream,
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
        if heard.body["stream_options"]["include_usage"] == true {
            let usage =
                json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}});
            events.insert(events.len() - 1, format!("data: {usage}\n\n"));
        }
        let half = events.len() / 2;
        for (index, event) in events.iter().enumerate() {
            if index == half && how.contains("waits") {
                self.wait(number);
            }
            // It waits too, and does not fall silent meanwhile.
            while index == half && how.contains("drips") && !self.is_released(number) {
                chunk(stream, ": still here\n\n")?;
                std::thread::park_timeout(std::time::Duration::from_millis(20));
            }
            if index == half && how.contains("error") && fails {
                chunk(stream, api.error())?;
                if how.contains("open") {
                    self.wait(number);
                }
                return chunk(stream, "");
            }
            if index == half && how.contains("cut") && fails {
                return stream.shutdown(std::net::Shutdown::Both).ok();
            }
            // All but the end, and then an end without a word.
            if index + 1 == events.len() && how.contains("short") && fails {
                break;
            }
            match index + 1 == events.len() && how.contains("bare") {
                true => chunk(stream, event.trim_end())?,
                false => chunk(stream, event)?,
            }
        }
        if how.contains("torn") && fails {
            return stream.shutdown(std::net::Shutdown::Both).ok();
        }
        // It is at its end, and does not stop talking.
        while how.contains("lingers") && !self.is_released(number) {
            chunk(stream, ": still here\n\n")?;
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
        chunk(stream, "")
    }
}

/// The three APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    Chat,
    Responses,
    Messages,
}

impl Api {
    pub const ALL: [Api; 3] = [Api::Chat, Api::Responses, Api::Messages];

    fn of(path: &str) -> Api {
        match path.split('?').next().unwrap_or_default() {
            path if path.ends_with("/chat/completions") => Api::Chat,
            path if path.ends_with("/responses") => Api::Responses,
            _ => Api::Messages,
        }
    }

    pub fn path(self) -> &'static str {
        match self {
            Api::Chat => "/p/openai/v1/chat/completions",
            Api::Responses => "/p/openai/v1/responses",
            Api::Messages => "/p/anthropic/v1/messages",
        }
    }

    pub fn action(self) -> &'static str {
        match self {
            Api::Chat => "llm:openai/chat.completions",
            Api::Responses => "llm:openai/responses",
            Api::Messages => "llm:anthropic/messages",
        }
    }

    pub fn document(self, number: usize, text: &str) -> Value {
        match self {
            Api::Chat => json!({
                "id": format!("chatcmpl-{number}"), "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14},
            }),
            Api::Responses => response(number, text, "completed"),
            Api::Messages => json!({
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
            Api::Chat => {
                json!({"prompt_tokens": 1_110, "completion_tokens": 5, "prompt_tokens_details": details})
            }
            Api::Responses => {
                json!({"input_tokens": 1_110, "output_tokens": 5, "input_tokens_details": details})
            }
            Api::Messages => json!({
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
            Api::Chat => {
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
            Api::Responses => {
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
            Api::Messages => {
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
            Api::Chat => "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n",
            Api::Responses => {
                "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"overloaded\",\"sequence_number\":3}\n\n"
            }
            Api::Messages => {
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

fn write(stream: &mut TcpStream, text: &str) -> Option<()> {
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).ok()
}

fn chunk(stream: &mut TcpStream, text: &str) -> Option<()> {
    write(stream, &format!("{:x}\r\n{text}\r\n", text.len()))
}

fn reply(stream: &mut TcpStream, status: u16, headers: &str, body: &str) -> Option<()> {
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    write(stream, &format!("{head}{body}"))
}
