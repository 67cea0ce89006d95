//! One request and its answer, over as many streams as the server needs for it.

use super::events::EventStream;
use super::headers::{LAST_EVENT_ID, METHOD, SESSION, VERSION};
use super::link::{RemoteBody, RemoteCaller, RemoteLink, RemoteResponse};
use super::mirror;
use super::session::INITIALIZE;
use crate::http::body;
use crate::http::client::{Failed, Incoming, LastMoment, NotReached, Prepared};
use crate::mcp::id::Id;
use crate::mcp::link::request::{Exchange, LinkRequest, PROGRESS, RequestNews};
use crate::mcp::message::{MESSAGE_BYTES_MAX, Message, MessageKind, text};
use crate::mcp::version::version_of;
use crate::wire::members::Members;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use semel_core::time::At;
use semel_gate::clock::Clock;
use std::time::Duration;

/// A page that explains a refusal is short.
const REFUSAL_BYTES_MAX: usize = 1 << 20;

/// An answer may take as long as the tool works.
const PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

/// How long to wait before asking for the rest of a stream, where the server did not say.
const RETRY_UNLESS_SAID: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// So often in a row a server may fail to go on with a stream that it promised to go on with.
const FAILURES_MAX: u32 = 10;

/// How far a stream was read that may have to be taken up again.
#[derive(Debug)]
struct Resume {
    last_event: Option<String>,
    retry: Duration,
    failures: u32,
}

/// The request whose response is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedRequest<'a> {
    pub id: &'a Id,
    pub news: Option<&'a RequestNews>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Try {
    First,
    /// In a session that was just begun for it.
    Second,
}

/// An answer, and whether it shows that the server has forgotten the session.
pub(super) struct RemoteAnswer {
    pub exchange: Exchange,
    pub forgot: bool,
}

impl From<Exchange> for RemoteAnswer {
    fn from(exchange: Exchange) -> RemoteAnswer {
        RemoteAnswer { exchange, forgot: false }
    }
}

impl RemoteLink {
    /// Sends once, and follows the answer to its end. A read is sent once more in a new session where the server has
    /// forgotten the one there was.
    pub async fn exchange(&self, request: LinkRequest) -> Exchange {
        let LinkRequest { id, frame, last_moment, is_read, news } = request;
        let asked = AskedRequest { id: &id, news: news.as_ref() };
        let Ok(message) = Message::parse(frame.to_bytes()) else {
            return Exchange::NeverSent("the request is no message".into());
        };
        match self.exchange_in_session(asked, &message, last_moment, Try::First).await {
            RemoteAnswer { forgot: true, .. } if is_read && self.session().is_some() => {
                self.exchange_in_session(asked, &message, last_moment, Try::Second).await.exchange
            }
            RemoteAnswer { exchange, .. } => exchange,
        }
    }

    async fn exchange_in_session(
        &self,
        asked: AskedRequest<'_>,
        message: &Message,
        last_moment: Option<At>,
        try_is: Try,
    ) -> RemoteAnswer {
        if is_bound(message)
            && let Err(why) = self.ensure_session().await
        {
            return Exchange::NeverSent(why).into();
        }
        let waiting = self.prepared().pop().and_then(Prepared::fresh);
        let prepared = match waiting {
            Some(prepared) => prepared,
            None => match self.prepare_for(message).await {
                Ok(prepared) => prepared,
                Err(error) => return Exchange::NeverSent(error.to_string()).into(),
            },
        };
        let last_moment = last_moment.map(|at| LastMoment { clock: self.clock.clone(), at });
        let number = self.session().map(|session| session.number());
        let request = self.post(message);
        let in_session = message.method().filter(|_| request.headers().contains_key(SESSION));
        match self.client.send_before(last_moment, prepared, request).await {
            Ok(response) => {
                let headers = response.headers().clone();
                if let (RemoteCaller::Session(session), Some(number), true) =
                    (&self.caller, number, response.status().is_success())
                {
                    session.take_id(number, &headers);
                }
                let answer = self.read(asked, response, in_session).await;
                match (&self.caller, &answer.exchange, number) {
                    // A request that a new session does not know either fails for another reason.
                    (RemoteCaller::Session(session), _, Some(number))
                        if answer.forgot && try_is == Try::First =>
                    {
                        session.lose(number);
                    }
                    (RemoteCaller::Session(session), Exchange::Reply(answer), _) => {
                        session.learn(message, answer, &headers);
                    }
                    _ => {}
                }
                answer
            }
            Err(Failed::NeverSent(why)) => Exchange::NeverSent(why).into(),
            Err(Failed::Lost(why)) => Exchange::Lost(why).into(),
        }
    }

    /// Only calls of tools change something.
    async fn prepare_for(&self, message: &Message) -> Result<Prepared, NotReached> {
        match message.method() {
            Some("tools/call") => self.client.prepare().await,
            _ => self.client.prepare_read().await,
        }
    }

    pub(super) fn post(&self, message: &Message) -> Request<Bytes> {
        let mut headers = self.headers(Some(message));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        self.request(Method::POST, headers, message.bytes.clone())
    }

    pub(super) fn get(&self, last_event: Option<&str>) -> Request<Bytes> {
        let mut headers = self.headers(None);
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(Ok(last_event)) = last_event.map(HeaderValue::from_str) {
            headers.insert(LAST_EVENT_ID, last_event);
        }
        self.request(Method::GET, headers, Bytes::new())
    }

    fn request(&self, method: Method, headers: HeaderMap, body: Bytes) -> Request<Bytes> {
        request(self.client.target(), method, headers, body)
    }

    fn headers(&self, message: Option<&Message>) -> HeaderMap {
        match &self.caller {
            RemoteCaller::Session(session) => session.headers(message),
            RemoteCaller::Client { headers, call } => {
                let mut headers = headers.clone();
                // The other era mirrors nothing.
                if headers.contains_key(METHOD) {
                    match message {
                        Some(message) => mirror::on_behalf(&mut headers, message, call.as_deref()),
                        None => mirror::clear(&mut headers),
                    }
                }
                headers
            }
        }
    }

    /// `in_session`: the method of a request that named a session, which may turn out to be gone.
    pub(super) async fn read(
        &self,
        asked: AskedRequest<'_>,
        response: Response<Incoming>,
        in_session: Option<&str>,
    ) -> RemoteAnswer {
        let (head, body) = response.into_parts();
        if head.status.is_success() && is_stream(&head.headers) {
            if let Some(observer) = &self.observer {
                observer.on_open(&head.headers);
            }
            return self.follow(asked, body).await.into();
        }
        let max = if head.status.is_success() { MESSAGE_BYTES_MAX } else { REFUSAL_BYTES_MAX };
        let bytes = match body::read(body, max, PAUSE_MAX).await {
            Ok(bytes) => bytes,
            Err(error) => return Exchange::Lost(format!("HTTP {}: {error}", head.status.as_u16())).into(),
        };
        let observe = |body| {
            if let Some(observer) = &self.observer {
                let headers = head.headers.clone();
                observer.on_response(RemoteResponse { status: head.status, headers, body });
            }
        };
        let response = Message::parse(bytes.clone()).ok().filter(|message| is_response_to(message, asked.id));
        // Clients open a new session and send again, also where the session was lost after the effect.
        let session_lost = head.status == StatusCode::NOT_FOUND
            && in_session.is_some_and(|method| {
                method == "tools/call" || !response.as_ref().is_some_and(is_unknown_method)
            });
        // Before any tool is looked for: a call was turned away with it.
        let unknown_session =
            head.status == StatusCode::BAD_REQUEST && in_session.is_some() && names_session(&bytes);
        // The id in it is semel's own, and says nothing to the client.
        let page = if response.is_some() { Bytes::new() } else { bytes.clone() };
        let exchange = match response {
            Some(message) if may_answer(head.status, session_lost) => {
                observe(RemoteBody::Document);
                Exchange::Reply(message)
            }
            _ if is_refusal(head.status) => {
                observe(RemoteBody::Refusal(page));
                let words = words(head.status, &bytes);
                if session_lost { Exchange::Unclear(words) } else { Exchange::Refused(words) }
            }
            _ => Exchange::Lost(words(head.status, &bytes)),
        };
        RemoteAnswer { exchange, forgot: session_lost || unknown_session }
    }

    /// Reads streams until one carries the response.
    async fn follow(&self, asked: AskedRequest<'_>, body: Incoming) -> Exchange {
        let mut resume = Resume { last_event: None, retry: RETRY_UNLESS_SAID, failures: 0 };
        let mut stream = Some(body);
        loop {
            if let Some(body) = stream.take()
                && let Some(exchange) = self.follow_one(asked, body, &mut resume).await
            {
                return exchange;
            }
            // Only the era of sessions goes on with a stream that has ended.
            if resume.last_event.is_none() || !self.may_resume() {
                return Exchange::Lost("the stream ended without the response".into());
            }
            if resume.failures > FAILURES_MAX {
                return Exchange::Lost("the stream ended, and the server does not go on with it".into());
            }
            self.clock.sleep(resume.retry.min(RETRY_MAX)).await;
            stream = self.resume(&mut resume).await;
        }
    }

    /// A stream with the events after the last one. `None`: not now.
    async fn resume(&self, resume: &mut Resume) -> Option<Incoming> {
        resume.failures += 1;
        let prepared = self.client.prepare_read().await.ok()?;
        let response = self.client.send(prepared, self.get(resume.last_event.as_deref())).await.ok()?;
        let goes_on = response.status().is_success() && is_stream(response.headers());
        goes_on.then(|| response.into_body())
    }

    /// `None`: the stream has ended without the response.
    async fn follow_one(
        &self,
        asked: AskedRequest<'_>,
        body: Incoming,
        resume: &mut Resume,
    ) -> Option<Exchange> {
        let mut events = EventStream::new(body);
        while let Some(piece) = events.next().await {
            let piece = match piece {
                Ok(piece) => piece,
                Err(error) => return Some(Exchange::Lost(error.to_string())),
            };
            if let Some(retry) = piece.fields.retry {
                resume.retry = Duration::from_millis(retry);
            }
            if let Some(event) = &piece.fields.id {
                resume.last_event = Some(event.clone()).filter(|event| !event.is_empty());
                resume.failures = 0;
            }
            match piece.fields.data.clone().and_then(|data| Message::parse(data).ok()) {
                Some(message) if is_response_to(&message, asked.id) => return Some(Exchange::Reply(message)),
                message => {
                    let is_progress = message.as_ref().and_then(Message::method) == Some(PROGRESS);
                    asked.news.filter(|_| is_progress).into_iter().for_each(RequestNews::note);
                    self.pass_beside(piece, message);
                }
            }
        }
        None
    }

    fn pass_beside(&self, piece: crate::http::sse::Piece, message: Option<Message>) {
        if let Some(observer) = &self.observer {
            observer.on_piece(piece);
        } else if let (RemoteCaller::Session(session), Some(message)) = (&self.caller, message) {
            session.tell(message);
        }
    }

    fn may_resume(&self) -> bool {
        let version = match &self.caller {
            RemoteCaller::Client { headers, .. } => {
                headers.get(VERSION).and_then(|version| version.to_str().ok())
            }
            RemoteCaller::Session(_) => return true,
        };
        version.is_none_or(|version| version < crate::mcp::version::STATELESS)
    }
}

/// A request to the target itself: whatever path a client asked for, it is the operator's that is used.
pub fn request(
    target: &crate::http::target::Target,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Request<Bytes> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    let path = target.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().unwrap_or_default();
    *request.headers_mut() = headers;
    if let Ok(host) = HeaderValue::from_str(target.authority()) {
        request.headers_mut().insert(HOST, host);
    }
    request
}

pub fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}

/// Whether a message needs the session: those of the stateless era do not, nor does the one that begins it.
fn is_bound(message: &Message) -> bool {
    let params = message.params.as_ref().map_or("{}", text);
    message.method() != Some(INITIALIZE) && version_of(params).is_none()
}

fn is_response_to(message: &Message, id: &Id) -> bool {
    matches!(&message.kind, MessageKind::Response { id: Some(of), .. } if of == id)
}

/// Whether a response is to be believed. It may come from a proxy before the server, in its form and with its id: the
/// status says whether anybody knows what became of the call.
fn may_answer(status: StatusCode, session_lost: bool) -> bool {
    status.is_success() || (is_refusal(status) && !session_lost)
}

/// A server that has no such method may say so with a 404, and its session is as good as ever.
fn is_unknown_method(response: &Message) -> bool {
    let error = response.body.as_ref().and_then(|body| Members::parse(text(body)));
    let failed = matches!(response.kind, MessageKind::Response { failed: true, .. });
    failed && error.is_some_and(|error| error.get("code") == Some("-32601"))
}

/// How the servers of the usual SDKs complain about the session of a request with 400, where the protocol has 404: `Bad
/// Request: No valid session ID provided`, `Invalid session ID`, `Session not found`.
const OF_A_SESSION: [&str; 9] = [
    "no valid",
    "not found",
    "invalid",
    "unknown",
    "expired",
    "terminated",
    "no such",
    "does not exist",
    "doesn't exist",
];

/// Whether a refusal plainly says that it is for the session: in one short sentence.
fn names_session(body: &[u8]) -> bool {
    const SENTENCE_CHARS_MAX: usize = 200;
    let said = String::from_utf8_lossy(body);
    let parsed = Members::parse(&said);
    let sentence = match &parsed {
        Some(members) => {
            let error = members.object("error");
            let message = error.text("message").or_else(|| members.text("error"));
            message.or_else(|| members.text("message")).unwrap_or_default().into_owned()
        }
        None => said.into_owned(),
    };
    let sentence = sentence.to_lowercase();
    sentence.chars().count() <= SENTENCE_CHARS_MAX
        && sentence.contains("session")
        && OF_A_SESSION.iter().any(|phrase| sentence.contains(phrase))
}

/// The statuses that turn a request away, as every door reads them: 4xx but the three that leave it open, 307 and 308.
fn is_refusal(status: StatusCode) -> bool {
    let open = [StatusCode::REQUEST_TIMEOUT, StatusCode::CONFLICT, StatusCode::TOO_EARLY];
    let moved = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];
    status.is_client_error() && !open.contains(&status) || moved.contains(&status)
}

/// A status with the beginning of what was said about it, in one line.
fn words(status: StatusCode, body: &[u8]) -> String {
    const SHOWN_CHARS_MAX: usize = 200;
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN_CHARS_MAX)]);
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|shown| !shown.is_control()).take(SHOWN_CHARS_MAX).collect();
    format!("HTTP {} {line}", status.as_u16()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_for_the_session_only_if_it_says_so() {
        for plain in [
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}"#,
            r#"{"error":"Invalid or expired session"}"#,
            "Invalid session ID\n",
        ] {
            assert!(names_session(plain.as_bytes()), "{plain}");
        }
        let long = format!("invalid session {}", "x".repeat(300));
        for other in [
            "",
            "Bad Request",
            r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params"},"id":7}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#,
            r#"{"error":{"message":"invalid amount","data":"session"}}"#,
            "the session begins at nine",
            &long,
        ] {
            assert!(!names_session(other.as_bytes()), "{other}");
        }
    }
}
