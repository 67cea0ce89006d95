//! One connection: read, look at the plan, change the world, answer as told.

use super::keys::{self, Known};
use super::plan::{CASE, Fault, How, When, byte_at};
use super::reply::Reply;
use super::respond::{self, Next};
use super::service::{self, Change};
use super::state::State;
use super::wire::cut;
use super::{Place, control};
use crate::http::request::{Request, RequestHead, RequestReader};
use serde_json::{Value, json};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

pub fn serve(stream: &TcpStream, state: &Arc<State>, place: Place) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut source = RequestReader::new(stream);
    while let Some(head) = source.head()? {
        let mut fault = fault_for(state, &head, place);
        let cut_at = fault.cut_request.zip(head.total()).map(|(told, total)| (byte_at(told, total), total));
        if let Some((bytes, _)) = cut_at.filter(|(bytes, total)| bytes < total) {
            source.until(bytes)?;
            let (method, path, case) = (&head.method, &head.path, head.header(CASE));
            let (all, read) = (head.total(), bytes);
            let seen =
                json!({"method": method, "path": path, "case": case, "request_bytes": read, "bytes": all});
            state.say(state.number(), "cut", seen)?;
            return cut(stream, How::Reset);
        }
        if fault.cut_request.is_some() {
            (fault.cut_response, fault.how) = (Some(0), How::Reset);
        }
        let request = source.body(head)?;
        let next = match control::answer(state, &request) {
            Some(reply) => respond::plainly(stream, &reply)?,
            None => exchange(stream, state, place, &request, &fault)?,
        };
        if next == Next::Over {
            return Ok(());
        }
    }
    Ok(())
}

fn fault_for(state: &State, head: &RequestHead, place: Place) -> Fault {
    if head.path.starts_with("/__") || place == Place::Elsewhere {
        return Fault::default();
    }
    state.inner().plan.next(head).unwrap_or_default()
}

fn exchange(
    stream: &TcpStream,
    state: &Arc<State>,
    place: Place,
    request: &Request,
    fault: &Fault,
) -> io::Result<Next> {
    let number = state.number();
    state.say(number, "received", seen(request, place))?;
    if place == Place::Elsewhere {
        return respond::plainly(stream, &Reply::json(200, &json!({"elsewhere": true})));
    }
    let key = match keys::look(state, request) {
        Known::No => None,
        Known::First(name) => Some(name),
        Known::Answered(reply) => {
            state.say(number, "repeated", json!({"status": reply.status}))?;
            return respond::as_told(stream, state, number, &reply, fault);
        }
    };
    let performed = service::perform(request, number, &state.inner());
    let reply = respond::altered(performed.reply, fault, &request.head.path, state.elsewhere);
    let work = Work { number, key, change: performed.change, reply };
    match &fault.effect {
        When::Now => work.done(state)?,
        When::Never if fault.redirect.is_some() || fault.status.is_some_and(|status| status >= 400) => {
            work.turned_away(state)
        }
        When::Never => work.claimed_to_be_done(state),
        When::Late(_) | When::LateMs(_) => {
            let (when, state) = (fault.effect.clone(), Arc::clone(state));
            std::thread::spawn(move || work.done_late(&state, &when));
            cut(stream, fault.how)?;
            return Ok(Next::Over);
        }
    }
    respond::as_told(stream, state, number, &work.reply, fault)
}

/// A request that was understood, before anything came of it.
struct Work {
    number: u64,
    /// What its answer is kept under.
    key: Option<String>,
    change: Change,
    reply: Reply,
}

impl Work {
    fn done(&self, state: &State) -> io::Result<()> {
        state.commit(self.number, &self.change)?;
        self.claimed_to_be_done(state);
        Ok(())
    }

    fn done_late(&self, state: &State, when: &When) -> io::Result<()> {
        match when {
            When::Late(name) => drop(state.wait(name, None)),
            When::LateMs(span) => pause(*span),
            When::Now | When::Never => {}
        }
        self.done(state)
    }

    fn claimed_to_be_done(&self, state: &State) {
        self.key.iter().for_each(|name| keys::keep(state, name, &self.reply));
    }

    fn turned_away(&self, state: &State) {
        self.key.iter().for_each(|name| keys::forget(state, name));
    }
}

/// What the log knows of a request.
fn seen(request: &Request, place: Place) -> Value {
    let Request { head, body, bytes } = request;
    json!({
        "place": if place == Place::Here { "here" } else { "elsewhere" },
        "method": head.method, "path": head.path, "case": head.header(CASE), "query": head.query, "version": head.version,
        "headers": head.headers, "bytes": bytes, "body_sha256": request.digest(), "body_bytes": body.len(),
        "body": String::from_utf8(body.clone()).ok().filter(|text| text.len() <= BODY_SHOWN_BYTES_MAX),
    })
}

/// A line of the log stays readable; the digest is always there.
const BODY_SHOWN_BYTES_MAX: usize = 16 * 1024;

#[allow(clippy::disallowed_methods, reason = "a slow world is what the test asked for")]
pub fn pause(span_ms: u64) {
    if span_ms > 0 {
        std::thread::sleep(Duration::from_millis(span_ms));
    }
}
