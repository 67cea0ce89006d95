//! Many clients before one server on standard input and output: every request goes out under a name of semel's own.
//!
//! That name is the request's id and its progress token, so that sixteen clients which all count from one never mix.

use super::stream::CallStream;
use crate::http::sse::Piece;
use crate::http::sse::{self, Fields};
use crate::mcp::frame::Frame;
use crate::mcp::frame_writer::FrameWriter;
use crate::mcp::id::Id;
use crate::mcp::link::remote::ResponseObserver;
use crate::mcp::link::request::Listener;
use crate::mcp::message::{Message, MessageKind, text};
use crate::mcp::server::Server;
use crate::wire::members::Members;
use bytes::Bytes;
use http::HeaderMap;
use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

/// Announcements that wait for a client which does not read them. It then misses the oldest, and lists again anyway.
const NEWS_MAX: usize = 64;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Debug)]
pub struct Relay {
    live: Mutex<HashMap<Id, RelayedRequest>>,
    /// Announcements to everybody: that one of its listings has changed.
    pub news: broadcast::Sender<Bytes>,
    server: Arc<Server>,
}

/// A request that is under way.
#[derive(Debug)]
struct RelayedRequest {
    /// As the client named it.
    id: Id,
    progress_token: Option<String>,
    owner: String,
    stream: Arc<CallStream>,
}

/// A request under its new name, until it is answered.
#[derive(Debug)]
pub struct RenamedRequest {
    pub own: Id,
    pub message: Message,
    relay: Arc<Relay>,
}

impl Drop for RenamedRequest {
    fn drop(&mut self) {
        self.relay.lock().remove(&self.own);
    }
}

impl Relay {
    pub fn new(server: Arc<Server>) -> Relay {
        Relay { live: Mutex::default(), news: broadcast::channel(NEWS_MAX).0, server }
    }

    /// Gives a request a name of semel's own: as its progress token, and as its id unless the gate names it.
    pub fn rename(
        self: &Arc<Self>,
        own: Id,
        message: &Message,
        owner: &str,
        stream: &Arc<CallStream>,
    ) -> Option<RenamedRequest> {
        let id = message.request_id()?.clone();
        let params = message.params.as_ref().map_or("{}", text);
        let params = Members::parse(params).unwrap_or_default();
        let mut meta = params.object("_meta");
        let progress_token = meta.get("progressToken").map(str::to_owned);
        let params = progress_token.is_some().then(|| {
            meta.set("progressToken", own.as_json().to_owned());
            let meta = meta.to_string();
            let mut params = params.clone();
            params.set("_meta", meta);
            Frame::from(params.to_string())
        });
        let message = Message::parse(message.edited(Some(&own), params)?.to_bytes()).ok()?;
        let live = RelayedRequest { id, progress_token, owner: owner.to_owned(), stream: Arc::clone(stream) };
        self.lock().insert(own.clone(), live);
        Some(RenamedRequest { own, message, relay: Arc::clone(self) })
    }

    /// The name under which a client's request went out, and where its answer would go. Clients without a session may
    /// have two of one id; which of them is meant cannot be told.
    pub fn under_way(&self, owner: &str, id: &Id) -> Option<(Id, Arc<CallStream>)> {
        let live = self.lock();
        let mut found = live.iter().filter(|(_, live)| live.owner == owner && live.id == *id);
        let (own, live) = found.next()?;
        found.next().is_none().then(|| (own.clone(), Arc::clone(&live.stream)))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, RelayedRequest>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A notification that belongs to one request goes to its stream, under the client's own names.
    fn belongs(&self, message: &Message) -> bool {
        let params = message.params.as_ref().map_or("{}", text);
        let Some(mut params) = Members::parse(params) else { return false };
        let mut meta = params.object("_meta");
        let names = [params.get("progressToken"), meta.get(SUBSCRIPTION)];
        let Some(own) = names.into_iter().flatten().find_map(Id::from_json) else { return false };
        let all = self.lock();
        let Some(live) = all.get(&own) else { return true };
        if let Some(token) = live.progress_token.as_ref().filter(|_| params.get("progressToken").is_some()) {
            params.set("progressToken", token.clone());
        } else {
            meta.set(SUBSCRIPTION, live.id.as_json().to_owned());
            let meta = meta.to_string();
            params.set("_meta", meta);
        }
        let params = params.to_string();
        if let Some(mut whole) = Members::parse(text(&message.bytes)) {
            whole.set("params", params);
            live.stream.on_open(&HeaderMap::new());
            let raw = sse::message(&whole.to_string().into());
            live.stream.on_piece(Piece { raw, fields: Fields::default() });
        }
        true
    }
}

/// Takes the messages of the server beside its answers.
impl Listener for Arc<Relay> {
    fn message(&mut self, message: Message) -> Option<FrameWriter> {
        match &message.kind {
            MessageKind::Notification { .. } if self.belongs(&message) => {}
            MessageKind::Notification { method } if method.ends_with("/list_changed") => {
                if method.contains("/tools/") {
                    self.server.tools_changed();
                }
                // There may be no listener.
                let _unheard = self.news.send(sse::message(&message.bytes));
            }
            // Which client it would be for cannot be told, so the server was told that there is none to ask.
            MessageKind::Request { id, .. } => {
                // A server that asks without reading the refusals gets no more of them.
                if !self.server.link.has_room() {
                    return None;
                }
                let refusal = "semel serves many clients and asks none of them";
                let frame = Frame::refusal(id, -32601, refusal, None);
                if let Ok(refusal) = Message::parse(frame.to_bytes()) {
                    self.server.link.pass(refusal, false);
                }
            }
            // A log line, or whatever else: it may quote what one client did, and which one that was cannot be told.
            MessageKind::Notification { .. } | MessageKind::Response { .. } => {}
        }
        None
    }

    fn answered_twice(&mut self, id: &Id) {
        self.stray(&format!("a second answer to the request {id}; the first counts"));
    }

    fn stray(&mut self, line: &str) -> Option<FrameWriter> {
        let name = &self.server.name;
        let _no_log = writeln!(std::io::stderr(), "semel: {name} says: {}", line.trim_end());
        None
    }
}
