//! Messages of clients, read whole before anything is decided about them.

use super::{respond, validate};
use crate::http::body::{self, PAUSE_MAX, Unreadable};
use crate::http::server::problem;
use crate::mcp::message::{MESSAGE_BYTES_MAX, Message, NotAMessage};
use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Semaphore;

/// Most messages are smaller. Larger ones are read a few at a time, so that many clients together stay bounded too; and
/// of one client fewer, so that it cannot keep the others out.
const SMALL_BYTES_MAX: u64 = 1 << 20;
const LARGE_AT_ONCE: usize = 16;
const LARGE_OF_ONE: usize = 4;

#[derive(Debug)]
pub struct Incoming {
    large: Semaphore,
    /// By [`Caller::whose`](crate::caller::Caller::whose), as long as somebody reads or waits.
    of_each: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Default for Incoming {
    fn default() -> Self {
        Incoming { large: Semaphore::new(LARGE_AT_ONCE), of_each: Mutex::default() }
    }
}

impl Incoming {
    fn of(&self, whose: &str) -> Arc<Semaphore> {
        let mut of_each = self.of_each.lock().unwrap_or_else(PoisonError::into_inner);
        of_each.retain(|_, large| large.strong_count() > 0);
        if let Some(large) = of_each.get(whose).and_then(Weak::upgrade) {
            return large;
        }
        let large = Arc::new(Semaphore::new(LARGE_OF_ONE));
        of_each.insert(whose.to_owned(), Arc::downgrade(&large));
        large
    }

    pub async fn read(&self, whose: &str, headers: &HeaderMap, body: Body) -> Result<Message, Box<Response>> {
        if let Some(why) = validate::body(headers) {
            return Err(Box::new(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, why)));
        }
        let small = body.size_hint().upper().is_some_and(|bytes| bytes <= SMALL_BYTES_MAX);
        let own = (!small).then(|| self.of(whose));
        let _turns = match &own {
            None => None,
            Some(own) => {
                let of_one = own.acquire().await.ok();
                of_one.zip(self.large.acquire().await.ok())
            }
        };
        let bytes = body::read(body, MESSAGE_BYTES_MAX, PAUSE_MAX).await.map_err(|error| match error {
            Unreadable::TooLarge(_) => {
                respond::complaint(StatusCode::PAYLOAD_TOO_LARGE, &NotAMessage::TooLarge)
            }
            error => problem(StatusCode::BAD_REQUEST, &error.to_string()),
        })?;
        let message = Message::parse(bytes);
        Ok(message.map_err(|problem| respond::complaint(StatusCode::BAD_REQUEST, &problem))?)
    }
}
