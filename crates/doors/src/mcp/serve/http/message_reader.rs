//! Messages of clients, read whole before anything is decided about them.

use super::{respond, validate};
use crate::http::body::{self, PAUSE_MAX, Unreadable};
use crate::http::large_body_permits::{self, LargeBodyPermits};
use crate::http::server::problem;
use crate::mcp::message::{MESSAGE_BYTES_MAX, Message, NotAMessage};
use axum::body::Body;
use axum::response::Response;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Body as _;

/// Most messages are smaller. Larger ones are read a few at a time, so that many clients together stay bounded too.
const SMALL_BYTES_MAX: u64 = 1 << 20;
const LARGE_AT_ONCE: usize = 16;
const LARGE_OF_ONE: usize = 4;

#[derive(Debug)]
pub struct MessageReader {
    large: LargeBodyPermits,
}

impl Default for MessageReader {
    fn default() -> Self {
        MessageReader { large: LargeBodyPermits::new(LARGE_AT_ONCE, LARGE_OF_ONE) }
    }
}

impl MessageReader {
    pub async fn read(&self, whose: &str, headers: &HeaderMap, body: Body) -> Result<Message, Box<Response>> {
        if let Some(why) = validate::body(headers) {
            return Err(Box::new(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, why)));
        }
        let small = body.size_hint().upper().is_some_and(|bytes| bytes <= SMALL_BYTES_MAX);
        let _turn = match small {
            true => None,
            false => match tokio::time::timeout(large_body_permits::WAIT_MAX, self.large.take(whose)).await {
                Ok(turn) => turn,
                Err(_) => return Err(Box::new(crowded())),
            },
        };
        let read = tokio::time::timeout(
            large_body_permits::TIME_MAX,
            body::read(body, MESSAGE_BYTES_MAX, PAUSE_MAX),
        );
        let bytes = read.await.unwrap_or(Err(Unreadable::Stalled)).map_err(|error| match error {
            Unreadable::TooLarge(_) => {
                respond::complaint(StatusCode::PAYLOAD_TOO_LARGE, &NotAMessage::TooLarge)
            }
            error => problem(StatusCode::BAD_REQUEST, &error.to_string()),
        })?;
        let message = Message::parse(bytes);
        Ok(message.map_err(|problem| respond::complaint(StatusCode::BAD_REQUEST, &problem))?)
    }
}

fn crowded() -> Response {
    let mut response =
        problem(StatusCode::SERVICE_UNAVAILABLE, "too many large messages at once; nothing was passed on");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
