//! A server on standard input and output, offered over HTTP: one process for all clients of an era.

use super::relay::{Relay, RenamedRequest};
use super::request::{ClientRequest, Owner, unfinished};
use super::sessions::Sessions;
use super::stream::{CallStream, WAITING_BYTES_MAX};
use super::{respond, validate};
use crate::http::body::Piped;
use crate::http::server::problem;
use crate::mcp::connection::ClientConnection;
use crate::mcp::era;
use crate::mcp::frame::Frame;
use crate::mcp::guard::ClientAnswer;
use crate::mcp::id::Id;
use crate::mcp::limits::Limits;
use crate::mcp::link::child::ChildOutput;
use crate::mcp::link::remote::headers::SESSION;
use crate::mcp::link::request::LinkRequest;
use crate::mcp::listing;
use crate::mcp::message::{Message, MessageKind, text};
use crate::mcp::route::GuardedCall;
use crate::mcp::serve::answer_check::{AnswerCheck, CheckedAnswer};
use crate::mcp::serve::dispatch::{ClientSide, Dispatcher, OwnAnswer, PassedRequest};
use crate::mcp::server::Server;
use crate::mcp::tools::Tools;
use crate::mcp::version;
use crate::services::Services;
use crate::wire::members::{Members, quoted};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// How long a server may take until it can be spoken to: packages are fetched on the first start.
const GREETING_TAKES_MAX: Duration = Duration::from_secs(120);

/// A listening stream keeps so much for a slow reader: a thousand news. All that one client may have keep as much
/// together as its largest calls may take.
const LISTENING_BYTES_MAX: usize = 128 << 10;

/// A server that does not read is not sent more than it has waiting, so that a client that gives up leaves nothing
/// behind.
const ROOM_IS_LOOKED_FOR_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct ChildServer {
    server: Arc<Server>,
    relay: Arc<Relay>,
    sessions: Sessions,
    era: ChildEra,
    /// Its answer when semel introduced itself, for every client.
    hello: tokio::sync::OnceCell<Result<String, String>>,
}

/// The era in which a process is spoken to: servers of both settle on one with the first message of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEra {
    Session,
    Stateless,
    /// The first if it speaks it, else the second: for questions of semel's own.
    Either,
}

impl ChildServer {
    pub fn new(server: Arc<Server>, output: ChildOutput, era: ChildEra) -> std::io::Result<Arc<ChildServer>> {
        let relay = Arc::new(Relay::new(Arc::clone(&server)));
        output.listen(Arc::clone(&relay))?;
        Ok(Arc::new(ChildServer {
            server,
            relay,
            sessions: Sessions::default(),
            era,
            hello: Default::default(),
        }))
    }

    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Introduces semel to the server, once: a client of no abilities, so that the server asks nothing back.
    pub async fn greet(&self) -> Result<(), String> {
        self.hello().await.map(drop)
    }

    async fn hello(&self) -> Result<&str, String> {
        let hello = self.hello.get_or_init(|| async {
            match tokio::time::timeout(GREETING_TAKES_MAX, self.introduce()).await {
                Ok(hello) => hello,
                Err(_) => Err("it does not answer".to_owned()),
            }
        });
        let refused = |why| format!("{} cannot be spoken to: {why}", self.server.name);
        hello.await.as_deref().map_err(refused)
    }

    async fn introduce(&self) -> Result<String, String> {
        match self.era {
            ChildEra::Session => era::introduce(&self.server, false).await,
            ChildEra::Stateless => era::introduce(&self.server, true).await,
            ChildEra::Either => era::introduce_either(&self.server).await,
        }
    }

    pub(super) async fn answer(
        self: &Arc<Self>,
        request: ClientRequest,
        limits: Arc<Limits>,
        message: Option<Message>,
    ) -> Response {
        match (&request.method, message) {
            (&Method::POST, Some(message)) => {
                let hello = match self.hello().await {
                    Ok(hello) => hello.to_owned(),
                    Err(why) => return respond::unreachable(&why),
                };
                let services = Arc::clone(&request.services);
                let (server, options) = (Arc::clone(&self.server), request.options.clone());
                let client = ChildClient::new(Arc::clone(self), hello, request, limits, &message);
                let dispatcher = Dispatcher { client, services, server, options, is_shared: true };
                dispatcher.dispatch(message).await.unwrap_or_else(respond::own)
            }
            (&Method::GET, _) => self.listen(&request.owner),
            (&Method::DELETE, _) if self.sessions.end(&request.owner) => Response::new(Body::empty()),
            (&Method::DELETE, _) => respond::own(no_session(&request.owner)),
            _ => problem(StatusCode::METHOD_NOT_ALLOWED, "MCP uses POST, GET and DELETE"),
        }
    }

    fn tell_cancelled(&self, own: &Id, mut params: Members<'_>) {
        params.set("requestId", own.as_json().to_owned());
        let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
        if let Ok(message) = Message::parse(Bytes::from(text)) {
            self.server.link.pass(message, false);
        }
    }

    fn is_stateless(&self) -> bool {
        self.era == ChildEra::Stateless
    }

    /// Passes a request on under its own name, and gives its answer the client's.
    async fn exchange(
        &self,
        services: &Arc<Services>,
        id: &Id,
        renamed: RenamedRequest,
        check: AnswerCheck,
    ) -> ClientAnswer {
        let frame = Frame::from(renamed.message.bytes.clone());
        let outgoing =
            LinkRequest { id: renamed.own.clone(), frame, last_moment: None, is_read: false, news: None };
        let answer = match self.server.link.exchange(outgoing).await.into_reply() {
            Ok(answer) => answer,
            Err(why) => {
                let words = format!("semel has no answer from {}: {why}", self.server.name);
                return ClientAnswer::plain(Frame::refusal(id, -32603, &words, None));
            }
        };
        let body = answer.body.as_ref().map_or("null", text);
        let failed = matches!(answer.kind, MessageKind::Response { failed: true, .. });
        let CheckedAnswer { result, task_end } =
            check.check(services, &self.server, if failed { Err(body) } else { Ok(body) });
        let frame = answer.edited(Some(id), result.map(Frame::from));
        let unreadable = || Frame::refusal(id, -32603, "semel cannot read the server's answer", None);
        ClientAnswer { task_end, ..ClientAnswer::plain(frame.unwrap_or_else(unreadable)) }
    }

    /// A stream for what the server tells everybody.
    fn listen(&self, owner: &Owner) -> Response {
        if self.is_stateless() {
            return problem(
                StatusCode::METHOD_NOT_ALLOWED,
                "this server is stateless; it has no such stream",
            );
        }
        if self.sessions.find(owner).is_none() {
            return respond::own(no_session(owner));
        }
        let mut news = self.relay.news.subscribe();
        let (writer, piped) = Piped::new();
        tokio::spawn(async move {
            loop {
                let heard = tokio::select! {
                    heard = news.recv() => heard,
                    () = writer.closed() => return,
                };
                match heard {
                    Ok(raw) => {
                        if writer.send(raw).await.is_err() {
                            return;
                        }
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        });
        let mut response = Response::new(Body::new(piped));
        *response.headers_mut() = respond::stream_headers(HeaderMap::new());
        response
    }
}

/// One client's message to a process that many clients share.
struct ChildClient {
    child: Arc<ChildServer>,
    hello: String,
    request: ClientRequest,
    /// Of all requests of this caller that stand alone.
    limits: Arc<Limits>,
    stream: Arc<CallStream>,
    /// A request goes out under a name of semel's own.
    renamed: Option<RenamedRequest>,
    listens: bool,
}

impl ChildClient {
    fn new(
        child: Arc<ChildServer>,
        hello: String,
        request: ClientRequest,
        limits: Arc<Limits>,
        message: &Message,
    ) -> ChildClient {
        let listens = message.method() == Some("subscriptions/listen");
        let stream = CallStream::within(if listens { LISTENING_BYTES_MAX } else { WAITING_BYTES_MAX });
        let stream = Arc::new(stream);
        let own = child.server.next_id();
        let renamed = child.relay.rename(own, message, &name_of(&request.owner), &stream);
        ChildClient { child, hello, request, limits, stream, renamed, listens }
    }
}

impl ClientSide for ChildClient {
    type Reply = Response;

    async fn check_era(&self, id: &Id, method: &str, params: &str) -> Result<(), OwnAnswer> {
        if method == "server/discover" && !self.child.is_stateless() {
            let frame = Frame::refusal(id, -32601, "this server begins with initialize", None);
            return Err(OwnAnswer::new(StatusCode::NOT_FOUND, frame));
        }
        match era::refusal(&self.child.server, id, method, params) {
            Some(refusal) => Err(OwnAnswer::new(StatusCode::BAD_REQUEST, refusal)),
            None => Ok(()),
        }
    }

    /// Every client gets what the server said to semel, and a session of its own.
    fn initialize(&self, id: &Id, params: &str) -> Option<Response> {
        if self.child.is_stateless() {
            return None;
        }
        let ClientRequest { services, caller, .. } = &self.request;
        let changed = listing::hello(services, &self.child.server, "initialize", &self.hello, true);
        let result = in_version(params, changed.as_ref().unwrap_or(&self.hello));
        let mut response = respond::document(StatusCode::OK, &Frame::result(id, Frame::from(result)));
        let session = self.child.sessions.begin(caller.clone(), Arc::clone(&self.limits));
        if let Ok(session) = HeaderValue::try_from(session) {
            response.headers_mut().insert(SESSION, session);
        }
        Some(response)
    }

    fn connection(&self, id: &Id, message: &Message) -> Result<Arc<ClientConnection>, OwnAnswer> {
        let owner = &self.request.owner;
        if !self.child.is_stateless() {
            let session = self.child.sessions.find(owner).ok_or_else(|| no_session(owner))?;
            return Ok(self.request.connection(Some(session), &self.limits));
        }
        match validate::mirrored(&self.request.headers, message) {
            Some(mismatch) => {
                let frame = Frame::refusal(id, validate::HEADER_MISMATCH, &mismatch, None);
                Err(OwnAnswer::new(StatusCode::BAD_REQUEST, frame))
            }
            None => Ok(self.request.connection(None, &self.limits)),
        }
    }

    /// The gate names its requests itself; the progress token is the relay's.
    fn outgoing(&self, message: &Message, _: &Arc<Tools>) -> (Arc<Server>, Message) {
        let renamed = self.renamed.as_ref().map_or(message, |renamed| &renamed.message);
        (Arc::clone(&self.child.server), renamed.clone())
    }

    async fn pass(self, request: PassedRequest) -> Response {
        let PassedRequest { id, connection, check, .. } = request;
        let permit = match self.listens {
            true => connection.limits.listening(),
            false => connection.limits.passing(),
        };
        let (Ok(permit), Some(renamed)) = (permit, self.renamed) else {
            let frame = Frame::refusal(&id, -32603, "too many requests wait for this server", None);
            return respond::document(StatusCode::OK, &frame);
        };
        let reader = self.stream.reader();
        let (child, services, stream) = (self.child, Arc::clone(&self.request.services), self.stream);
        tokio::spawn(async move {
            let _permit = permit;
            let (own, sent) = (renamed.own.clone(), AtomicBool::new(false));
            let exchange = async {
                while !child.server.link.has_room() {
                    tokio::time::sleep(ROOM_IS_LOOKED_FOR_EVERY).await;
                }
                sent.store(true, Ordering::Relaxed);
                child.exchange(&services, &id, renamed, check).await
            };
            tokio::select! {
                biased;
                answer = exchange => stream.end(Some(answer)),
                () = stream.ended() => {}
                // In this era a client that closes the stream cancels the request. In the other one it goes on.
                () = stream.left(), if child.is_stateless() => {
                    if sent.load(Ordering::Relaxed) {
                        child.tell_cancelled(&own, Members::default());
                    }
                }
                () = services.in_flight.given_up() => stream.end(Some(unfinished(&id))),
            }
        });
        respond::answer_soon(reader, &self.request.headers).await
    }

    /// Nothing but a cancel is passed on for one of many.
    async fn forward(self, message: Message, cancels: Option<Id>) -> Response {
        let under_way = cancels.and_then(|id| self.child.relay.under_way(&name_of(&self.request.owner), &id));
        if let Some((own, stream)) = under_way {
            // A server that obeys says nothing more to it.
            stream.end(None);
            let params = Members::parse(message.params.as_ref().map_or("{}", text)).unwrap_or_default();
            self.child.tell_cancelled(&own, params);
        }
        respond::own(OwnAnswer::accepted())
    }

    async fn guard(self, guarded: Box<GuardedCall>) -> Response {
        let reader = self.stream.reader();
        self.request.guard(guarded, self.stream, self.renamed);
        respond::answer_soon(reader, &self.request.headers).await
    }

    fn give_up(&self, id: &Id) -> bool {
        let session = self.child.sessions.find(&self.request.owner);
        self.request.give_up(session, &self.limits, id)
    }
}

/// Versions of the era of sessions, oldest first.
const SESSION_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", version::SESSION];

/// A client is answered in the version that it asked for, if that is none that the server is too old for: what came
/// since is not used towards a client without abilities.
fn in_version(params: &str, result: &str) -> String {
    let asked = Members::parse(params).and_then(|params| Some(params.text("protocolVersion")?.into_owned()));
    let Some(mut members) = Members::parse(result) else { return result.to_owned() };
    let agreed = members.text("protocolVersion").map(|version| version.into_owned()).unwrap_or_default();
    match asked.filter(|asked| SESSION_VERSIONS.contains(&asked.as_str()) && *asked < agreed) {
        Some(asked) => {
            members.set("protocolVersion", quoted(&asked));
            members.to_string()
        }
        None => result.to_owned(),
    }
}

/// A name for one client's requests.
fn name_of(owner: &Owner) -> String {
    format!("{}/{}", owner.principal, owner.session.as_deref().unwrap_or_default())
}

/// As the protocol says: 404 makes a client begin a new session.
fn no_session(owner: &Owner) -> OwnAnswer {
    let (status, code, words) = match owner.session {
        Some(_) => (StatusCode::NOT_FOUND, -32001, "no such session"),
        None => (StatusCode::BAD_REQUEST, -32000, "a session is needed; it begins with initialize"),
    };
    OwnAnswer::new(status, Frame::complaint(code, words))
}
