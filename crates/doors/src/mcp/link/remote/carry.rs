//! Messages of a client on pipes, carried to a remote server in their order, and the server's own messages back.

use super::events::EventStream;
use super::exchange::{is_stream, request};
use super::link::{RemoteCaller, RemoteLink};
use super::session::{ASKS, ClientQueue, INITIALIZE, QueuedMessage, RemoteSession};
use crate::mcp::frame::Frame;
use crate::mcp::id::Id;
use crate::mcp::link::request::{LinkRequest, Listener};
use crate::mcp::message::{Message, MessageKind, text};
use crate::wire::members::Members;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use semel_gate::clock::Clock;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Messages on their way at once. The client's next one waits.
const PASSING_MAX: usize = 64;

/// How long until the stream for the server's own messages is asked for again, where the server did not say.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
const LISTEN_AGAIN_MAX: Duration = Duration::from_secs(60);

/// A goodbye is a courtesy.
const GOODBYE_TAKES_MAX: Duration = Duration::from_secs(2);

impl RemoteLink {
    pub(super) fn session(&self) -> Option<&Arc<RemoteSession>> {
        match &self.caller {
            RemoteCaller::Session(session) => Some(session),
            RemoteCaller::Client { .. } => None,
        }
    }

    /// Passes a client's message on as it came, in the order in which they came. `is_read`: a call that is known to
    /// change nothing.
    pub fn pass(&self, message: Message, is_read: bool) {
        let Some(session) = self.session() else { return };
        let is_read = is_read || message.method().is_some_and(|method| ASKS.contains(&method));
        session.lock().passing += 1;
        if message.request_id().is_some() && message.method() == Some(INITIALIZE) {
            session.greets.send_replace(true);
        }
        let working = session.in_flight.begin();
        if session.queue.send(QueuedMessage { message, is_read, working }).is_err() {
            session.end_passing();
        }
    }

    /// Whether a client's messages may be passed on; too many wait otherwise.
    pub fn has_room(&self) -> bool {
        self.session().is_none_or(|session| session.lock().passing <= PASSING_MAX)
    }

    /// Begins to carry messages both ways.
    pub fn listen(&self, queue: ClientQueue, listener: impl Listener) {
        if let Some(session) = self.session() {
            let mut place = session.listener.lock().unwrap_or_else(PoisonError::into_inner);
            *place = Some(Box::new(listener));
            tokio::spawn(self.clone().carry(queue));
        }
    }

    /// Waits until all that was passed on is answered.
    pub async fn rest(&self) {
        if let Some(session) = self.session() {
            session.in_flight.idle().await;
        }
    }

    /// Ends the session at the server, and lets go of the listener.
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
            let request = request(self.client.target(), Method::DELETE, headers, Bytes::new());
            self.client.send(prepared, request).await.ok()
        };
        let _a_courtesy = tokio::time::timeout(GOODBYE_TAKES_MAX, goodbye).await;
    }

    async fn carry(self, ClientQueue(mut queue): ClientQueue) {
        let Some(session) = self.session().cloned() else { return };
        while let Some(QueuedMessage { message, is_read, working }) = queue.recv().await {
            let method = message.method().map(str::to_owned);
            match (&message.kind, method.as_deref()) {
                // Later messages need the session that it begins.
                (MessageKind::Request { id, .. }, Some(INITIALIZE)) => {
                    self.clone().carry_request(id.clone(), message, false).await;
                    session.greets.send_replace(false);
                }
                (MessageKind::Request { id, .. }, _) => {
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
                    session.end_passing();
                    continue;
                }
                _ => self.carry_notice(&message).await,
            }
            if method.as_deref() == Some("notifications/initialized") && session.lock().version.is_some() {
                self.open_own_stream();
            }
            session.end_passing();
        }
    }

    async fn carry_request(self, id: Id, message: Message, is_read: bool) {
        let Some(session) = self.session() else { return };
        let outgoing = LinkRequest {
            id: id.clone(),
            frame: Frame::from(message.bytes),
            last_moment: None,
            is_read,
            news: None,
        };
        let answer = self.exchange(outgoing).await.into_reply().or_else(|why| {
            let words = format!("semel has no answer from {}: {why}", self.client.target());
            Message::parse(Frame::refusal(&id, -32603, &words, None).to_bytes())
        });
        if let Ok(answer) = answer {
            session.tell(answer);
        }
    }

    /// A notification, or the client's answer to a question of the server's. Its answer is not waited for.
    async fn carry_notice(&self, message: &Message) {
        if let Ok(prepared) = self.client.prepare_read().await {
            let _not_waited_for = self.client.send(prepared, self.post(message)).await;
        }
    }

    /// Opens the stream for what the server says of its own accord, in place of one of an earlier session.
    pub(super) fn open_own_stream(&self) {
        let Some(session) = self.session() else { return };
        let hearing = tokio::spawn(self.clone().read_own_stream()).abort_handle();
        if let Some(before) = session.lock().hearing.replace(hearing) {
            before.abort();
        }
    }

    /// Hears what the server says of its own accord, for as long as it offers a stream for it.
    async fn read_own_stream(self) {
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
                let _next_time = self.ensure_session().await;
                return;
            }
            if response.status() != StatusCode::OK || !is_stream(response.headers()) {
                return;
            }
            was_open = true;
            let mut events = EventStream::new(response.into_body());
            while let Some(piece) = events.next().await {
                let Ok(piece) = piece else { return };
                last_event = piece.fields.id.or(last_event);
                pause = piece.fields.retry.map_or(pause, Duration::from_millis);
                if let Some(Ok(message)) = piece.fields.data.map(Message::parse) {
                    session.tell(message);
                }
            }
            self.clock.sleep(pause.min(LISTEN_AGAIN_MAX)).await;
        }
    }
}
