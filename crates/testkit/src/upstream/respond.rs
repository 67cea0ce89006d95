//! The answer, as far as the plan lets it out.

use super::plan::{Close, CutMode, PlannedFault, ReplyFraming, byte_at};
use super::reply::{self, ReplyBody, UpstreamReply};
use super::state::{UpstreamState, gone};
use super::wire::{CutWire, Went, cut, pause};
use serde_json::{Value, json};
use std::io;
use std::net::{SocketAddr, TcpStream};

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    Request,
    Over,
}

/// The answer that the plan wants instead.
pub fn altered(
    mut reply: UpstreamReply,
    fault: &PlannedFault,
    path: &str,
    elsewhere: SocketAddr,
) -> UpstreamReply {
    if let Some(status) = fault.redirect {
        let error = json!({"error": {"type": "redirect", "message": "it is elsewhere"}});
        reply = UpstreamReply::json(status, &error).with("Location", &format!("http://{elsewhere}{path}"));
    }
    if let Some(status) = fault.status {
        let error = json!({"error": {"type": "api_error", "message": format!("told to answer {status}")}});
        let was_error = reply.status >= 400;
        reply = if status < 300 || was_error {
            UpstreamReply { status, ..reply }
        } else {
            UpstreamReply::json(status, &error)
        };
    }
    if fault.pad > 0
        && let ReplyBody::Whole(body) = &reply.body
        && let Ok(mut value) = serde_json::from_slice::<Value>(body)
    {
        value["pad"] = "x".repeat(fault.pad).into();
        reply.body = ReplyBody::Whole(value.to_string().into_bytes());
    }
    for (name, value) in &fault.headers {
        reply = reply.with(name, value);
    }
    if fault.close == Close::Announced {
        reply = reply.with("Connection", "close");
    }
    reply
}

pub fn plainly(stream: &TcpStream, reply: &UpstreamReply) -> io::Result<NextStep> {
    let mut wire = CutWire::new(stream, None);
    write(&mut wire, reply, ReplyFraming::Natural)?;
    Ok(NextStep::Request)
}

/// Answers, and says in the log how far it came.
pub fn as_told(
    stream: &TcpStream,
    state: &UpstreamState,
    number: u64,
    reply: &UpstreamReply,
    fault: &PlannedFault,
) -> io::Result<NextStep> {
    match let_out(stream, state, reply, fault) {
        Ok(ReplyEnd::Whole) => {
            let bytes = reply.length(reply.framing(fault.framing));
            state.say(number, "answered", json!({"status": reply.status, "bytes": bytes}))?;
            let over =
                fault.close != Close::Kept || fault.framing == ReplyFraming::Close || fault.raw.is_some();
            Ok(if over { NextStep::Over } else { NextStep::Request })
        }
        Ok(ReplyEnd::Cut) => {
            state.say(number, "cut", json!({"response_bytes": fault.cut_response}))?;
            cut(stream, fault.how)?;
            Ok(NextStep::Over)
        }
        Ok(ReplyEnd::Gone) | Err(_) => {
            state.say(number, "gone", json!({}))?;
            Ok(NextStep::Over)
        }
    }
}

enum ReplyEnd {
    Whole,
    Cut,
    /// The peer did not wait for it.
    Gone,
}

fn let_out(
    stream: &TcpStream,
    state: &UpstreamState,
    reply: &UpstreamReply,
    fault: &PlannedFault,
) -> io::Result<ReplyEnd> {
    let hold = fault.hold.as_deref().filter(|_| fault.stream.hold_after.is_none());
    if hold.is_some_and(|name| !state.wait(name, Some(stream))) {
        return Ok(ReplyEnd::Gone);
    }
    pause(fault.delay_ms);
    if fault.cut_response == Some(0) {
        return Ok(ReplyEnd::Cut);
    }
    let framing = reply.framing(fault.framing);
    let mut wire = CutWire::new(stream, fault.cut_response.map(|told| byte_at(told, reply.length(framing))));
    for status in &fault.interim {
        if wire.write(format!("HTTP/1.1 {status} Interim\r\n\r\n").as_bytes())? == Went::Cut {
            return Ok(ReplyEnd::Cut);
        }
    }
    if let Some(raw) = &fault.raw {
        wire.write(&bytes(raw))?;
        return Ok(if fault.how == CutMode::Reset { ReplyEnd::Cut } else { ReplyEnd::Whole });
    }
    match &reply.body {
        ReplyBody::Whole(_) => {
            Ok(if write(&mut wire, reply, framing)? == Went::Cut { ReplyEnd::Cut } else { ReplyEnd::Whole })
        }
        ReplyBody::Events { events, error } => {
            let stream = Events { stream, state, fault, framing, events, error };
            stream.let_out(&mut wire, &reply.head(framing))
        }
    }
}

/// Each character of a plan's text is one byte.
fn bytes(raw: &str) -> Vec<u8> {
    raw.chars().map(|character| u8::try_from(character).unwrap_or(b'?')).collect()
}

fn write(wire: &mut CutWire<'_>, reply: &UpstreamReply, framing: ReplyFraming) -> io::Result<Went> {
    let ReplyBody::Whole(body) = &reply.body else { return Ok(Went::Out) };
    wire.write(&[&reply.head(framing), &reply::framed(body, framing)[..], reply::end(framing)].concat())
}

struct Events<'a> {
    stream: &'a TcpStream,
    state: &'a UpstreamState,
    fault: &'a PlannedFault,
    framing: ReplyFraming,
    events: &'a [String],
    error: &'a String,
}

impl Events<'_> {
    fn let_out(&self, wire: &mut CutWire<'_>, head: &[u8]) -> io::Result<ReplyEnd> {
        let told = &self.fault.stream;
        if wire.write(head)? == Went::Cut {
            return Ok(ReplyEnd::Cut);
        }
        for (at, event) in self.events.iter().enumerate() {
            if told.hold_after == Some(at)
                && let Some(name) = &self.fault.hold
                && !self.state.wait(name, Some(self.stream))
            {
                return Ok(ReplyEnd::Gone);
            }
            if told.stop_after == Some(at) {
                if self.fault.how != CutMode::End {
                    return Ok(ReplyEnd::Cut);
                }
                break;
            }
            if told.error_after == Some(at) {
                wire.write(&reply::framed(self.error.as_bytes(), self.framing))?;
                break;
            }
            pause(told.pause_ms);
            if gone(self.stream) {
                return Ok(ReplyEnd::Gone);
            }
            if wire.write(&reply::framed(event.as_bytes(), self.framing))? == Went::Cut {
                return Ok(ReplyEnd::Cut);
            }
        }
        Ok(if wire.write(reply::end(self.framing))? == Went::Cut { ReplyEnd::Cut } else { ReplyEnd::Whole })
    }
}
