//! The answer, as far as the plan lets it out.

use super::connection::pause;
use super::plan::{Close, Fault, Framing, How, byte_at};
use super::reply::{self, Body, Reply};
use super::state::{State, gone};
use super::wire::{Went, Wire, cut};
use serde_json::{Value, json};
use std::io;
use std::net::{SocketAddr, TcpStream};

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Request,
    Over,
}

/// The answer that the plan wants instead.
pub fn altered(mut reply: Reply, fault: &Fault, path: &str, elsewhere: SocketAddr) -> Reply {
    if let Some(status) = fault.redirect {
        let error = json!({"error": {"type": "redirect", "message": "it is elsewhere"}});
        reply = Reply::json(status, &error).with("Location", &format!("http://{elsewhere}{path}"));
    }
    if let Some(status) = fault.status {
        let error = json!({"error": {"type": "api_error", "message": format!("told to answer {status}")}});
        let was_error = reply.status >= 400;
        reply =
            if status < 300 || was_error { Reply { status, ..reply } } else { Reply::json(status, &error) };
    }
    if fault.pad > 0
        && let Body::Whole(body) = &reply.body
        && let Ok(mut value) = serde_json::from_slice::<Value>(body)
    {
        value["pad"] = "x".repeat(fault.pad).into();
        reply.body = Body::Whole(value.to_string().into_bytes());
    }
    for (name, value) in &fault.headers {
        reply = reply.with(name, value);
    }
    if fault.close == Close::Announced {
        reply = reply.with("Connection", "close");
    }
    reply
}

pub fn plainly(stream: &TcpStream, reply: &Reply) -> io::Result<Next> {
    let mut wire = Wire::new(stream, None);
    write(&mut wire, reply, Framing::Natural)?;
    Ok(Next::Request)
}

/// Answers, and says in the log how far it came.
pub fn as_told(
    stream: &TcpStream,
    state: &State,
    number: u64,
    reply: &Reply,
    fault: &Fault,
) -> io::Result<Next> {
    match let_out(stream, state, reply, fault) {
        Ok(End::Whole) => {
            let bytes = reply.length(reply.framing(fault.framing));
            state.say(number, "answered", json!({"status": reply.status, "bytes": bytes}))?;
            let over = fault.close != Close::Kept || fault.framing == Framing::Close || fault.raw.is_some();
            Ok(if over { Next::Over } else { Next::Request })
        }
        Ok(End::Cut) => {
            state.say(number, "cut", json!({"response_bytes": fault.cut_response}))?;
            cut(stream, fault.how)?;
            Ok(Next::Over)
        }
        Ok(End::Gone) | Err(_) => {
            state.say(number, "gone", json!({}))?;
            Ok(Next::Over)
        }
    }
}

enum End {
    Whole,
    Cut,
    /// The peer did not wait for it.
    Gone,
}

fn let_out(stream: &TcpStream, state: &State, reply: &Reply, fault: &Fault) -> io::Result<End> {
    let hold = fault.hold.as_deref().filter(|_| fault.stream.hold_after.is_none());
    if hold.is_some_and(|name| !state.wait(name, Some(stream))) {
        return Ok(End::Gone);
    }
    pause(fault.delay_ms);
    if fault.cut_response == Some(0) {
        return Ok(End::Cut);
    }
    let framing = reply.framing(fault.framing);
    let mut wire = Wire::new(stream, fault.cut_response.map(|told| byte_at(told, reply.length(framing))));
    for status in &fault.interim {
        if wire.write(format!("HTTP/1.1 {status} Interim\r\n\r\n").as_bytes())? == Went::Cut {
            return Ok(End::Cut);
        }
    }
    if let Some(raw) = &fault.raw {
        wire.write(&bytes(raw))?;
        return Ok(if fault.how == How::Reset { End::Cut } else { End::Whole });
    }
    match &reply.body {
        Body::Whole(_) => {
            Ok(if write(&mut wire, reply, framing)? == Went::Cut { End::Cut } else { End::Whole })
        }
        Body::Events { events, error } => {
            let stream = Events { stream, state, fault, framing, events, error };
            stream.let_out(&mut wire, &reply.head(framing))
        }
    }
}

/// Each character of a plan's text is one byte.
fn bytes(raw: &str) -> Vec<u8> {
    raw.chars().map(|character| u8::try_from(character).unwrap_or(b'?')).collect()
}

fn write(wire: &mut Wire<'_>, reply: &Reply, framing: Framing) -> io::Result<Went> {
    let Body::Whole(body) = &reply.body else { return Ok(Went::Out) };
    wire.write(&[&reply.head(framing), &reply::framed(body, framing)[..], reply::end(framing)].concat())
}

struct Events<'a> {
    stream: &'a TcpStream,
    state: &'a State,
    fault: &'a Fault,
    framing: Framing,
    events: &'a [String],
    error: &'a String,
}

impl Events<'_> {
    fn let_out(&self, wire: &mut Wire<'_>, head: &[u8]) -> io::Result<End> {
        let told = &self.fault.stream;
        if wire.write(head)? == Went::Cut {
            return Ok(End::Cut);
        }
        for (at, event) in self.events.iter().enumerate() {
            if told.hold_after == Some(at)
                && let Some(name) = &self.fault.hold
                && !self.state.wait(name, Some(self.stream))
            {
                return Ok(End::Gone);
            }
            if told.stop_after == Some(at) {
                if self.fault.how != How::End {
                    return Ok(End::Cut);
                }
                break;
            }
            if told.error_after == Some(at) {
                wire.write(&reply::framed(self.error.as_bytes(), self.framing))?;
                break;
            }
            pause(told.pause_ms);
            if gone(self.stream) {
                return Ok(End::Gone);
            }
            if wire.write(&reply::framed(event.as_bytes(), self.framing))? == Went::Cut {
                return Ok(End::Cut);
            }
        }
        Ok(if wire.write(reply::end(self.framing))? == Went::Cut { End::Cut } else { End::Whole })
    }
}
