//! Requests are read whole before anything is done with them: what is not whole causes nothing.

use super::refused::{Refused, malformed, refuse};
use crate::http::body::{self, PAUSE_MAX, Unreadable};
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::header::{EXPECT, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// As much as a request that may change something has. Files of that size go by other ways.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most requests are smaller. Larger ones are held a few at a time, so that many clients together stay bounded too.
const SMALL_BYTES_MAX: usize = 1 << 20;
const LARGE_AT_ONCE: usize = 16;

/// How long a large one waits for its place, and how long it may keep it until it is whole.
const PLACE_WAIT_MAX: Duration = Duration::from_secs(5);
const LARGE_TIME_MAX: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub struct Intake {
    large: Arc<Semaphore>,
}

impl Default for Intake {
    fn default() -> Self {
        Intake { large: Arc::new(Semaphore::new(LARGE_AT_ONCE)) }
    }
}

/// A body, and its place among the large ones if it is one.
#[derive(Debug)]
pub struct Whole {
    pub bytes: Bytes,
    pub turn: Option<OwnedSemaphorePermit>,
}

/// What there is of a body that is not whole.
#[derive(Debug)]
pub struct Part {
    pub bytes: Bytes,
    pub why: Unreadable,
}

impl Intake {
    pub async fn whole(&self, body: &mut Body) -> Result<Whole, Part> {
        let part = |bytes, why| Err(Part { bytes, why });
        if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
            return part(Bytes::new(), Unreadable::TooLarge(BODY_BYTES_MAX));
        }
        // Most bodies come in one piece, which is then not copied.
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        let mut turn = None;
        let mut late_from = None;
        let mut body = Pin::new(body);
        while !body.is_end_stream() {
            let joined = |first, rest: BytesMut| if rest.is_empty() { first } else { rest.freeze() };
            let data = match body::next(&mut body, PAUSE_MAX).await {
                Ok(Some(data)) => data,
                Ok(None) => break,
                Err(why) => return part(joined(first, rest), why),
            };
            let length = first.len() + rest.len() + data.len();
            if turn.is_none() && length > SMALL_BYTES_MAX {
                let place = Arc::clone(&self.large).acquire_owned();
                match tokio::time::timeout(PLACE_WAIT_MAX, place).await {
                    Ok(place) => turn = place.ok(),
                    Err(_) => return part(joined(first, rest), Unreadable::Crowded),
                }
                late_from = Some(crate::runtime::moment() + LARGE_TIME_MAX);
            }
            // Whoever trickles keeps others from their turn.
            if late_from.is_some_and(|late| crate::runtime::moment() > late) {
                return part(joined(first, rest), Unreadable::Stalled);
            }
            if first.is_empty() && rest.is_empty() {
                first = data;
                continue;
            }
            if rest.is_empty() {
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
            if length > BODY_BYTES_MAX {
                return part(joined(first, rest), Unreadable::TooLarge(BODY_BYTES_MAX));
            }
        }
        let bytes = if rest.is_empty() { first } else { rest.freeze() };
        Ok(Whole { bytes, turn })
    }
}

/// Why nothing was done with a body.
pub fn not_whole(why: &Unreadable) -> Refused {
    let said = format!("{why}; nothing was sent");
    match why {
        Unreadable::TooLarge(_) => refuse(StatusCode::PAYLOAD_TOO_LARGE, &said),
        Unreadable::Stalled => refuse(StatusCode::REQUEST_TIMEOUT, &said),
        Unreadable::Crowded => {
            let mut refused = refuse(StatusCode::SERVICE_UNAVAILABLE, &said);
            refused.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            refused
        }
        Unreadable::Broken(_) => malformed(why),
    }
}

/// The body of a request, if it has at most so many bytes.
pub async fn whole_body(headers: &HeaderMap, mut body: Body, max: usize) -> Result<Bytes, Refused> {
    body::read(&mut body, max, PAUSE_MAX).await.map_err(|why| {
        // Whoever waits for a word before it sends its body is not made to send it in vain.
        if !headers.contains_key(EXPECT) {
            drain(body);
        }
        not_whole(&why)
    })
}

/// Takes what a client still sends after it was refused: it reads its refusal only then. Within a runtime.
pub fn drain(body: Body) {
    /// Whoever sends more, or takes longer, finds the connection closed.
    const BYTES_MAX: usize = 64 * 1024 * 1024;
    const TIME_MAX: Duration = Duration::from_secs(10);
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(tokio::time::timeout(TIME_MAX, async move {
        let mut body = std::pin::pin!(body);
        let mut taken = 0;
        while let Ok(Some(data)) = body::next(&mut body, TIME_MAX).await {
            taken += data.len();
            if taken > BYTES_MAX {
                break;
            }
        }
    }));
}

/// A body whose beginning was read already.
#[derive(Debug)]
pub struct Resumed {
    pub beginning: Bytes,
    pub rest: Body,
}

impl http_body::Body for Resumed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.beginning.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.beginning)))));
        }
        Pin::new(&mut self.rest).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.beginning.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + self.beginning.len() as u64);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + self.beginning.len() as u64);
        }
        hint
    }
}
