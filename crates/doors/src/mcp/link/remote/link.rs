//! The way to one remote server, for one request of an HTTP client or for all of a client on pipes.

use super::mirror;
use super::session::RemoteSession;
use crate::http::client::{Client, Prepared};
use crate::http::sse::Piece;
use crate::mcp::message::Message;
use crate::mcp::tools::Tools;
use crate::runtime::RuntimeClock;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Observes a server while it works on a call.
pub trait ResponseObserver: Send + Sync + Debug {
    /// It answers with a stream.
    fn on_open(&self, headers: &HeaderMap);

    /// A part of the stream that is not the response: an event, a comment.
    fn on_piece(&self, piece: Piece);

    /// How the response came, unless it was an event of the stream.
    fn on_response(&self, response: RemoteResponse);
}

/// How an answer came, for the client that gets it.
#[derive(Debug, Clone)]
pub struct RemoteResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: RemoteBody,
}

#[derive(Debug, Clone)]
pub enum RemoteBody {
    /// One JSON document.
    Document,
    /// No message at all: a refusal by whatever stands before the server.
    Refusal(Bytes),
}

/// The caller that a request goes out for.
#[derive(Debug, Clone)]
pub(super) enum RemoteCaller {
    /// As one HTTP client asked: its own headers, and its call, if that is what it asked for.
    Client { headers: HeaderMap, call: Option<Arc<mirror::MirroredCall>> },
    /// As semel itself, for a client that has no HTTP.
    Session(Arc<RemoteSession>),
}

#[derive(Debug, Clone)]
pub struct RemoteLink {
    pub(super) client: Client,
    pub(super) caller: RemoteCaller,
    pub(super) observer: Option<Arc<dyn ResponseObserver>>,
    prepared: Arc<Mutex<Vec<Prepared>>>,
    pub(super) clock: RuntimeClock,
}

impl RemoteLink {
    /// For one request of one HTTP client.
    pub fn for_client(
        client: Client,
        headers: HeaderMap,
        observer: Option<Arc<dyn ResponseObserver>>,
        clock: RuntimeClock,
    ) -> RemoteLink {
        RemoteLink::new(client, RemoteCaller::Client { headers, call: None }, observer, clock)
    }

    /// The request is this call, of one of these tools.
    pub fn for_call(mut self, message: &Message, tools: Arc<Tools>) -> RemoteLink {
        if let RemoteCaller::Client { call, .. } = &mut self.caller {
            *call = Some(Arc::new(mirror::MirroredCall::new(message, tools)));
        }
        self
    }

    /// For a client on standard input and output.
    pub fn for_stdio(client: Client, session: Arc<RemoteSession>, clock: RuntimeClock) -> RemoteLink {
        RemoteLink::new(client, RemoteCaller::Session(session), None, clock)
    }

    fn new(
        client: Client,
        caller: RemoteCaller,
        observer: Option<Arc<dyn ResponseObserver>>,
        clock: RuntimeClock,
    ) -> RemoteLink {
        RemoteLink { client, caller, observer, prepared: Arc::default(), clock }
    }

    /// Resolving, connecting and TLS: all that can fail without leaving a doubt.
    pub async fn ready(&self) -> Result<(), String> {
        if let RemoteCaller::Session(session) = &self.caller {
            session.wait_for_greeting().await;
            self.ensure_session().await?;
        }
        let prepared = self.client.prepare().await.map_err(|error| error.to_string())?;
        self.prepared().push(prepared);
        Ok(())
    }

    pub fn give_back(&self) {
        if let Some(prepared) = self.prepared().pop() {
            self.client.keep(prepared);
        }
    }

    pub(super) fn prepared(&self) -> MutexGuard<'_, Vec<Prepared>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
