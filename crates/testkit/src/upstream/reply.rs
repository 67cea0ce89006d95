//! An answer, and the bytes that it is on the wire.

use super::plan::ReplyFraming;
use serde_json::Value;
use std::fmt::Write;

#[derive(Debug, Clone)]
pub struct UpstreamReply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: ReplyBody,
}

#[derive(Debug, Clone)]
pub enum ReplyBody {
    Whole(Vec<u8>),
    /// Each text is an event with all of its lines; `error` is what this API says instead when it breaks off.
    Events {
        events: Vec<String>,
        error: String,
    },
}

impl UpstreamReply {
    pub fn json(status: u16, value: &Value) -> UpstreamReply {
        UpstreamReply::whole(status, "application/json", value.to_string().into_bytes())
    }

    pub fn whole(status: u16, kind: &str, body: Vec<u8>) -> UpstreamReply {
        let headers = vec![("Content-Type".to_owned(), kind.to_owned())];
        UpstreamReply { status, headers, body: ReplyBody::Whole(body) }
    }

    pub fn events(events: Vec<String>, error: String) -> UpstreamReply {
        let headers = vec![("Content-Type".to_owned(), "text/event-stream; charset=utf-8".to_owned())];
        UpstreamReply { status: 200, headers, body: ReplyBody::Events { events, error } }
    }

    pub fn with(mut self, name: &str, value: &str) -> UpstreamReply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Whether the end of the body can be told from the end of the connection.
    pub fn framing(&self, wanted: ReplyFraming) -> ReplyFraming {
        match (&self.body, wanted) {
            (ReplyBody::Events { .. }, ReplyFraming::Natural) => ReplyFraming::Chunked,
            (_, wanted) => wanted,
        }
    }

    /// How many bytes it has on the wire.
    pub fn length(&self, framing: ReplyFraming) -> usize {
        let body: usize = match &self.body {
            ReplyBody::Whole(body) => framed(body, framing).len(),
            ReplyBody::Events { events, .. } => {
                events.iter().map(|event| framed(event.as_bytes(), framing).len()).sum()
            }
        };
        self.head(framing).len() + body + end(framing).len()
    }

    /// Status line and headers, with the empty line.
    pub fn head(&self, framing: ReplyFraming) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            let _a_string_takes_it = write!(head, "{name}: {value}\r\n");
        }
        match (&self.body, framing) {
            _ if self.status == 204 => {}
            (ReplyBody::Whole(body), ReplyFraming::Natural) => {
                let _a_string_takes_it = write!(head, "Content-Length: {}\r\n", body.len());
            }
            (_, ReplyFraming::Close) => head.push_str("Connection: close\r\n"),
            _ => head.push_str("Transfer-Encoding: chunked\r\n"),
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

/// A part of a body as it goes out.
pub fn framed(part: &[u8], framing: ReplyFraming) -> Vec<u8> {
    match framing {
        ReplyFraming::Chunked => [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat(),
        ReplyFraming::Natural | ReplyFraming::Close => part.to_vec(),
    }
}

/// What marks the end of a body.
pub fn end(framing: ReplyFraming) -> &'static [u8] {
    if framing == ReplyFraming::Chunked { b"0\r\n\r\n" } else { b"" }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        404 => "Not Found",
        409 => "Conflict",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "As PlanUpdate",
    }
}
