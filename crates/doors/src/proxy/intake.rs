//! Requests are read whole before anything is done with them: what is not whole causes nothing.

use super::refusal::{RefusalResponse, malformed, refuse};
use crate::caller::Caller;
use crate::http::body::{self, Gathered, PAUSE_MAX, Unreadable};
use crate::http::large_body_permits::{self, LargeBodyPermit, LargeBodyPermits};
use axum::body::Body;
use bytes::Bytes;
use http::header::{EXPECT, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// As much as a request that may change something has. Files of that size go by other ways.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most requests are smaller. Larger ones are held a few at a time, so that many clients together stay bounded too.
const SMALL_BYTES_MAX: usize = 1 << 20;
const LARGE_AT_ONCE: usize = 16;
const LARGE_OF_ONE: usize = 8;

#[derive(Debug)]
pub struct Intake {
    large: LargeBodyPermits,
}

impl Default for Intake {
    fn default() -> Self {
        Intake { large: LargeBodyPermits::new(LARGE_AT_ONCE, LARGE_OF_ONE) }
    }
}

/// A body, and its place among the large ones if it is one.
#[derive(Debug)]
pub struct WholeBody {
    pub bytes: Bytes,
    pub turn: Option<LargeBodyPermit>,
}

/// The beginning of a body that is not whole.
#[derive(Debug)]
pub struct PartialBody {
    pub bytes: Bytes,
    pub why: Unreadable,
}

impl Intake {
    pub async fn whole(&self, caller: &Caller, body: &mut Body) -> Result<WholeBody, PartialBody> {
        let part = |bytes, why| Err(PartialBody { bytes, why });
        if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
            return part(Bytes::new(), Unreadable::TooLarge(BODY_BYTES_MAX));
        }
        let mut gathered = Gathered::default();
        let mut turn = None;
        let mut late_from = None;
        let mut body = Pin::new(body);
        while !body.is_end_stream() {
            let data = match body::next(&mut body, PAUSE_MAX).await {
                Ok(Some(data)) => data,
                Ok(None) => break,
                Err(why) => return part(gathered.bytes(), why),
            };
            gathered.push(data);
            if gathered.len() > BODY_BYTES_MAX {
                return part(gathered.bytes(), Unreadable::TooLarge(BODY_BYTES_MAX));
            }
            if turn.is_none() && gathered.len() > SMALL_BYTES_MAX {
                match tokio::time::timeout(large_body_permits::WAIT_MAX, self.large.take(&caller.whose()))
                    .await
                {
                    Ok(taken) => turn = taken,
                    Err(_) => return part(gathered.bytes(), Unreadable::Crowded),
                }
                late_from = Some(crate::runtime::moment() + large_body_permits::TIME_MAX);
            }
            // A body that trickles keeps others from their turn.
            if late_from.is_some_and(|late| crate::runtime::moment() > late) {
                return part(gathered.bytes(), Unreadable::Stalled);
            }
        }
        Ok(WholeBody { bytes: gathered.bytes(), turn })
    }
}

/// Why nothing was done with a body.
pub fn not_whole(why: &Unreadable) -> RefusalResponse {
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
pub async fn whole_body(headers: &HeaderMap, mut body: Body, max: usize) -> Result<Bytes, RefusalResponse> {
    body::read(&mut body, max, PAUSE_MAX).await.map_err(|why| {
        // A client that waits for a word before it sends its body is not made to send it in vain.
        if !headers.contains_key(EXPECT) {
            drain(body);
        }
        not_whole(&why)
    })
}

/// Takes what a client still sends after it was refused: it reads its refusal only then. Within a runtime.
pub fn drain(body: Body) {
    /// A client that sends more, or takes longer, finds the connection closed.
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
pub struct ResumedBody {
    pub beginning: Bytes,
    pub rest: Body,
}

impl http_body::Body for ResumedBody {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::body::Piped;

    fn named(principal: &str) -> Caller {
        let (tenant, principal) = ("t".to_owned(), principal.to_owned());
        Caller { tenant, principal, run: None, surrounding_run: None, token: None }
    }

    fn large() -> Bytes {
        Bytes::from(vec![b'x'; SMALL_BYTES_MAX + 1])
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_waits_for_its_turn_and_not_for_ever() {
        let intake = Intake::default();
        let mut held = Vec::new();
        for _ in 0..LARGE_OF_ONE {
            held.push(intake.whole(&named("ann"), &mut Body::from(large())).await.expect("there is a place"));
        }
        let refused = intake.whole(&named("ann"), &mut Body::from(large())).await.expect_err("there is none");
        assert_eq!((refused.why, refused.bytes.len()), (Unreadable::Crowded, large().len()));
        assert!(intake.whole(&named("ann"), &mut Body::from("small")).await.is_ok());
        assert!(intake.whole(&named("bob"), &mut Body::from(large())).await.is_ok(), "another has its own");
        held.pop();
        assert!(intake.whole(&named("ann"), &mut Body::from(large())).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_trickles_loses_the_turn() {
        let intake = Intake::default();
        let (send, body) = Piped::new();
        let trickles = async {
            send.send(large()).await.expect("it is read");
            while send.send(Bytes::from_static(b"x")).await.is_ok() {
                tokio::time::sleep(PAUSE_MAX / 2).await;
            }
        };
        let mut body = Body::new(body);
        let read = async {
            let part = intake.whole(&named("ann"), &mut body).await;
            drop(body);
            part.expect_err("it takes too long")
        };
        let (part, ()) = tokio::join!(read, trickles);
        assert_eq!(part.why, Unreadable::Stalled);
        assert!(part.bytes.len() > large().len(), "nothing that came is lost");
    }
}
