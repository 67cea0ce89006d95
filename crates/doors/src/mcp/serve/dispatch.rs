//! Dispatch by method: what becomes of each message of a client, written once for every client side and every link.

use super::answer_check::AnswerCheck;
use crate::call_options::CallOptions;
use crate::mcp::connection::ClientConnection;
use crate::mcp::frame::Frame;
use crate::mcp::id::Id;
use crate::mcp::message::{Message, MessageKind, text};
use crate::mcp::own_tools;
use crate::mcp::route::{CallRoute, GuardedCall, route};
use crate::mcp::server::Server;
use crate::mcp::task::query::task_of;
use crate::mcp::tools::Tools;
use crate::mcp::version;
use crate::services::Services;
use crate::wire::members::Members;
use http::StatusCode;
use std::sync::Arc;

/// The client side of one message: a line on a pipe, or one HTTP request, and how its server is reached from there.
pub trait ClientSide: Sized + Send + Sync {
    /// The response over HTTP. On a pipe frames leave by themselves.
    type Reply: Send;

    /// `Err`: the server is of the other era, so that the request cannot be passed.
    fn check_era(
        &self,
        id: &Id,
        method: &str,
        params: &str,
    ) -> impl Future<Output = Result<(), OwnAnswer>> + Send;

    /// Answers `initialize` where semel has introduced itself to the server, for all clients. `None`: the server does.
    fn initialize(&self, _id: &Id, _params: &str) -> Option<Self::Reply> {
        None
    }

    /// The connection that a request belongs to; `Err`: there is none.
    fn connection(&self, id: &Id, message: &Message) -> Result<Arc<ClientConnection>, OwnAnswer>;

    /// Waits for the answer to a question of semel's own. `Err`: the client has given its request up meanwhile.
    fn wait_for<T: Send>(
        &self,
        _id: &Id,
        question: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Result<T, OwnAnswer>> + Send {
        async { Ok(question.await) }
    }

    /// A call as it is read and sent, and the way that it is sent by.
    fn outgoing(&self, message: &Message, tools: &Arc<Tools>) -> (Arc<Server>, Message);

    /// Passes a request on.
    fn pass(self, request: PassedRequest) -> impl Future<Output = Self::Reply> + Send;

    /// Passes a notification or a response on. `cancels`: the request that the client no longer waits for.
    fn forward(self, message: Message, cancels: Option<Id>) -> impl Future<Output = Self::Reply> + Send;

    /// Takes a call through the gate.
    fn guard(self, guarded: Box<GuardedCall>) -> impl Future<Output = Self::Reply> + Send;

    /// The client no longer waits for a guarded call. `false`: the request is none.
    fn give_up(&self, id: &Id) -> bool;
}

/// One message on its way from its client.
#[derive(Debug)]
pub struct Dispatcher<C> {
    pub client: C,
    pub services: Arc<Services>,
    /// The server as this client sees it.
    pub server: Arc<Server>,
    pub options: CallOptions,
    /// Whether all clients share one process, which takes them for one.
    pub is_shared: bool,
}

/// Semel's own answer, where a message goes no further.
#[derive(Debug)]
pub struct OwnAnswer {
    /// Over HTTP.
    pub status: StatusCode,
    /// `None`: nothing is to be said.
    pub frame: Option<Frame>,
}

impl OwnAnswer {
    pub fn new(status: StatusCode, frame: Frame) -> OwnAnswer {
        OwnAnswer { status, frame: Some(frame) }
    }

    pub fn accepted() -> OwnAnswer {
        OwnAnswer { status: StatusCode::ACCEPTED, frame: None }
    }

    /// A refusal in the protocol's own form.
    fn refusal(id: &Id, code: i32, words: &str) -> OwnAnswer {
        OwnAnswer::new(StatusCode::OK, Frame::refusal(id, code, words, None))
    }

    /// A complaint about a notification, which has no id.
    fn complaint(code: i32, words: &str) -> OwnAnswer {
        let frame = Frame::complaint(code, &format!("semel passed nothing on: {words}"));
        OwnAnswer::new(StatusCode::BAD_REQUEST, frame)
    }
}

/// A request that goes on to the server.
#[derive(Debug)]
pub struct PassedRequest {
    pub id: Id,
    pub message: Message,
    pub connection: Arc<ClientConnection>,
    pub check: AnswerCheck,
    /// A call that is known to change nothing.
    pub is_read: bool,
}

/// Requests that change what a server tells its one client.
const UNSHARED: [&str; 3] = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Notifications that say nothing about a process that many share: semel has introduced itself, has no roots, and lets
/// the server ask nothing.
const UNTOLD: [&str; 3] =
    ["notifications/initialized", "notifications/roots/list_changed", "notifications/progress"];

impl<C: ClientSide> Dispatcher<C> {
    pub async fn dispatch(self, message: Message) -> Result<C::Reply, OwnAnswer> {
        match message.kind.clone() {
            MessageKind::Request { id, method } => self.request(id, &method, message).await,
            MessageKind::Notification { method } => self.notification(&method, message).await,
            MessageKind::Response { .. } if self.is_shared => Err(OwnAnswer::accepted()),
            MessageKind::Response { .. } => Ok(self.client.forward(message, None).await),
        }
    }

    async fn request(self, id: Id, method: &str, message: Message) -> Result<C::Reply, OwnAnswer> {
        let params = message.params.clone().unwrap_or_default();
        self.client.check_era(&id, method, text(&params)).await?;
        if method == "initialize"
            && let Some(reply) = self.client.initialize(&id, text(&params))
        {
            return Ok(reply);
        }
        let connection = self.client.connection(&id, &message)?;
        if method == "tools/call" {
            return self.call(id, message, connection).await;
        }
        if self.is_shared && UNSHARED.contains(&method) {
            let words = "many clients share this server, and none of them may say this for all";
            return Err(OwnAnswer::refusal(&id, -32601, words));
        }
        let is_own = |task: String| self.server.tasks().is_owned_by(&connection.caller.whose(), &task);
        if self.is_shared && task_of(method, text(&params)).is_some_and(|task| !is_own(task)) {
            return Err(OwnAnswer::refusal(&id, -32602, "there is no such task"));
        }
        let check = AnswerCheck::of(method, &params, self.is_shared, || connection.caller.whose());
        let request = PassedRequest { id, message, connection, check, is_read: false };
        Ok(self.client.pass(request).await)
    }

    async fn call(
        self,
        id: Id,
        message: Message,
        connection: Arc<ClientConnection>,
    ) -> Result<C::Reply, OwnAnswer> {
        let Dispatcher { client, services, server, options, is_shared } = self;
        let params = message.params.clone().unwrap_or_default();
        let tools = match server.known_tools() {
            Some(tools) => tools,
            // Observing asks for nothing, so that the server sees no difference either.
            None if services.observes() => Arc::default(),
            // A client may call a tool that it never listed; whether it is a read is asked first.
            None => {
                let meta = version::meta_of(text(&params));
                client.wait_for(&id, server.tools(&meta)).await?
            }
        };
        let (server, outgoing) = client.outgoing(&message, &tools);
        match route(&services, &id, &outgoing, &server, &connection, &tools, &options) {
            CallRoute::Pass => {
                let check = AnswerCheck::of("tools/call", &params, is_shared, || connection.caller.whose());
                // Observing looks at no call, so it may be anything.
                let is_read = !services.observes();
                Ok(client.pass(PassedRequest { id, message, connection, check, is_read }).await)
            }
            CallRoute::Answer(frame) => Err(OwnAnswer::new(StatusCode::OK, frame)),
            CallRoute::Guard(guarded) => Ok(client.guard(guarded).await),
            CallRoute::Own(call) => {
                let frame = own_tools::answer(&services, &server, &connection, &call).await;
                Err(OwnAnswer::new(StatusCode::OK, frame))
            }
        }
    }

    async fn notification(self, method: &str, message: Message) -> Result<C::Reply, OwnAnswer> {
        match method {
            // Its caller could not be told what became of it, and it would pass the gate by.
            "tools/call" if !self.services.observes() => {
                Err(OwnAnswer::complaint(-32600, "a call of a tool needs an id"))
            }
            "notifications/cancelled" => {
                let id = cancelled_id(&message);
                match id.as_ref().is_some_and(|id| self.client.give_up(id)) {
                    // Rule 12: a call that was sent is finished and kept for the retry.
                    true => Err(OwnAnswer::accepted()),
                    false => Ok(self.client.forward(message, id).await),
                }
            }
            _ if self.is_shared && UNTOLD.contains(&method) => Err(OwnAnswer::accepted()),
            _ if self.is_shared => {
                let words = "many clients share this server, and one of them cannot speak for all";
                Err(OwnAnswer::complaint(-32601, words))
            }
            _ => Ok(self.client.forward(message, None).await),
        }
    }
}

/// The request that a `notifications/cancelled` is about.
fn cancelled_id(message: &Message) -> Option<Id> {
    Id::from_json(Members::parse(message.params.as_ref().map_or("{}", text))?.get("requestId")?)
}
