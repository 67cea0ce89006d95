//! The body of an answer about an effect: once the connection has taken its last byte, it counts as delivered.

use crate::hall::Hall;
use crate::leaving::Left;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use semel_gate::clock::Clock;
use semel_ledger::Found;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What is marked once an answer has left.
#[derive(Debug)]
pub struct Delivery {
    hall: Arc<Hall>,
    found: Found,
    /// Whoever comes next waits until it is marked, or until it is known to be lost.
    left: Left,
    /// When the request came, on the monotonic clock.
    came: Duration,
    late_after: Duration,
}

impl Delivery {
    /// `None`: there is nothing to mark, or it was marked before.
    pub fn of(
        hall: &Arc<Hall>,
        found: Option<Found>,
        came: Duration,
        late_after: Duration,
    ) -> Option<Delivery> {
        let unmarked = |found: &Found| found.effect().is_some_and(|effect| effect.delivered_at.is_none());
        let found = found.filter(unmarked)?;
        let left = hall.leaving.begin(found.key);
        Some(Delivery { hall: Arc::clone(hall), found, left, came, late_after })
    }

    /// Marks it, unless it was late: whoever had asked may have gone by then.
    pub fn mark(self) {
        let Delivery { hall, found, left, came, late_after } = self;
        if hall.clock.elapsed().saturating_sub(came) > late_after {
            return;
        }
        let working = hall.busy.begin();
        let marking = Arc::clone(&hall);
        tokio::spawn(async move {
            if let Ok(gate) = &marking.gate {
                // A missing mark means undelivered: the next call is answered from the record, which is safe.
                let _unmarked = gate.delivered(&found).await;
            }
            drop((left, working));
        });
    }
}

/// What a connection takes at a time, so that it has not taken much more than it has sent.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// An answer that is at hand.
#[derive(Debug)]
pub struct Whole {
    rest: Bytes,
    delivery: Option<Delivery>,
    /// An empty body is never asked for; that the connection looked whether it is empty tells that it goes out.
    looked_at: Cell<bool>,
}

impl Whole {
    pub fn new(bytes: Bytes, delivery: Option<Delivery>) -> Whole {
        Whole { rest: bytes, delivery, looked_at: Cell::new(false) }
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(PIECE_BYTES_MAX);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.looked_at.set(true);
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(delivery) = self.delivery.take().filter(|_| self.rest.is_empty() && self.looked_at.get())
        {
            delivery.mark();
        }
    }
}
