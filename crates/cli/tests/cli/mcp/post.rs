//! A scripted client over HTTP: one request a connection, with sessions as the 2025 era has them.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than semel waits for a twin.
const PATIENCE: Duration = Duration::from_secs(40);

#[derive(Debug, Clone)]
pub struct Post {
    authority: String,
    path: String,
    session: Option<String>,
}

/// One answer over HTTP.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub session: Option<String>,
    pub body: String,
}

impl Post {
    pub fn to(url: &str) -> Post {
        let rest = url.strip_prefix("http://").expect("a plain URL");
        let (authority, path) = rest.split_once('/').expect("a URL with a path");
        Post { authority: authority.to_owned(), path: format!("/{path}"), session: None }
    }

    /// Opens a new session, forgetting any other.
    pub fn initialize(&mut self) {
        self.session = None;
        let about = json!({"name": "post", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about});
        let reply = self.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(reply.status, 200, "{reply:?}");
        self.session = reply.session;
        let reply = self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(reply.status, 202, "{reply:?}");
    }

    pub fn opened(url: &str) -> Post {
        let mut post = Post::to(url);
        post.initialize();
        post
    }

    pub fn call(&self, id: u64, tool: &str, arguments: &Value, meta: &Value) -> Reply {
        self.send(&Post::calling(id, tool, arguments, meta))
    }

    pub fn calling(id: u64, tool: &str, arguments: &Value, meta: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    }

    pub fn send(&self, message: &Value) -> Reply {
        Reply::read(self.post(message))
    }

    /// Sends a message; the answer is left on the connection.
    pub fn post(&self, message: &Value) -> TcpStream {
        let body = message.to_string();
        let mut stream = TcpStream::connect(&self.authority).expect("somebody listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let session = self.session.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n\
             Connection: close\r\n{session}\r\n",
            self.path,
            self.authority,
            body.len(),
        );
        stream.write_all(format!("{head}{body}").as_bytes()).expect("the request is taken");
        stream
    }
}

impl Reply {
    /// A connection that broke off gives status 0.
    pub fn read(stream: TcpStream) -> Reply {
        let mut reader = BufReader::new(stream);
        let mut reply = Reply { status: 0, session: None, body: String::new() };
        let (mut length, mut chunked) = (None, false);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            if let Some(rest) = text.strip_prefix("HTTP/1.1 ") {
                reply.status = rest[..3].parse().expect("a status");
            } else if let Some((name, value)) = text.split_once(": ") {
                match name.to_ascii_lowercase().as_str() {
                    "mcp-session-id" => reply.session = Some(value.to_owned()),
                    "content-length" => length = Some(value.parse::<u64>().expect("a length")),
                    "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                    _ => {}
                }
            }
            line.clear();
        }
        let mut body = Vec::new();
        if chunked {
            while let Some(chunk) = chunk(&mut reader) {
                body.extend(chunk);
            }
        } else {
            let limit = length.unwrap_or(u64::MAX);
            // What came before a connection broke is kept; its status tells.
            let _broken = reader.take(limit).read_to_end(&mut body);
        }
        reply.body = String::from_utf8(body).expect("the body is text");
        reply
    }

    /// The answer to a request, be it a document or an event of a stream.
    pub fn answer(&self) -> Value {
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut documents =
            events.chain([self.body.as_str()]).filter_map(|text| serde_json::from_str(text).ok());
        let answers = |message: &Value| message.get("result").is_some() || message.get("error").is_some();
        documents.find(answers).unwrap_or_else(|| panic!("no answer in {self:?}"))
    }

    /// The result of a tool call.
    pub fn result(&self) -> Value {
        let mut answer = self.answer();
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].take()
    }
}

fn chunk(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut size = String::new();
    reader.read_line(&mut size).ok()?;
    let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
    let mut chunk = vec![0; size + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    Some(chunk)
}
