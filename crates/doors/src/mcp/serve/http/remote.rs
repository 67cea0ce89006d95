//! A remote server, offered on: everything passes as it came but guarded calls, and listings say what is guarded.

use super::allowances::Allowances;
use super::message_reader::MessageReader;
use super::request::ClientRequest;
use super::respond;
use super::sessions::{SessionOwners, Sessions};
use super::stream::CallStream;
use crate::caller::Caller;
use crate::http::body::{self, Piped};
use crate::http::client::{Client, Failed, Incoming};
use crate::http::headers::end_to_end;
use crate::http::server::on_sent::OnSent;
use crate::http::server::{problem, shown};
use crate::mcp::connection::ClientConnection;
use crate::mcp::era;
use crate::mcp::frame::Frame;
use crate::mcp::id::Id;
use crate::mcp::limits::Limits;
use crate::mcp::link::Link;
use crate::mcp::link::remote::headers::{METHOD, NAME, SESSION, VERSION};
use crate::mcp::link::remote::{EventStream, RemoteLink, is_stream, request};
use crate::mcp::message::{MESSAGE_BYTES_MAX, Message, MessageKind, text};
use crate::mcp::route::GuardedCall;
use crate::mcp::serve::answer_check::{AnswerCheck, CheckedAnswer};
use crate::mcp::serve::dispatch::{ClientSide, Dispatcher, OwnAnswer, PassedRequest};
use crate::mcp::server::Server;
use crate::mcp::tools::Tools;
use crate::mcp::version;
use crate::services::Services;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HOST};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
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
    sessions: Sessions,
    owners: SessionOwners,
    allowances: Allowances,
    messages: MessageReader,
}

/// One client's request to a remote server.
struct RemoteClient<'a> {
    remote: &'a Remote,
    request: ClientRequest,
    limits: Arc<Limits>,
    /// Names the account for which the server acts.
    authority: String,
    /// The server as this client sees it.
    server: Arc<Server>,
    /// The events and the answer of its call.
    stream: Arc<CallStream>,
}

/// As clients of an era ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientEra {
    Session,
    Stateless,
}

impl Remote {
    pub fn new(server: Arc<Server>, client: Client, headers: HeaderMap) -> Remote {
        Remote {
            server,
            client,
            headers,
            sessions: Sessions::default(),
            owners: SessionOwners::default(),
            allowances: Allowances::default(),
            messages: MessageReader::default(),
        }
    }

    pub async fn answer(&self, mut request: ClientRequest, body: Body) -> Response {
        if !self.owners.may_use(&request.owner) {
            return problem(StatusCode::NOT_FOUND, "there is no such session");
        }
        // A session that the server did not give is a word that anybody can make up for each request.
        let limits = match self.owners.is_of(&request.owner) {
            true => self.allowances.of_session(&request.limits_of),
            false => self.allowances.of(&request.limits_of),
        };
        let authority = self.authority(&request.headers, request.services.secret());
        request.headers = self.upstream_headers(request.headers);
        let client = RemoteClient::new(self, request, limits, authority);
        let ClientRequest { owner, headers, method, .. } = &client.request;
        match *method {
            Method::POST => match self.messages.read(&owner.principal, headers, body).await {
                Ok(message) => {
                    let ClientRequest { services, options, .. } = &client.request;
                    let (services, options) = (Arc::clone(services), options.clone());
                    let server = Arc::clone(&client.server);
                    let dispatcher = Dispatcher { client, services, server, options, is_shared: false };
                    dispatcher.dispatch(message).await.unwrap_or_else(respond::own)
                }
                Err(refused) => *refused,
            },
            // A stream for what the server says of its own accord, or the rest of one that passed as it came.
            Method::GET => client.send_on(Bytes::new()).await,
            Method::DELETE => {
                self.sessions.end(owner);
                self.owners.remove(owner);
                client.send_on(Bytes::new()).await
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
}

impl<'a> RemoteClient<'a> {
    fn new(
        remote: &'a Remote,
        request: ClientRequest,
        limits: Arc<Limits>,
        authority: String,
    ) -> RemoteClient<'a> {
        let server = Arc::clone(&remote.server);
        let stream = Arc::new(CallStream::default());
        let mut client = RemoteClient { remote, request, limits, authority, server, stream };
        client.server = client.server_by(client.link(client.request.headers.clone(), None));
        client
    }

    fn link(&self, headers: HeaderMap, observer: Option<Arc<CallStream>>) -> RemoteLink {
        let (observer, clock) = (observer.map(|observer| observer as _), self.request.services.clock.clone());
        let client = self.remote.client.for_principal(&self.request.owner.principal);
        RemoteLink::for_client(client, headers, observer, clock)
    }

    fn server_by(&self, link: RemoteLink) -> Arc<Server> {
        let whose = format!("{}\n{}", self.request.caller.whose(), self.authority);
        Arc::new(self.remote.server.through(Link::Remote(link), self.authority.clone(), whose))
    }

    /// The same server, asked as clients of this era do, with this client's credential.
    fn server_in(&self, era_of: ClientEra) -> Arc<Server> {
        let mut headers = self.request.headers.clone();
        [SESSION, VERSION, METHOD, NAME].iter().for_each(|name| drop(headers.remove(name)));
        if era_of == ClientEra::Stateless {
            headers.insert(VERSION, HeaderValue::from_static(version::STATELESS));
            // Each request fills it in.
            headers.insert(METHOD, HeaderValue::from_static(""));
        }
        self.server_by(self.link(headers, None))
    }

    /// Passes a request on as it came, and its answer as it comes.
    async fn send_on(&self, body: Bytes) -> Response {
        match self.send(body).await {
            Ok(response) => given_on(response.map(Body::new)),
            Err(refused) => *refused,
        }
    }

    async fn send(&self, body: Bytes) -> Result<http::Response<Incoming>, Box<Response>> {
        let ClientRequest { owner, method, headers, .. } = &self.request;
        let client = self.remote.client.for_principal(&owner.principal);
        let prepared = client.prepare_read().await;
        let prepared = prepared.map_err(|error| Box::new(respond::unreachable(&error.to_string())))?;
        let request = request(client.target(), method.clone(), headers.clone(), body);
        client.send(prepared, request).await.map_err(|error| {
            let (Failed::NeverSent(why) | Failed::Lost(why)) = error;
            Box::new(respond::unreachable(&format!("{} gave no answer: {why}", client.target())))
        })
    }

    /// Passes a request on, and its answer once it was looked at.
    async fn send_checked(&self, id: Id, message: Message, check: AnswerCheck) -> Response {
        let response = match self.send(message.bytes).await {
            Ok(response) => response,
            Err(refused) => return *refused,
        };
        // How a task ends is waited for as long as it takes.
        let pause_max = if let AnswerCheck::Task(_) = check { Duration::MAX } else { ANSWER_PAUSE_MAX };
        let on_sent = OnSent::default();
        let checked = CheckedResponse {
            services: Arc::clone(&self.request.services),
            server: Arc::clone(&self.server),
            stateless: self.server_in(ClientEra::Stateless),
            id,
            check,
            on_sent: on_sent.clone(),
        };
        let (mut head, body) = response.into_parts();
        head.extensions.insert(on_sent);
        if let Some(session) = head.headers.get(SESSION).and_then(|id| id.to_str().ok()) {
            self.remote.owners.add(&self.request.owner, session);
        }
        if is_stream(&head.headers) {
            let (writer, piped) = Piped::new();
            tokio::spawn(checked.stream(body, writer));
            return given_on(http::Response::from_parts(head, Body::new(piped)));
        }
        match body::read(body, MESSAGE_BYTES_MAX, pause_max).await {
            Ok(bytes) => {
                if let Some(refusal) = checked.not_initialized(head.status, &bytes).await {
                    return respond::document(StatusCode::BAD_REQUEST, &refusal);
                }
                let bytes = checked.edited(&bytes).unwrap_or(bytes);
                given_on(http::Response::from_parts(head, Body::from(bytes)))
            }
            Err(error) => respond::unreachable(&error.to_string()),
        }
    }
}

impl ClientSide for RemoteClient<'_> {
    type Reply = Response;

    /// While observing, nothing is asked.
    async fn check_era(&self, id: &Id, method: &str, params: &str) -> Result<(), OwnAnswer> {
        if self.request.services.observes() || matches!(method, "initialize" | "server/discover") {
            return Ok(());
        }
        let Some(version) = version::version_of(params) else { return Ok(()) };
        let (stateless, session) = (self.server_in(ClientEra::Stateless), self.server_in(ClientEra::Session));
        match era::session_alone(&stateless, &session).await {
            Some(agreed) => {
                Err(OwnAnswer::new(StatusCode::BAD_REQUEST, era::session_only(id, &agreed, &version)))
            }
            None => Ok(()),
        }
    }

    fn connection(&self, _: &Id, message: &Message) -> Result<Arc<ClientConnection>, OwnAnswer> {
        let ClientRequest { owner, caller, .. } = &self.request;
        let begin = || {
            let caller = Caller { run: None, token: None, ..caller.clone() };
            ClientConnection::within(caller, Arc::clone(&self.limits))
        };
        // Before its first call a session may not be known as the client's, and would have the limits of none.
        let session = match owner.session.is_some() && message.method() == Some("tools/call") {
            true => Some(self.remote.sessions.find_or_begin(owner, begin)),
            false => self.remote.sessions.find(owner),
        };
        Ok(self.request.connection(session, &self.limits))
    }

    fn outgoing(&self, message: &Message, tools: &Arc<Tools>) -> (Arc<Server>, Message) {
        let link = self.link(self.request.headers.clone(), Some(Arc::clone(&self.stream)));
        (self.server_by(link.for_call(message, Arc::clone(tools))), message.clone())
    }

    async fn pass(self, request: PassedRequest) -> Response {
        let PassedRequest { id, message, check, .. } = request;
        match check {
            AnswerCheck::None => self.send_on(message.bytes).await,
            check => self.send_checked(id, message, check).await,
        }
    }

    async fn forward(self, message: Message, _: Option<Id>) -> Response {
        self.send_on(message.bytes).await
    }

    async fn guard(self, guarded: Box<GuardedCall>) -> Response {
        let reader = self.stream.reader();
        self.request.guard(guarded, self.stream, ());
        respond::answer(reader).await
    }

    fn give_up(&self, id: &Id) -> bool {
        let session = self.remote.sessions.find(&self.request.owner);
        self.request.give_up(session, &self.limits, id)
    }
}

/// An answer that is looked at on its way back.
struct CheckedResponse {
    services: Arc<Services>,
    server: Arc<Server>,
    /// The same as clients of the stateless era see it.
    stateless: Arc<Server>,
    id: Id,
    check: AnswerCheck,
    on_sent: OnSent,
}

impl CheckedResponse {
    /// The answer to a client whose `initialize` the server has refused, if that is of the other era. A server that
    /// wants to know first who asks is not asked about that.
    async fn not_initialized(&self, status: StatusCode, bytes: &Bytes) -> Option<Frame> {
        let AnswerCheck::Hello { method, params, .. } = &self.check else { return None };
        let credential = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if method != "initialize" || credential || self.services.observes() {
            return None;
        }
        let says_no = || {
            let message = Message::parse(bytes.clone()).ok();
            message.is_some_and(|message| matches!(message.kind, MessageKind::Response { failed: true, .. }))
        };
        if status.is_success() && !says_no() {
            return None;
        }
        era::refused_initialize(&self.stateless, &self.id, text(params)).await
    }

    /// Takes in a message. `Some`: what goes out instead.
    fn edited(&self, bytes: &Bytes) -> Option<Bytes> {
        let message = Message::parse(bytes.clone()).ok()?;
        let MessageKind::Response { id: Some(id), failed } = &message.kind else { return None };
        if *id != self.id {
            return None;
        }
        let body = message.body.as_ref().map_or("null", text);
        let answer = if *failed { Err(body) } else { Ok(body) };
        let CheckedAnswer { result, task_end } =
            self.check.clone().check(&self.services, &self.server, answer);
        task_end.into_iter().for_each(|end| self.on_sent.set(|| end.has_left()));
        let edited = message.edited(None, Some(Frame::from(result?)))?;
        Some(edited.to_bytes())
    }

    async fn stream(self, body: Incoming, writer: tokio::sync::mpsc::Sender<Bytes>) {
        let mut events = EventStream::new(body);
        while let Some(piece) = events.next().await {
            // One that is too large to be looked at is too large to be trusted with the next ones.
            let Ok(piece) = piece else { return };
            let changed = match &piece.fields.data {
                None => None,
                Some(data) => match self.not_initialized(StatusCode::OK, data).await {
                    Some(refusal) => Some(refusal.to_bytes()),
                    None => self.edited(data),
                },
            };
            let raw = changed.map_or_else(|| piece.raw.clone(), |data| piece.with_data(&data));
            if writer.send(raw).await.is_err() {
                return;
            }
        }
        let rest = events.rest();
        if !rest.is_empty() {
            let _client_is_gone = writer.send(rest).await;
        }
    }
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
