//! A server behind Streamable HTTP: each request is a POST of its own, whose answer is one document or a stream.

mod exchange;
mod mirror;
mod renewal;
mod session;

pub use exchange::{is_stream, request};
pub use session::{Queue, Session};

use super::{Exchanged, Listener, Outgoing};
use crate::http::client::{Client, Prepared};
use crate::http::sse::Piece;
use crate::mcp::message::Message;
use crate::mcp::tools::Tools;
use crate::runtime::RuntimeClock;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The beginning of the headers that mirror single arguments.
pub const PARAM: &str = "mcp-param-";

/// Hears a server while it works on a call.
pub trait Told: Send + Sync + Debug {
    /// It answers with a stream.
    fn opened(&self, headers: &HeaderMap);

    /// A part of the stream that is not the response: an event, a comment.
    fn piece(&self, piece: Piece);

    /// How the response came.
    fn answered(&self, answered: Answered);
}

/// An answer's surroundings, for whoever gives it on.
#[derive(Debug, Clone)]
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub form: Form,
}

#[derive(Debug, Clone)]
pub enum Form {
    /// One JSON document.
    Document,
    /// An event.
    Event,
    /// No message at all: a refusal by whatever stands before the server.
    Refusal(Bytes),
}

/// With what a request goes out.
#[derive(Debug, Clone)]
enum Speaks {
    /// As one HTTP client asked: its own headers, and its call, if that is what it asked for.
    Client { headers: HeaderMap, call: Option<Arc<mirror::Call>> },
    /// As semel itself, for a client that has no HTTP.
    Session(Arc<Session>),
}

#[derive(Debug, Clone)]
pub struct RemoteLink {
    client: Client,
    speaks: Speaks,
    told: Option<Arc<dyn Told>>,
    prepared: Arc<Mutex<Vec<Prepared>>>,
    clock: RuntimeClock,
}

impl RemoteLink {
    /// For one request of one HTTP client.
    pub fn for_client(
        client: Client,
        headers: HeaderMap,
        told: Option<Arc<dyn Told>>,
        clock: RuntimeClock,
    ) -> RemoteLink {
        RemoteLink::new(client, Speaks::Client { headers, call: None }, told, clock)
    }

    /// The request is this call, of one of these tools.
    pub fn for_call(mut self, message: &Message, tools: Arc<Tools>) -> RemoteLink {
        if let Speaks::Client { call, .. } = &mut self.speaks {
            *call = Some(Arc::new(mirror::Call::new(message, tools)));
        }
        self
    }

    /// For a client on standard input and output.
    pub fn for_stdio(client: Client, session: Arc<Session>, clock: RuntimeClock) -> RemoteLink {
        RemoteLink::new(client, Speaks::Session(session), None, clock)
    }

    fn new(client: Client, speaks: Speaks, told: Option<Arc<dyn Told>>, clock: RuntimeClock) -> RemoteLink {
        RemoteLink { client, speaks, told, prepared: Arc::default(), clock }
    }

    /// Resolving, connecting and TLS: all that can fail without leaving a doubt.
    pub async fn ready(&self) -> Result<(), String> {
        if let Speaks::Session(session) = &self.speaks {
            session.greeted().await;
            self.in_session().await?;
        }
        let prepared = self.client.prepare().await.map_err(|error| error.to_string())?;
        self.lock().push(prepared);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Prepared>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
