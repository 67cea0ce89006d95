//! A remote server, offered on: everything passes as it came but guarded calls, and listings say what is guarded.

use super::allowances::Allowances;
use super::connections::Connections;
use super::incoming::Incoming as Messages;
use super::opened::Opened;
use super::owner::Owner;
use super::stream::CallStream;
use super::{Asks, respond};
use crate::call_options::CallOptions;
use crate::caller::Caller;
use crate::http::body::{self, Piped};
use crate::http::client::{Client, Failed, Incoming};
use crate::http::headers::end_to_end;
use crate::http::server::on_sent::OnSent;
use crate::http::server::{problem, shown};
use crate::http::sse::Parser;
use crate::mcp::connection::Connection;
use crate::mcp::door::{Door, Route};
use crate::mcp::era;
use crate::mcp::frame::Frame;
use crate::mcp::limits::Limits;
use crate::mcp::link::Link;
use crate::mcp::link::remote::{METHOD, NAME, RemoteLink, SESSION, VERSION, is_stream, request};
use crate::mcp::message::{Id, Kind, MESSAGE_BYTES_MAX, Message, text};
use crate::mcp::own_tools;
use crate::mcp::serve::watched::{Inspection, Watched, call_without_id, cancelled_id};
use crate::mcp::server::Server;
use crate::wire::members::Members;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use semel_core::digest::Secret;
use std::sync::Arc;
use std::time::Duration;

/// A listing or a greeting that pauses for longer in the middle is not coming.
const ANSWER_PAUSE_MAX: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Remote {
    pub server: Arc<Server>,
    client: Client,
    /// Headers of the operator; they win over those of clients.
    headers: HeaderMap,
    connections: Connections,
    allowances: Allowances,
    opened: Opened,
    incoming: Messages,
}

/// One client's request, and what it takes to pass it on.
struct Asked<'a> {
    door: &'a Arc<Door>,
    caller: Caller,
    options: CallOptions,
    limits: Arc<Limits>,
    owner: Owner,
    method: Method,
    /// For the server.
    headers: HeaderMap,
    /// Names the account for which the server acts.
    authority: String,
}

/// As clients of an era ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Session,
    Stateless,
}

impl Remote {
    pub fn new(server: Arc<Server>, client: Client, headers: HeaderMap) -> Remote {
        Remote {
            server,
            client,
            headers,
            connections: Connections::default(),
            allowances: Allowances::default(),
            opened: Opened::default(),
            incoming: Messages::default(),
        }
    }

    pub async fn answer(&self, door: &Arc<Door>, asks: Asks, parts: Parts, body: Body) -> Response {
        let Asks { caller, options } = asks;
        let session = parts.headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let owner = Owner { principal: caller.whose(), session };
        if !self.opened.may_use(&owner) {
            return problem(StatusCode::NOT_FOUND, "there is no such session");
        }
        // A session that the server did not give is a word that anybody can make up for each request.
        let limits = match self.opened.is_of(&owner) {
            true => self.allowances.of_session(&caller, &parts),
            false => self.allowances.of(&caller, &parts),
        };
        let authority = self.authority(&parts.headers, door.services.secret());
        let headers = self.upstream_headers(parts.headers);
        let asked = Asked { door, caller, options, limits, owner, method: parts.method, headers, authority };
        match asked.method {
            Method::POST => match self.incoming.read(&asked.owner.principal, &asked.headers, body).await {
                Ok(message) => self.post(asked, message).await,
                Err(refused) => *refused,
            },
            // A stream for what the server says of its own accord, or the rest of one that passed as it came.
            Method::GET => self.forward(&asked, Bytes::new()).await,
            Method::DELETE => {
                self.connections.forget(&asked.owner);
                self.opened.closed(&asked.owner);
                self.forward(&asked, Bytes::new()).await
            }
            _ => problem(StatusCode::METHOD_NOT_ALLOWED, "MCP uses POST, GET and DELETE"),
        }
    }

    /// As for every API: whose credential a client passes on says whose effect it is. The operator's is everybody's.
    fn authority(&self, headers: &HeaderMap, secret: Option<&Secret>) -> String {
        let mut passed_on = headers.clone();
        self.headers.keys().for_each(|name| drop(passed_on.remove(name)));
        match (secret, shown(&passed_on)) {
            (Some(secret), shown) if !shown.is_empty() => {
                format!("{}\ncredential: {}", self.server.authority, secret.mac("principal", &[&shown]))
            }
            _ => self.server.authority.clone(),
        }
    }

    /// The server as this client sees it.
    fn server_for(&self, asked: &Asked<'_>) -> Arc<Server> {
        self.server_by(asked, self.link(asked, asked.headers.clone(), None))
    }

    fn link(&self, asked: &Asked<'_>, headers: HeaderMap, told: Option<Arc<CallStream>>) -> RemoteLink {
        let (told, clock) = (told.map(|told| told as _), asked.door.services.clock.clone());
        RemoteLink::for_client(self.client.for_principal(&asked.owner.principal), headers, told, clock)
    }

    fn server_by(&self, asked: &Asked<'_>, link: RemoteLink) -> Arc<Server> {
        let whose = format!("{}\n{}", asked.caller.whose(), asked.authority);
        Arc::new(self.server.through(Link::Remote(link), asked.authority.clone(), whose))
    }

    /// The same server, asked as clients of this era do, with this client's credential.
    fn server_in(&self, manner: Manner, asked: &Asked<'_>) -> Arc<Server> {
        let mut headers = asked.headers.clone();
        [SESSION, VERSION, METHOD, NAME].iter().for_each(|name| drop(headers.remove(name)));
        if manner == Manner::Stateless {
            headers.insert(VERSION, HeaderValue::from_static(era::STATELESS));
            // Each request fills it in.
            headers.insert(METHOD, HeaderValue::from_static(""));
        }
        self.server_by(asked, self.link(asked, headers, None))
    }

    /// Why a request cannot be passed to a server of the other era. While observing, nothing is asked.
    async fn other_era(&self, asked: &Asked<'_>, id: &Id, method: &str, params: &str) -> Option<Frame> {
        if asked.door.services.observes() || matches!(method, "initialize" | "server/discover") {
            return None;
        }
        let version = era::version_of(params)?;
        let (stateless, session) =
            (self.server_in(Manner::Stateless, asked), self.server_in(Manner::Session, asked));
        let agreed = era::session_alone(&stateless, &session).await?;
        Some(era::session_only(id, &agreed, &version))
    }

    /// All that is not about one connection. Compressed answers could not be looked at.
    fn upstream_headers(&self, mut headers: HeaderMap) -> HeaderMap {
        end_to_end(&mut headers);
        headers.remove(HOST);
        headers.remove(ACCEPT_ENCODING);
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        headers
    }

    async fn post(&self, asked: Asked<'_>, message: Message) -> Response {
        let params = message.params.clone().unwrap_or_default();
        if let Kind::Request { id, method } = &message.kind
            && let Some(refusal) = self.other_era(&asked, id, method, text(&params)).await
        {
            return respond::document(StatusCode::BAD_REQUEST, &refusal);
        }
        match &message.kind {
            Kind::Request { id, method } if method == "tools/call" => {
                self.call(asked, id.clone(), message).await
            }
            Kind::Request { id, method } => match Watched::of(method, &params, || asked.caller.whose()) {
                Watched::Plain => self.forward(&asked, message.bytes).await,
                watched => self.watch(&asked, id.clone(), message, watched).await,
            },
            Kind::Notification { method } if method == "tools/call" && !asked.door.services.observes() => {
                respond::document(StatusCode::BAD_REQUEST, &call_without_id())
            }
            Kind::Notification { method } if method == "notifications/cancelled" => {
                let of = cancelled_id(text(&params));
                let connection = self.connections.known(&asked.owner);
                let is_guarded = |id: Id| match &connection {
                    Some(connection) => connection.give_up(&id),
                    None => asked.limits.guarded.has(&asked.owner.principal, &id),
                };
                match of.is_some_and(is_guarded) {
                    // Rule 12: what was sent is finished and kept for the retry.
                    true => accepted(),
                    false => self.forward(&asked, message.bytes).await,
                }
            }
            _ => self.forward(&asked, message.bytes).await,
        }
    }

    /// Passes a request on as it came, and its answer as it comes.
    async fn forward(&self, asked: &Asked<'_>, body: Bytes) -> Response {
        match self.send(asked, body).await {
            Ok(response) => given_on(response.map(Body::new)),
            Err(refused) => *refused,
        }
    }

    async fn send(&self, asked: &Asked<'_>, body: Bytes) -> Result<http::Response<Incoming>, Box<Response>> {
        let client = self.client.for_principal(&asked.owner.principal);
        let prepared = client.prepare_read().await;
        let prepared = prepared.map_err(|error| Box::new(respond::unreachable(&error.to_string())))?;
        let request = request(client.target(), asked.method.clone(), asked.headers.clone(), body);
        client.send(prepared, request).await.map_err(|error| {
            let (Failed::NeverSent(why) | Failed::Lost(why)) = error;
            Box::new(respond::unreachable(&format!("{} gave no answer: {why}", client.target())))
        })
    }

    /// Passes a request on, and its answer once it was looked at.
    async fn watch(&self, asked: &Asked<'_>, id: Id, message: Message, watched: Watched) -> Response {
        let server = self.server_for(asked);
        let response = match self.send(asked, message.bytes).await {
            Ok(response) => response,
            Err(refused) => return *refused,
        };
        let on_sent = OnSent::default();
        // How a task ends is waited for as long as it takes.
        let pause_max = if let Watched::Task(_) = watched { Duration::MAX } else { ANSWER_PAUSE_MAX };
        let stateless = self.server_in(Manner::Stateless, asked);
        let (door, parting) = (Arc::clone(asked.door), on_sent.clone());
        let watch = Watch { door, server, stateless, id, watched, on_sent: parting };
        let (mut head, body) = response.into_parts();
        head.extensions.insert(on_sent);
        if let Some(session) = head.headers.get(SESSION).and_then(|id| id.to_str().ok()) {
            self.opened.by(&asked.owner, session);
        }
        if is_stream(&head.headers) {
            let (writer, piped) = Piped::new();
            tokio::spawn(watch.stream(body, writer));
            return given_on(http::Response::from_parts(head, Body::new(piped)));
        }
        match body::read(body, MESSAGE_BYTES_MAX, pause_max).await {
            Ok(bytes) => {
                if let Some(refusal) = watch.not_initialized(head.status, &bytes).await {
                    return respond::document(StatusCode::BAD_REQUEST, &refusal);
                }
                let bytes = watch.seen(&bytes).unwrap_or(bytes);
                given_on(http::Response::from_parts(head, Body::from(bytes)))
            }
            Err(error) => respond::unreachable(&error.to_string()),
        }
    }

    async fn call(&self, asked: Asked<'_>, id: Id, message: Message) -> Response {
        let Asked { door, caller, options, limits, owner, .. } = &asked;
        let params = message.params.clone().unwrap_or_default();
        // A listing is none of what the client hears of its call.
        let tools = self.server_for(&asked).tools(&era::meta_of(text(&params))).await;
        let stream = Arc::new(CallStream::default());
        let link = self.link(&asked, asked.headers.clone(), Some(Arc::clone(&stream)));
        let server = self.server_by(&asked, link.for_call(&message, Arc::clone(&tools)));
        let connection: Arc<Connection> = self.connections.of(owner, caller.clone(), Arc::clone(limits));
        match door.route(&id, &message, &server, &connection, &tools, options) {
            Route::Pass => self.forward(&asked, message.bytes).await,
            Route::Answer(frame) => respond::document(StatusCode::OK, &frame),
            Route::Own(call) => {
                let frame = own_tools::answer(door, &server, &connection, &call).await;
                respond::document(StatusCode::OK, &frame)
            }
            Route::Guard(mut guarded) => {
                guarded.token = asked.caller.token.clone();
                let working = door.services.in_flight.begin();
                let (door, ending) = (Arc::clone(door), Arc::clone(&stream));
                // A task of its own: a client that goes away does not stop what was sent.
                tokio::spawn(async move {
                    ending.end(door.guard(*guarded).await);
                    drop(working);
                });
                respond::call(stream.reader()).await
            }
        }
    }
}

/// An answer that is looked at on its way back.
struct Watch {
    door: Arc<Door>,
    server: Arc<Server>,
    /// The same as clients of the stateless era see it.
    stateless: Arc<Server>,
    id: Id,
    watched: Watched,
    on_sent: OnSent,
}

impl Watch {
    /// The server refused to be initialised: if it is of the other era, the client is told in plain words. Whoever
    /// wants to know first who asks is not asked about that.
    async fn not_initialized(&self, status: StatusCode, bytes: &Bytes) -> Option<Frame> {
        let Watched::Hello { method, params } = &self.watched else { return None };
        let credential = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        // A client that names a version of the stateless era is of that one, and hears the server's own answer.
        let is_stateless = era::version_of(text(params)).is_some();
        if method != "initialize" || is_stateless || credential || self.door.services.observes() {
            return None;
        }
        let says_no = || {
            let message = Message::parse(bytes.clone()).ok();
            message.is_some_and(|message| matches!(message.kind, Kind::Response { failed: true, .. }))
        };
        if status.is_success() && !says_no() {
            return None;
        }
        let supported = era::supported(&self.stateless).await?;
        if supported.iter().any(|version| version.as_str() < era::STATELESS) {
            return None;
        }
        let params = Members::parse(text(params)).unwrap_or_default();
        let asked = params.text("protocolVersion").unwrap_or_default();
        Some(era::stateless_only(&self.id, &supported, &asked))
    }

    /// Takes in a message. `Some`: what goes out instead.
    fn seen(&self, bytes: &Bytes) -> Option<Bytes> {
        let message = Message::parse(bytes.clone()).ok()?;
        let Kind::Response { id: Some(id), failed } = &message.kind else { return None };
        if *id != self.id {
            return None;
        }
        let body = message.body.as_ref().map_or("null", text);
        let answer = if *failed { Err(body) } else { Ok(body) };
        let Inspection { result, telling } = self.watched.clone().answered(&self.door, &self.server, answer);
        telling.into_iter().for_each(|telling| self.on_sent.set(|| telling.has_left()));
        let edited = message.edited(None, Some(Frame::from(result?)))?;
        Some(edited.to_bytes())
    }

    async fn stream(self, mut body: Incoming, writer: tokio::sync::mpsc::Sender<Bytes>) {
        let mut parser = Parser::default();
        while let Some(Ok(frame)) = body.frame().await {
            parser.push(&frame.into_data().unwrap_or_default());
            loop {
                let piece = match parser.next_piece() {
                    Ok(Some(piece)) => piece,
                    Ok(None) => break,
                    // Too large to be looked at, and so too large to be trusted with what follows.
                    Err(_) => return,
                };
                let changed = match &piece.fields.data {
                    None => None,
                    Some(data) => match self.not_initialized(StatusCode::OK, data).await {
                        Some(refusal) => Some(refusal.to_bytes()),
                        None => self.seen(data),
                    },
                };
                let raw = changed.map_or_else(|| piece.raw.clone(), |data| piece.with_data(&data));
                if writer.send(raw).await.is_err() {
                    return;
                }
            }
        }
        let rest = parser.rest();
        if !rest.is_empty() {
            let _client_is_gone = writer.send(rest).await;
        }
    }
}

fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// An answer of the server's, made ready for the next connection.
fn given_on(response: http::Response<Body>) -> Response {
    let (mut head, body) = response.into_parts();
    end_to_end(&mut head.headers);
    if is_stream(&head.headers) {
        head.headers = respond::stream_headers(head.headers);
    }
    Response::from_parts(head, body)
}
