//! One conversation with a remote server, for a client that has no HTTP of its own.

use super::exchange::is_stream;
use super::renewal::{ASKS, Renewal, version_in};
use super::{Exchanged, Listener, Outgoing, RemoteLink, SESSION, VERSION, mirror};
use crate::http::sse::Parser;
use crate::in_flight::{InFlight, InFlightGuard};
use crate::mcp::era::version_of;
use crate::mcp::frame::Frame;
use crate::mcp::message::{Id, Kind, Message, text};
use crate::mcp::tools::Tools;
use crate::wire::members::Members;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use semel_gate::clock::Clock;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

pub(super) const INITIALIZE: &str = "initialize";

/// Messages on their way at once. The client's next one waits.
const PASSING_MAX: usize = 64;

/// How long until the stream for the server's own messages is asked for again, where the server did not say.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
const LISTEN_AGAIN_MAX: Duration = Duration::from_secs(60);

/// A goodbye is a courtesy.
const GOODBYE_TAKES_MAX: Duration = Duration::from_secs(2);

pub struct Session {
    /// Sent with every request: what the operator configured.
    headers: HeaderMap,
    state: Mutex<State>,
    listener: Mutex<Option<Box<dyn Listener>>>,
    queue: mpsc::UnboundedSender<Passed>,
    /// Requests that were passed on and are not answered yet.
    busy: InFlight,
    /// The client has greeted the server, which has not answered yet.
    greets: watch::Sender<bool>,
    /// One new session at a time.
    pub(super) renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
pub(super) struct State {
    pub id: Option<HeaderValue>,
    /// The version that `initialize` agreed on; absent in the stateless era.
    pub version: Option<HeaderValue>,
    /// The state that the next session needs.
    pub renewal: Renewal,
    /// The stream for what the server says of its own accord.
    pub hearing: Option<AbortHandle>,
    /// For the arguments that are mirrored into headers.
    tools: Tools,
    passing: usize,
    /// Requests that wait for their answer; in the stateless era letting go of one cancels it.
    waiting: HashMap<Id, AbortHandle>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may be credentials.
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// A client's message on its way.
#[derive(Debug)]
struct Passed {
    message: Message,
    /// A call that is known to change nothing.
    is_read: bool,
    working: InFlightGuard,
}

/// Messages of the client that were not passed on yet.
#[derive(Debug)]
pub struct Queue(mpsc::UnboundedReceiver<Passed>);

impl Session {
    pub fn new(headers: HeaderMap) -> (Arc<Session>, Queue) {
        let (queue, queued) = mpsc::unbounded_channel();
        let session = Session {
            headers,
            state: Mutex::default(),
            listener: Mutex::default(),
            queue,
            busy: InFlight::default(),
            greets: watch::channel(false).0,
            renewing: tokio::sync::Mutex::default(),
        };
        (Arc::new(session), Queue(queued))
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
    pub(super) fn heard(&self, number: u64, headers: &HeaderMap) {
        let mut state = self.lock();
        if let Some(id) = headers.get(SESSION).filter(|_| state.renewal.is_current(number)) {
            state.id = Some(id.clone());
        }
    }

    /// Takes in what a request was answered with.
    pub(super) fn learned(&self, request: &Message, answer: &Message, headers: &HeaderMap) {
        let result = answer.body.as_ref().map_or("null", text);
        let failed = matches!(answer.kind, Kind::Response { failed: true, .. });
        let mut state = self.lock();
        match request.method() {
            Some(INITIALIZE) if !failed => {
                state.version = version_in(result);
                state.id = headers.get(SESSION).cloned();
                state.renewal.begun_by(request.params.clone());
            }
            Some("tools/list") => drop(state.tools.add_page(result)),
            Some(method) if !failed => state.renewal.asked_for(method, request.params.as_ref()),
            _ => {}
        }
    }

    /// Something that the server says of its own accord.
    pub(super) fn tell(&self, message: Message) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listener.as_mut() {
            let outbox = listener.message(message);
            if let Some(outbox) = outbox {
                outbox.wait_for_room();
            }
        }
    }

    /// Tells the listener that the server may be another one now.
    pub(super) fn began_anew(&self, hello: &str) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listener.as_mut() {
            listener.began_anew(hello);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn passed(&self) {
        self.lock().passing -= 1;
    }

    /// Waits for the answer to a greeting: whatever comes after it needs the session that it begins, and some clients
    /// do not wait.
    pub(super) async fn greeted(&self) {
        let mut greets = self.greets.subscribe();
        // The sender lives in self, so the channel stays open.
        let _open = greets.wait_for(|greets| !greets).await.is_ok();
    }
}

impl RemoteLink {
    pub(super) fn session(&self) -> Option<&Arc<Session>> {
        match &self.speaks {
            super::Speaks::Session(session) => Some(session),
            super::Speaks::Client { .. } => None,
        }
    }

    /// Passes a client's message on as it came, in the order in which they came.
    pub fn pass(&self, message: Message) {
        let is_read = message.method().is_some_and(|method| ASKS.contains(&method));
        self.queue(message, is_read);
    }

    /// The same for a call that is known to change nothing.
    pub fn pass_read(&self, message: Message) {
        self.queue(message, true);
    }

    fn queue(&self, message: Message, is_read: bool) {
        if let Some(session) = self.session() {
            session.lock().passing += 1;
            if message.request_id().is_some() && message.method() == Some(INITIALIZE) {
                session.greets.send_replace(true);
            }
            let working = session.busy.begin();
            if session.queue.send(Passed { message, is_read, working }).is_err() {
                session.passed();
            }
        }
    }

    /// Whether a client's messages may be passed on; too many wait otherwise.
    pub fn has_room(&self) -> bool {
        self.session().is_none_or(|session| session.lock().passing <= PASSING_MAX)
    }

    /// Begins to carry messages both ways.
    pub fn listen(&self, queue: Queue, listener: impl Listener) {
        if let Some(session) = self.session() {
            let mut place = session.listener.lock().unwrap_or_else(PoisonError::into_inner);
            *place = Some(Box::new(listener));
            tokio::spawn(self.clone().carry(queue));
        }
    }

    /// Waits until all that was passed on is answered.
    pub async fn rest(&self) {
        if let Some(session) = self.session() {
            session.busy.idle().await;
        }
    }

    /// Ends the session at the server, and lets go of whoever listens.
    pub async fn close(&self) {
        let Some(session) = self.session() else { return };
        if session.lock().id.is_some() && !session.is_lost() {
            self.goodbye(session.headers(None)).await;
        }
        session.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    pub(super) async fn goodbye(&self, headers: HeaderMap) {
        let goodbye = async {
            let prepared = self.client.prepare_read().await.ok()?;
            let request =
                super::exchange::request(self.client.target(), Method::DELETE, headers, Bytes::new());
            self.client.send(prepared, request).await.ok()
        };
        let _a_courtesy = tokio::time::timeout(GOODBYE_TAKES_MAX, goodbye).await;
    }

    async fn carry(self, Queue(mut queue): Queue) {
        let Some(session) = self.session().cloned() else { return };
        while let Some(Passed { message, is_read, working }) = queue.recv().await {
            let method = message.method().map(str::to_owned);
            match (&message.kind, method.as_deref()) {
                // Later messages need the session that it begins.
                (Kind::Request { id, .. }, Some(INITIALIZE)) => {
                    self.clone().carry_request(id.clone(), message, false).await;
                    session.greets.send_replace(false);
                }
                (Kind::Request { id, .. }, _) => {
                    let (link, id) = (self.clone(), id.clone());
                    let carried = link.carry_request(id.clone(), message, is_read);
                    let task = tokio::spawn(async move {
                        carried.await;
                        drop(working);
                    });
                    let task = task.abort_handle();
                    let mut state = session.lock();
                    state.waiting.retain(|_, task| !task.is_finished());
                    state.waiting.insert(id, task);
                }
                (_, Some("notifications/cancelled")) if session.lock().version.is_none() => {
                    let params = message.params.as_ref().map_or("{}", text);
                    let of =
                        Members::parse(params).and_then(|params| Id::from_json(params.get("requestId")?));
                    if let Some(task) = of.and_then(|id| session.lock().waiting.remove(&id)) {
                        task.abort();
                    }
                    session.passed();
                    continue;
                }
                _ => self.carry_notice(&message).await,
            }
            if method.as_deref() == Some("notifications/initialized") && session.lock().version.is_some() {
                self.listens_on();
            }
            session.passed();
        }
    }

    async fn carry_request(self, id: Id, message: Message, is_read: bool) {
        let Some(session) = self.session() else { return };
        let outgoing = Outgoing { id: id.clone(), frame: Frame::from(message.bytes), last_moment: None };
        let exchanged = match is_read {
            true => self.ask(outgoing).await,
            false => self.exchange(outgoing).await,
        };
        let answer = match exchanged {
            Exchanged::Reply(answer) => answer,
            Exchanged::Refused(why)
            | Exchanged::Unclear(why)
            | Exchanged::NeverSent(why)
            | Exchanged::Lost(why) => {
                let words = format!("semel has no answer from {}: {why}", self.client.target());
                let frame = Frame::refusal(&id, -32603, &words, None);
                match Message::parse(frame.to_bytes()) {
                    Ok(answer) => answer,
                    Err(_) => return,
                }
            }
        };
        session.tell(answer);
    }

    /// A notification, or the client's answer to a question of the server's. Nobody waits for what becomes of it.
    async fn carry_notice(&self, message: &Message) {
        if let Ok(prepared) = self.client.prepare_read().await {
            let _nobody_waits = self.client.send(prepared, self.post(message)).await;
        }
    }

    /// Opens the stream for what the server says of its own accord, in place of one of an earlier session.
    pub(super) fn listens_on(&self) {
        if let Some(session) = self.session() {
            let hearing = tokio::spawn(self.clone().hear()).abort_handle();
            if let Some(before) = session.lock().hearing.replace(hearing) {
                before.abort();
            }
        }
    }

    /// Hears what the server says of its own accord, for as long as it offers a stream for it.
    async fn hear(self) {
        let Some(session) = self.session() else { return };
        let (number, mut was_open) = (session.number(), false);
        let (mut last_event, mut pause) = (None::<String>, LISTEN_AGAIN);
        while let Ok(prepared) = self.client.prepare_read().await {
            let Ok(response) = self.client.send(prepared, self.get(last_event.as_deref())).await else {
                return;
            };
            // Some servers without such a stream say so with a 404.
            if response.status() == StatusCode::NOT_FOUND && was_open {
                session.lose(number);
                // If there is no new session now, the next request asks for one.
                let _next_time = self.in_session().await;
                return;
            }
            if response.status() != StatusCode::OK || !is_stream(response.headers()) {
                return;
            }
            was_open = true;
            let mut body = response.into_body();
            let mut parser = Parser::default();
            while let Some(Ok(frame)) = body.frame().await {
                parser.push(&frame.into_data().unwrap_or_default());
                loop {
                    let piece = match parser.next_piece() {
                        Ok(Some(piece)) => piece,
                        Ok(None) => break,
                        Err(_) => return,
                    };
                    last_event = piece.fields.id.or(last_event);
                    pause = piece.fields.retry.map_or(pause, Duration::from_millis);
                    if let Some(Ok(message)) = piece.fields.data.map(Message::parse) {
                        session.tell(message);
                    }
                }
            }
            self.clock.sleep(pause.min(LISTEN_AGAIN_MAX)).await;
        }
    }
}
