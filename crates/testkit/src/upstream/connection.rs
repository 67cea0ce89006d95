//! One connection: read, look at the plan, change the world, answer as told.

use super::keys::{self, KeyLookup};
use super::performed::WorldChange;
use super::plan::{CASE, CutMode, EffectMoment, PlannedFault, byte_at};
use super::reply::UpstreamReply;
use super::respond::{self, NextStep};
use super::service;
use super::state::UpstreamState;
use super::wire::{cut, pause};
use super::{Entrypoint, control};
use crate::http::request::{Request, RequestHead, RequestReader};
use serde_json::{Value, json};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;

pub fn serve(stream: &TcpStream, state: &Arc<UpstreamState>, place: Entrypoint) -> io::Result<()> {
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
            return cut(stream, CutMode::Reset);
        }
        if fault.cut_request.is_some() {
            (fault.cut_response, fault.how) = (Some(0), CutMode::Reset);
        }
        let request = source.body(head)?;
        let next = match control::answer(state, &request) {
            Some(reply) => respond::plainly(stream, &reply)?,
            None => exchange(stream, state, place, &request, &fault)?,
        };
        if next == NextStep::Over {
            return Ok(());
        }
    }
    Ok(())
}

fn fault_for(state: &UpstreamState, head: &RequestHead, place: Entrypoint) -> PlannedFault {
    if head.path.starts_with("/__") || place == Entrypoint::Elsewhere {
        return PlannedFault::default();
    }
    state.inner().plan.next(head).unwrap_or_default()
}

fn exchange(
    stream: &TcpStream,
    state: &Arc<UpstreamState>,
    place: Entrypoint,
    request: &Request,
    fault: &PlannedFault,
) -> io::Result<NextStep> {
    let number = state.number();
    state.say(number, "received", seen(request, place))?;
    if place == Entrypoint::Elsewhere {
        return respond::plainly(stream, &UpstreamReply::json(200, &json!({"elsewhere": true})));
    }
    let key = match keys::look(state, request) {
        KeyLookup::No => None,
        KeyLookup::First(name) => Some(name),
        KeyLookup::Answered(reply) => {
            state.say(number, "repeated", json!({"status": reply.status}))?;
            return respond::as_told(stream, state, number, &reply, fault);
        }
    };
    let performed = service::perform(request, number, &state.inner());
    let reply = respond::altered(performed.reply, fault, &request.head.path, state.elsewhere);
    let work = PendingWork { number, key, change: performed.change, reply };
    match &fault.effect {
        EffectMoment::Now => work.done(state)?,
        EffectMoment::Never
            if fault.redirect.is_some() || fault.status.is_some_and(|status| status >= 400) =>
        {
            work.turned_away(state)
        }
        EffectMoment::Never => work.claimed_to_be_done(state),
        EffectMoment::Late(_) | EffectMoment::LateMs(_) => {
            let (when, state) = (fault.effect.clone(), Arc::clone(state));
            std::thread::spawn(move || work.done_late(&state, &when));
            cut(stream, fault.how)?;
            return Ok(NextStep::Over);
        }
    }
    respond::as_told(stream, state, number, &work.reply, fault)
}

/// A request that was understood, before anything came of it.
struct PendingWork {
    number: u64,
    /// What its answer is kept under.
    key: Option<String>,
    change: WorldChange,
    reply: UpstreamReply,
}

impl PendingWork {
    fn done(&self, state: &UpstreamState) -> io::Result<()> {
        state.commit(self.number, &self.change)?;
        self.claimed_to_be_done(state);
        Ok(())
    }

    fn done_late(&self, state: &UpstreamState, when: &EffectMoment) -> io::Result<()> {
        match when {
            EffectMoment::Late(name) => drop(state.wait(name, None)),
            EffectMoment::LateMs(span) => pause(*span),
            EffectMoment::Now | EffectMoment::Never => {}
        }
        self.done(state)
    }

    fn claimed_to_be_done(&self, state: &UpstreamState) {
        self.key.iter().for_each(|name| keys::keep(state, name, &self.reply));
    }

    fn turned_away(&self, state: &UpstreamState) {
        self.key.iter().for_each(|name| keys::forget(state, name));
    }
}

/// What the log knows of a request.
fn seen(request: &Request, place: Entrypoint) -> Value {
    let Request { head, body, bytes } = request;
    json!({
        "place": if place == Entrypoint::Here { "here" } else { "elsewhere" },
        "method": head.method, "path": head.path, "case": head.header(CASE), "query": head.query, "version": head.version,
        "headers": head.headers, "bytes": bytes, "body_sha256": request.digest(), "body_bytes": body.len(),
        "body": String::from_utf8(body.clone()).ok().filter(|text| text.len() <= BODY_SHOWN_BYTES_MAX),
    })
}

/// A line of the log stays readable; the digest is always there.
const BODY_SHOWN_BYTES_MAX: usize = 16 * 1024;
