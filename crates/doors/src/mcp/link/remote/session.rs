//! A session with a remote server, on behalf of a client on pipes, which has no HTTP.

use super::headers::{SESSION, VERSION};
use super::mirror;
use crate::in_flight::{InFlight, InFlightGuard};
use crate::mcp::id::Id;
use crate::mcp::link::request::Listener;
use crate::mcp::message::{Message, MessageKind, text};
use crate::mcp::tools::Tools;
use crate::mcp::version::version_of;
use crate::wire::members::Members;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

/// Requests that change nothing outside their session: in a new one they may be asked again.
pub(super) const ASKS: [&str; 14] = [
    "ping",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    SUBSCRIBE,
    UNSUBSCRIBE,
    "prompts/list",
    "prompts/get",
    "completion/complete",
    SET_LEVEL,
    "tasks/get",
    "tasks/list",
    "tasks/result",
];
pub(super) const SUBSCRIBE: &str = "resources/subscribe";
pub(super) const UNSUBSCRIBE: &str = "resources/unsubscribe";
pub(super) const SET_LEVEL: &str = "logging/setLevel";

/// Subscriptions that are made again; a client that has more loses the oldest.
const SUBSCRIPTIONS_MAX: usize = 1_000;

pub(super) const INITIALIZE: &str = "initialize";

pub struct RemoteSession {
    /// Sent with every request: what the operator configured.
    headers: HeaderMap,
    state: Mutex<RemoteSessionState>,
    pub(super) listener: Mutex<Option<Box<dyn Listener>>>,
    pub(super) queue: mpsc::UnboundedSender<QueuedMessage>,
    /// Requests that were passed on and are not answered yet.
    pub(super) in_flight: InFlight,
    /// The client has greeted the server, which has not answered yet.
    pub(super) greets: watch::Sender<bool>,
    /// One new session at a time.
    pub(super) renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
pub(super) struct RemoteSessionState {
    pub id: Option<HeaderValue>,
    /// The version that `initialize` agreed on; absent in the stateless era.
    pub version: Option<HeaderValue>,
    /// The state that the next session needs.
    pub renewal: SessionRenewal,
    /// The stream for what the server says of its own accord.
    pub hearing: Option<AbortHandle>,
    /// For the arguments that are mirrored into headers.
    pub tools: Tools,
    pub passing: usize,
    /// Requests that wait for their answer; in the stateless era letting go of one cancels it.
    pub waiting: HashMap<Id, AbortHandle>,
}

impl fmt::Debug for RemoteSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may be credentials.
        f.debug_struct("RemoteSession").finish_non_exhaustive()
    }
}

/// A client's message on its way.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    pub message: Message,
    /// A call that is known to change nothing.
    pub is_read: bool,
    pub working: InFlightGuard,
}

/// Messages of the client that were not passed on yet.
#[derive(Debug)]
pub struct ClientQueue(pub(super) mpsc::UnboundedReceiver<QueuedMessage>);

impl RemoteSession {
    pub fn new(headers: HeaderMap) -> (Arc<RemoteSession>, ClientQueue) {
        let (queue, queued) = mpsc::unbounded_channel();
        let session = RemoteSession {
            headers,
            state: Mutex::default(),
            listener: Mutex::default(),
            queue,
            in_flight: InFlight::default(),
            greets: watch::channel(false).0,
            renewing: tokio::sync::Mutex::default(),
        };
        (Arc::new(session), ClientQueue(queued))
    }

    pub(super) fn headers(&self, message: Option<&Message>) -> HeaderMap {
        let mut headers = self.headers.clone();
        let state = self.lock();
        let params = message.and_then(|message| message.params.as_ref()).map_or("{}", text);
        match version_of(params).and_then(|version| HeaderValue::try_from(version).ok()) {
            Some(version) => {
                headers.insert(VERSION, version);
                if let Some(message) = message {
                    let name =
                        Members::parse(params).and_then(|params| Some(params.text("name")?.into_owned()));
                    let definition = name.and_then(|name| state.tools.get(&name).cloned());
                    mirror::write(&mut headers, message, definition.as_deref());
                }
            }
            // It begins a session, and belongs to none.
            None if message.and_then(Message::method) == Some(INITIALIZE) => {}
            None => {
                for (name, value) in [(SESSION, &state.id), (VERSION, &state.version)] {
                    if let Some(value) = value {
                        headers.insert(name, value.clone());
                    }
                }
            }
        }
        headers
    }

    /// Takes in what an answer says beside its body. One of an earlier session says nothing of this one.
    pub(super) fn take_id(&self, number: u64, headers: &HeaderMap) {
        let mut state = self.lock();
        if let Some(id) = headers.get(SESSION).filter(|_| state.renewal.is_current(number)) {
            state.id = Some(id.clone());
        }
    }

    /// Takes in what a request was answered with.
    pub(super) fn learn(&self, request: &Message, answer: &Message, headers: &HeaderMap) {
        let result = answer.body.as_ref().map_or("null", text);
        let failed = matches!(answer.kind, MessageKind::Response { failed: true, .. });
        let mut state = self.lock();
        match request.method() {
            Some(INITIALIZE) if !failed => {
                state.version = version_in(result);
                state.id = headers.get(SESSION).cloned();
                state.renewal.begin(request.params.clone());
            }
            Some("tools/list") => drop(state.tools.add_page(result)),
            Some(method) if !failed => state.renewal.keep(method, request.params.as_ref()),
            _ => {}
        }
    }

    /// Something that the server says of its own accord.
    pub(super) fn tell(&self, message: Message) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listener.as_mut() {
            let frame_writer = listener.message(message);
            if let Some(frame_writer) = frame_writer {
                frame_writer.wait_for_room();
            }
        }
    }

    /// Tells the listener that the server may be another one now.
    pub(super) fn tell_renewed(&self, hello: &str) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listener.as_mut() {
            listener.began_anew(hello);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, RemoteSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn end_passing(&self) {
        self.lock().passing -= 1;
    }

    /// Waits for the answer to a greeting: whatever comes after it needs the session that it begins, and some clients
    /// do not wait.
    pub(super) async fn wait_for_greeting(&self) {
        let mut greets = self.greets.subscribe();
        // The sender lives in self, so the channel stays open.
        let _open = greets.wait_for(|greets| !greets).await.is_ok();
    }
}

impl RemoteSession {
    /// Which of the sessions of this link it is.
    pub(super) fn number(&self) -> u64 {
        self.lock().renewal.number
    }

    /// The server does not know this session any more.
    pub(super) fn lose(&self, number: u64) {
        let renewal = &mut self.lock().renewal;
        renewal.lost |= renewal.number == number;
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lock().renewal.lost
    }
}

/// The state that a new session takes over from the one before.
#[derive(Debug, Default)]
pub(super) struct SessionRenewal {
    /// The params of the `initialize` that began it.
    pub hello: Option<Bytes>,
    /// Which of the sessions of this link it is.
    pub number: u64,
    pub lost: bool,
    /// One that the server has begun and that is not in use yet.
    pub opening: Option<HeaderValue>,
    /// How often a new one was asked for, and why there was none the last time.
    pub tries: u64,
    pub failed: String,
    /// The params of what the session holds for its client.
    pub subscriptions: Vec<Bytes>,
    pub level: Option<Bytes>,
}

impl SessionRenewal {
    fn is_current(&self, number: u64) -> bool {
        self.number == number && !self.lost
    }

    /// The client itself has begun a session.
    fn begin(&mut self, hello: Option<Bytes>) {
        *self =
            SessionRenewal { hello, number: self.number + 1, tries: self.tries, ..SessionRenewal::default() };
    }

    /// Keeps what a server has agreed to do for as long as the session lasts.
    fn keep(&mut self, method: &str, params: Option<&Bytes>) {
        let Some(params) = params else { return };
        match method {
            SET_LEVEL => self.level = Some(params.clone()),
            SUBSCRIBE | UNSUBSCRIBE => {
                let uri = uri_in(params);
                self.subscriptions.retain(|other| uri_in(other) != uri);
                if method == SUBSCRIBE {
                    if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
                        self.subscriptions.remove(0);
                    }
                    self.subscriptions.push(params.clone());
                }
            }
            _ => {}
        }
    }
}

fn uri_in(params: &Bytes) -> Option<String> {
    Some(Members::parse(text(params))?.text("uri")?.into_owned())
}

/// The version that an `initialize` was answered with.
pub fn version_in(hello: &str) -> Option<HeaderValue> {
    let hello = Members::parse(hello)?;
    HeaderValue::try_from(hello.text("protocolVersion")?.into_owned()).ok()
}
