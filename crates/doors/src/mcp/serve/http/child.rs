//! A server on standard input and output, offered over HTTP: one process for all clients of an era.

use super::owner::Owner;
use super::relay::{Hears, Relay, Renamed};
use super::sessions::Sessions;
use super::stream::{CallStream, WAITING_BYTES_MAX};
use super::{Asks, respond, validate};
use crate::call_options::CallOptions;
use crate::caller::Caller;
use crate::http::body::Piped;
use crate::http::server::problem;
use crate::mcp::classify;
use crate::mcp::connection::Connection;
use crate::mcp::door::{Door, Given, Route};
use crate::mcp::era;
use crate::mcp::frame::Frame;
use crate::mcp::limits::Limits;
use crate::mcp::link::child::ChildOutput;
use crate::mcp::link::remote::SESSION;
use crate::mcp::link::{Exchanged, Outgoing};
use crate::mcp::message::{Id, Kind, Message, text};
use crate::mcp::own_tools;
use crate::mcp::serve::watched::{Inspection, Watched, call_without_id};
use crate::mcp::server::Server;
use crate::mcp::tasks;
use crate::wire::members::{Members, quoted};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
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

/// A server that does not read is not sent more than it has waiting, so that whoever gives up leaves nothing behind.
const ROOM_IS_LOOKED_FOR_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct Child {
    server: Arc<Server>,
    relay: Arc<Relay>,
    sessions: Sessions,
    tongue: Tongue,
    /// Its answer when semel introduced itself.
    hello: tokio::sync::OnceCell<Result<Hello, String>>,
}

/// The era in which a process is spoken to: servers of both settle on one with the first message of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tongue {
    Session,
    Stateless,
    /// The first if it speaks it, else the second: for questions of semel's own.
    Either,
}

#[derive(Debug, Clone)]
enum Hello {
    /// The result of `initialize`, for every client.
    Session {
        result: String,
    },
    Stateless,
}

/// One client's request.
struct Asked<'a> {
    door: &'a Arc<Door>,
    caller: Caller,
    options: CallOptions,
    /// Of all requests of this caller that stand alone.
    limits: Arc<Limits>,
    owner: Owner,
    headers: HeaderMap,
}

impl Child {
    pub fn new(server: Arc<Server>, output: ChildOutput, tongue: Tongue) -> std::io::Result<Arc<Child>> {
        let relay = Arc::new(Relay::default());
        relay.knows(Arc::clone(&server));
        output.listen(Hears(Arc::clone(&relay)))?;
        Ok(Arc::new(Child {
            server,
            relay,
            sessions: Sessions::default(),
            tongue,
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

    async fn hello(&self) -> Result<&Hello, String> {
        let hello = self.hello.get_or_init(|| async {
            match tokio::time::timeout(GREETING_TAKES_MAX, self.introduce()).await {
                Ok(hello) => hello,
                Err(_) => Err("it does not answer".to_owned()),
            }
        });
        hello.await.as_ref().map_err(|why| format!("{} cannot be spoken to: {why}", self.server.name))
    }

    async fn introduce(&self) -> Result<Hello, String> {
        match self.tongue {
            Tongue::Session => self.introduce_as(false).await,
            Tongue::Stateless => self.introduce_as(true).await,
            Tongue::Either => match self.introduce_as(false).await {
                Err(_) => self.introduce_as(true).await,
                hello => hello,
            },
        }
    }

    async fn introduce_as(&self, stateless: bool) -> Result<Hello, String> {
        let result = era::introduce(&self.server, stateless).await?;
        Ok(match stateless {
            true => Hello::Stateless,
            false => Hello::Session { result },
        })
    }

    pub(super) async fn answer(
        self: &Arc<Self>,
        door: &Arc<Door>,
        asks: Asks,
        limits: Arc<Limits>,
        parts: Parts,
        message: Option<Message>,
    ) -> Response {
        let session = parts.headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let Asks { caller, options } = asks;
        let owner = Owner { principal: caller.whose(), session };
        let asked = Asked { door, caller, options, limits, owner, headers: parts.headers };
        match (parts.method, message) {
            (Method::POST, Some(message)) => self.post(asked, message).await,
            (Method::GET, _) => self.listen(&asked),
            (Method::DELETE, _) if self.sessions.end(&asked.owner) => Response::new(Body::empty()),
            (Method::DELETE, _) => no_session(&asked.owner),
            _ => problem(StatusCode::METHOD_NOT_ALLOWED, "MCP uses POST, GET and DELETE"),
        }
    }

    async fn post(self: &Arc<Self>, asked: Asked<'_>, message: Message) -> Response {
        let hello = match self.hello().await {
            Ok(hello) => hello.clone(),
            Err(why) => return respond::unreachable(&why),
        };
        let params = message.params.clone().unwrap_or_default();
        match (message.kind.clone(), hello) {
            (Kind::Request { id, method }, hello) => {
                if let (Hello::Session { .. }, "server/discover") = (&hello, method.as_str()) {
                    let frame = Frame::refusal(&id, -32601, "this server begins with initialize", None);
                    return respond::document(StatusCode::NOT_FOUND, &frame);
                }
                if let Some(refusal) = era::refusal(&self.server, &id, &method, text(&params)) {
                    return respond::document(StatusCode::BAD_REQUEST, &refusal);
                }
                match hello {
                    Hello::Session { result } if method == "initialize" => {
                        self.initialize(asked, &id, text(&params), &result)
                    }
                    Hello::Session { .. } => match self.sessions.find(&asked.owner) {
                        // A header names the run of one request, so such a request stands alone.
                        Some(connection) if asked.caller.run.is_some() => {
                            let limits = Arc::clone(&connection.limits);
                            let connection = Connection::within(asked.caller.clone(), limits);
                            self.request(asked, id, message, Arc::new(connection)).await
                        }
                        Some(connection) => self.request(asked, id, message, connection).await,
                        None => no_session(&asked.owner),
                    },
                    Hello::Stateless => {
                        if let Some(mismatch) = validate::mirrored(&asked.headers, &message) {
                            let frame = Frame::refusal(&id, validate::HEADER_MISMATCH, &mismatch, None);
                            return respond::document(StatusCode::BAD_REQUEST, &frame);
                        }
                        let connection = Connection::within(asked.caller.clone(), Arc::clone(&asked.limits));
                        self.request(asked, id, message, Arc::new(connection)).await
                    }
                }
            }
            (Kind::Notification { method }, _) if method == "notifications/cancelled" => {
                self.cancel(&asked, text(&params));
                accepted()
            }
            (Kind::Notification { method }, _) if method == "tools/call" => {
                respond::document(StatusCode::BAD_REQUEST, &call_without_id())
            }
            // Semel has introduced itself, has no roots, and lets the server ask nothing: there is nobody to tell.
            (Kind::Notification { method }, _) if UNTOLD.contains(&method.as_str()) => accepted(),
            (Kind::Response { .. }, _) => accepted(),
            (Kind::Notification { .. }, _) => {
                let words = "semel passed nothing on: many clients share this server, and one of them cannot speak \
                             for all";
                respond::document(StatusCode::BAD_REQUEST, &Frame::complaint(-32601, words))
            }
        }
    }

    /// Every client gets what the server said to semel, and a session of its own.
    fn initialize(&self, asked: Asked<'_>, id: &Id, params: &str, result: &str) -> Response {
        let result = offered(asked.door.hello(&self.server, "initialize", result), result);
        let frame = Frame::result(id, Frame::from(in_version(params, &result)));
        let mut response = respond::document(StatusCode::OK, &frame);
        let session = self.sessions.begin(asked.caller, asked.limits);
        if let Ok(session) = HeaderValue::try_from(session) {
            response.headers_mut().insert(SESSION, session);
        }
        response
    }

    /// The client no longer waits. What is guarded goes on all the same.
    fn cancel(&self, asked: &Asked<'_>, params: &str) {
        let Some(params) = Members::parse(params) else { return };
        let Some(id) = params.get("requestId").and_then(Id::from_json) else { return };
        let is_guarded = match self.sessions.find(&asked.owner) {
            Some(connection) => connection.give_up(&id),
            // Two clients of one principal may use the same id, so the answer still goes to the one that reads.
            None => asked.limits.guarded.has(&asked.owner.principal, &id),
        };
        if is_guarded {
            return;
        }
        if let Some((own, stream)) = self.relay.under_way(&name_of(&asked.owner), &id) {
            // A server that obeys says nothing more to it.
            stream.end(None);
            self.tell_cancelled(&own, params.clone());
        }
    }

    fn tell_cancelled(&self, own: &Id, mut params: Members<'_>) {
        params.set("requestId", own.as_json().to_owned());
        let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
        if let Ok(message) = Message::parse(Bytes::from(text)) {
            self.server.link.pass(message);
        }
    }

    fn is_stateless(&self) -> bool {
        matches!(self.hello.get(), Some(Ok(Hello::Stateless)))
    }

    async fn request(
        self: &Arc<Self>,
        asked: Asked<'_>,
        id: Id,
        message: Message,
        connection: Arc<Connection>,
    ) -> Response {
        let listens = message.method() == Some("subscriptions/listen");
        let stream = CallStream::within(if listens { LISTENING_BYTES_MAX } else { WAITING_BYTES_MAX });
        let stream = Arc::new(stream);
        let own = self.server.next_id();
        let Some(renamed) = self.relay.rename(own, &message, &name_of(&asked.owner), &stream) else {
            let frame = Frame::refusal(&id, -32600, "semel passed nothing on: it is not a request", None);
            return respond::document(StatusCode::BAD_REQUEST, &frame);
        };
        if message.method() == Some("tools/call") {
            let params = message.params.clone().unwrap_or_default();
            let tools = self.server.tools(&era::meta_of(text(&params))).await;
            // The gate names its requests itself; the client's own id is what it answers to.
            let Asked { door, options, .. } = &asked;
            match door.route(&id, &renamed.message, &self.server, &connection, &tools, options) {
                Route::Pass => {}
                Route::Answer(frame) => return respond::document(StatusCode::OK, &frame),
                Route::Own(call) => {
                    let frame = own_tools::answer(asked.door, &self.server, &connection, &call).await;
                    return respond::document(StatusCode::OK, &frame);
                }
                Route::Guard(mut guarded) => {
                    guarded.token = asked.caller.token.clone();
                    let working = asked.door.services.in_flight.begin();
                    let (door, ending) = (Arc::clone(asked.door), Arc::clone(&stream));
                    tokio::spawn(async move {
                        tokio::select! {
                            given = door.guard(*guarded) => ending.end(given),
                            // Some clients wait for ever on a stream that ends without an answer.
                            () = door.services.in_flight.given_up() => ending.end(Some(Given::plain(unfinished(&id)))),
                        }
                        drop((renamed, working));
                    });
                    return respond::call_soon(stream.reader(), &asked.headers).await;
                }
            }
        }
        if message.method().is_some_and(|method| UNSHARED.contains(&method)) {
            let words = "many clients share this server, and none of them may say this for all";
            return respond::document(StatusCode::OK, &Frame::refusal(&id, -32601, words, None));
        }
        let whose = connection.caller.whose();
        let params = message.params.clone().unwrap_or_default();
        let of_another = tasks::task_of(message.method().unwrap_or_default(), text(&params))
            .is_some_and(|task| !self.server.tasks().is_of(&whose, &task));
        if of_another {
            let frame = Frame::refusal(&id, -32602, "there is no such task", None);
            return respond::document(StatusCode::OK, &frame);
        }
        let place = match listens {
            true => connection.limits.listening(),
            false => connection.limits.passing(),
        };
        let Ok(place) = place else {
            let frame = Frame::refusal(&id, -32603, "too many requests wait for this server", None);
            return respond::document(StatusCode::OK, &frame);
        };
        let reader = stream.reader();
        let (this, door, ending) = (Arc::clone(self), Arc::clone(asked.door), stream);
        tokio::spawn(async move {
            let _place = place;
            let (own, sent) = (renamed.own.clone(), AtomicBool::new(false));
            let passed = async {
                while !this.server.link.has_room() {
                    tokio::time::sleep(ROOM_IS_LOOKED_FOR_EVERY).await;
                }
                sent.store(true, Ordering::Relaxed);
                this.pass(&door, &id, renamed, whose).await
            };
            tokio::select! {
                biased;
                given = passed => ending.end(Some(given)),
                () = ending.ended() => {}
                // In this era whoever closes the stream cancels the request. In the other one it goes on.
                () = ending.left(), if this.is_stateless() => {
                    if sent.load(Ordering::Relaxed) {
                        this.tell_cancelled(&own, Members::default());
                    }
                }
                () = door.services.in_flight.given_up() => ending.end(Some(Given::plain(unfinished(&id)))),
            }
        });
        respond::call_soon(reader, &asked.headers).await
    }

    /// Passes a request on under its own name, and gives its answer the client's.
    async fn pass(&self, door: &Door, id: &Id, renamed: Renamed, whose: String) -> Given {
        let method = renamed.message.method().unwrap_or_default().to_owned();
        let params = renamed.message.params.clone().unwrap_or_default();
        let frame = Frame::from(renamed.message.bytes.clone());
        let outgoing = Outgoing { id: renamed.own.clone(), frame, last_moment: None };
        let answer = match self.server.link.exchange(outgoing).await {
            Exchanged::Reply(answer) => answer,
            Exchanged::Refused(why)
            | Exchanged::Unclear(why)
            | Exchanged::NeverSent(why)
            | Exchanged::Lost(why) => {
                let words = format!("semel has no answer from {}: {why}", self.server.name);
                return Given::plain(Frame::refusal(id, -32603, &words, None));
            }
        };
        let body = answer.body.as_ref().map_or("null", text);
        let edited = |result: String| given_under(id, &answer, Some(Frame::from(result)));
        let failed = matches!(answer.kind, Kind::Response { failed: true, .. });
        if let ("tasks/list", false) = (method.as_str(), failed) {
            let own = |task: &str| self.server.tasks().is_of(&whose, task);
            return edited(tasks::listing_of(body, own).unwrap_or_else(|| r#"{"tasks":[]}"#.to_owned()));
        }
        if let ("tools/call", Some(task)) = (method.as_str(), classify::task_in(body)) {
            self.server.tasks().belongs(&tasks::Name { whose: whose.clone(), id: task });
        }
        let watched = Watched::of(&method, &params, || whose);
        let Inspection { result, telling } =
            watched.answered(door, &self.server, if failed { Err(body) } else { Ok(body) });
        let result = match (method.as_str(), failed) {
            ("server/discover", false) => Some(offered(result, body)),
            _ => result,
        };
        Given { telling, ..given_under(id, &answer, result.map(Frame::from)) }
    }

    /// A stream for what the server tells everybody.
    fn listen(&self, asked: &Asked<'_>) -> Response {
        if self.is_stateless() {
            return problem(
                StatusCode::METHOD_NOT_ALLOWED,
                "this server is stateless; it has no such stream",
            );
        }
        if self.sessions.find(&asked.owner).is_none() {
            return no_session(&asked.owner);
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

/// Notifications of clients that say nothing about a process that many share.
const UNTOLD: [&str; 3] =
    ["notifications/initialized", "notifications/roots/list_changed", "notifications/progress"];

/// Requests that change what the server tells its one client, which is semel.
const UNSHARED: [&str; 3] = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// A server's introduction, without the abilities that it cannot offer to many: its log, and subscriptions.
fn offered(changed: Option<String>, result: &str) -> String {
    let result = changed.unwrap_or_else(|| result.to_owned());
    let without = |result: &str| {
        let mut members = Members::parse(result)?;
        let mut capabilities = Members::parse(members.get("capabilities")?)?;
        let logs = capabilities.remove("logging");
        let mut resources = capabilities.object("resources");
        let subscribes = resources.remove("subscribe");
        if subscribes {
            let resources = resources.to_string();
            capabilities.set("resources", resources);
        }
        if !logs && !subscribes {
            return None;
        }
        let capabilities = capabilities.to_string();
        members.set("capabilities", capabilities);
        Some(members.to_string())
    };
    without(&result).unwrap_or(result)
}

/// Versions of the era of sessions, oldest first.
const SESSION_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", era::SESSION];

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

/// A server's answer under the client's id, with another result if it is to have one.
fn given_under(id: &Id, answer: &Message, result: Option<Frame>) -> Given {
    let frame = answer.edited(Some(id), result);
    let unreadable = || Frame::refusal(id, -32603, "semel cannot read the server's answer", None);
    Given::plain(frame.unwrap_or_else(unreadable))
}

/// The last word to whoever waits while semel ends.
fn unfinished(id: &Id) -> Frame {
    let words =
        "semel ended before this call did; what became of it is not known yet. Look first, do not repeat it";
    Frame::refusal(id, -32603, words, None)
}

/// A name for one client's requests.
fn name_of(owner: &Owner) -> String {
    format!("{}/{}", owner.principal, owner.session.as_deref().unwrap_or_default())
}

fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// As the protocol says: 404 makes a client begin a new session.
fn no_session(owner: &Owner) -> Response {
    match owner.session {
        Some(_) => respond::document(StatusCode::NOT_FOUND, &Frame::complaint(-32001, "no such session")),
        None => {
            let frame = Frame::complaint(-32000, "a session is needed; it begins with initialize");
            respond::document(StatusCode::BAD_REQUEST, &frame)
        }
    }
}
