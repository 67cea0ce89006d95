//! From the answer of a call to an HTTP response.

use super::stream::{StreamItem, StreamReader, StreamStart};
use crate::http::body::{BodyParts, Piped};
use crate::http::headers::end_to_end;
use crate::http::server::on_sent::OnSent;
use crate::http::server::problem;
use crate::http::sse;
use crate::mcp::frame::Frame;
use crate::mcp::guard::ClientAnswer;
use crate::mcp::link::remote::{RemoteBody, RemoteResponse};
use crate::mcp::message::NotAMessage;
use crate::mcp::serve::dispatch::OwnAnswer;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::time::Duration;

/// The least patient clients wait for a second or two, and most calls are over by then.
const OPENS_AFTER: Duration = Duration::from_millis(500);

/// Proxies in between close what is silent for half a minute, and clients what is for five.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Tells proxies in between not to hold events back.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// One message as a document.
pub fn document(status: StatusCode, frame: &Frame) -> Response {
    with_status(status, HeaderMap::new(), body_of(frame))
}

/// Semel's own answer to a message that goes no further.
pub fn own(answer: OwnAnswer) -> Response {
    match answer.frame {
        Some(frame) => document(answer.status, &frame),
        None => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = answer.status;
            response
        }
    }
}

fn body_of(frame: &Frame) -> Body {
    Body::new(BodyParts::new(frame.to_sent()))
}

/// A refusal, in the protocol's own words, of a body that could not be read.
pub fn complaint(status: StatusCode, problem: &NotAMessage) -> Response {
    document(status, &problem.complaint())
}

pub fn unreachable(why: &str) -> Response {
    problem(StatusCode::BAD_GATEWAY, why)
}

fn with_status(status: StatusCode, mut headers: HeaderMap, body: Body) -> Response {
    end_to_end(&mut headers);
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// The headers of a stream, made ready for the next connection.
pub fn stream_headers(mut headers: HeaderMap) -> HeaderMap {
    end_to_end(&mut headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, no-transform"));
    headers.entry(UNBUFFERED).or_insert(HeaderValue::from_static("no"));
    headers
}

/// The answer of a call, as soon as it begins.
pub async fn answer(mut reader: StreamReader) -> Response {
    let start = reader.start().await;
    respond(reader, start)
}

/// The answer of a call that nothing but its end can begin. A client that takes streams has one before that, where the
/// end is not near: clients give up on a response without headers, and not on a stream.
pub async fn answer_soon(mut reader: StreamReader, headers: &HeaderMap) -> Response {
    if !takes_events(headers) {
        return answer(reader).await;
    }
    match tokio::time::timeout(OPENS_AFTER, reader.start()).await {
        Ok(start) => respond(reader, start),
        Err(_) => stream(reader, HeaderMap::new()),
    }
}

fn takes_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let mut parts = kind.split(';').map(str::trim);
        parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"))
            && !parts.filter_map(|part| part.strip_prefix("q=")).any(|weight| weight.parse() == Ok(0.0))
    })
}

fn respond(reader: StreamReader, start: StreamStart) -> Response {
    match start {
        StreamStart::Stream(headers) => stream(reader, headers),
        StreamStart::Whole { answer: None, .. } => stream(reader, HeaderMap::new()),
        StreamStart::Whole { answer: Some(answer), response } => whole(answer, response),
    }
}

fn whole(answer: ClientAnswer, response: Option<RemoteResponse>) -> Response {
    match response {
        // Whatever stands before the server speaks to the client, not to the model: it may ask for a credential.
        Some(RemoteResponse { status, headers, body: RemoteBody::Refusal(body) }) if !answer.is_success => {
            with_status(status, headers, Body::from(body))
        }
        response => {
            let (status, headers) = match response {
                Some(RemoteResponse { status, headers, body: RemoteBody::Document }) => (status, headers),
                _ => (StatusCode::OK, HeaderMap::new()),
            };
            let mut response = with_status(status, headers, body_of(&answer.frame));
            response.extensions_mut().insert(OnSent::new(|| answer.has_left()));
            response
        }
    }
}

/// Gives a reader's events on, until its end or until the client has gone. While there are none it says so now and
/// then.
pub fn stream(mut reader: StreamReader, headers: HeaderMap) -> Response {
    let (writer, body) = Piped::new();
    let on_sent = OnSent::default();
    let leaving = on_sent.clone();
    tokio::spawn(async move {
        loop {
            let next = tokio::select! {
                next = reader.next() => next,
                () = writer.closed() => return,
                () = tokio::time::sleep(SIGN_OF_LIFE) => StreamItem::Event(Bytes::from_static(sse::NOTHING_YET)),
            };
            match next {
                StreamItem::Event(raw) => {
                    if writer.send(raw).await.is_err() {
                        return;
                    }
                }
                StreamItem::Last(raw, answer) => {
                    // First: with the last part the connection may have everything. Dropped without that, it lets the
                    // client's next call go on, which waits for the mark.
                    leaving.set(|| answer.has_left());
                    for part in raw.to_sent() {
                        let _gone = writer.send(part).await;
                    }
                    return;
                }
                StreamItem::End => return,
            }
        }
    });
    let mut response = Response::new(Body::new(body));
    *response.headers_mut() = stream_headers(headers);
    response.extensions_mut().insert(on_sent);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::serve::http::stream::CallStream;
    use http_body_util::BodyExt;
    use std::sync::Arc;

    fn taking(kinds: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(kinds))])
    }

    async fn answer(stream: &CallStream, after: Duration) {
        tokio::time::sleep(after).await;
        stream.end(Some(ClientAnswer::plain(Frame::from("{}".to_owned()))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_takes_long_has_a_stream_that_shows_signs_of_life() {
        for (kinds, after, kind, text) in [
            (
                "application/json, Text/Event-Stream;q=1",
                1,
                "text/event-stream",
                "event: message\ndata: {}\n\n",
            ),
            (
                "application/json,text/event-stream",
                40,
                "text/event-stream",
                ": nothing yet\n\n: nothing yet\n\nevent: message\ndata: {}\n\n",
            ),
            ("application/json, text/event-stream", 0, "application/json", "{}"),
            ("application/json, text/event-stream-of-mine", 40, "application/json", "{}"),
            ("application/json, text/event-stream; q=0.0", 40, "application/json", "{}"),
        ] {
            let stream = Arc::new(CallStream::default());
            let headers = taking(kinds);
            let ends = answer(&stream, Duration::from_secs(after));
            let read = async {
                let response = answer_soon(stream.reader(), &headers).await;
                assert_eq!(response.headers()[CONTENT_TYPE], kind, "{kinds} after {after} s");
                response.into_body().collect().await.expect("it ends").to_bytes()
            };
            assert_eq!(tokio::join!(read, ends).0, text, "{kinds} after {after} s");
        }
    }
}
