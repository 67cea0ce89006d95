//! The body of a response that follows an answer while it comes, and knows what follows once it has left.

use super::live::{Ended, Next, Reader};
use super::meter::Meter;
use super::usage::Tokens;
use crate::hall::Hall;
use crate::http::server::departure::Departure;
use crate::leaving::Left;
use bytes::Bytes;
use http_body::{Body, Frame};
use semel_gate::clock::Clock;
use semel_ledger::Found;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// What is marked once the answer has reached somebody, however many read it.
#[derive(Debug)]
pub struct Mark {
    found: Found,
    /// Whoever comes next waits for the mark as long as this is there.
    leaving: Mutex<Option<Left>>,
}

impl Mark {
    /// The mark needs no reply, and there may be many who hold it.
    pub fn of(hall: &Hall, found: Found) -> Arc<Mark> {
        // What was seen before needs no mark, and so keeps nobody waiting.
        let unmarked = found.effect().is_some_and(|effect| effect.delivered_at.is_none());
        let leaving = unmarked.then(|| hall.leaving.begin(found.key));
        Arc::new(Mark { found: Found { reply: None, ..found }, leaving: Mutex::new(leaving) })
    }
}

/// An answer that one reader has on its way.
#[derive(Debug)]
pub struct Delivery {
    pub hall: Arc<Hall>,
    pub mark: Arc<Mark>,
    /// After this moment, on the monotonic clock, nobody may be there any more to take it.
    pub late_from: Option<Duration>,
}

impl Delivery {
    pub fn done(self) {
        let Delivery { hall, mark, late_from } = self;
        if late_from.is_some_and(|late| hall.clock.elapsed() > late) {
            return;
        }
        let working = hall.busy.begin();
        tokio::spawn(async move {
            if let Ok(gate) = &hall.gate {
                // A missing mark means undelivered: the next request is answered from the record, which is safe.
                let _unmarked = gate.delivered(&mark.found).await;
            }
            drop(mark.leaving.lock().unwrap_or_else(PoisonError::into_inner).take());
            drop(working);
        });
    }
}

#[derive(Debug)]
pub struct Following {
    reader: Reader,
    hall: Arc<Hall>,
    /// The account of one who joined, and saves.
    saves: Option<Box<Meter>>,
    /// Of the response.
    departure: Departure,
    last: Last,
}

/// Where the end is.
#[derive(Debug, PartialEq, Eq)]
enum Last {
    NotYet,
    /// It broke off; what there was of it is written first.
    Broken,
    Over,
}

/// The answer broke off, and so does its copy: a client must not take a part for the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer broke off")]
pub struct BrokenOff;

impl Following {
    pub fn new(reader: Reader, hall: Arc<Hall>, saves: Option<Meter>, departure: Departure) -> Following {
        Following { reader, hall, saves: saves.map(Box::new), departure, last: Last::NotYet }
    }

    /// The whole answer is there.
    fn ends(&mut self, mark: Option<Arc<Mark>>, cost: Option<Tokens>) {
        if let (Some(meter), Some(cost)) = (self.saves.take(), cost) {
            meter.saved(&self.hall, cost);
        }
        if let Some(mark) = mark {
            // Whoever has taken a stream so far is there to take its end.
            let delivery = Delivery { hall: Arc::clone(&self.hall), mark, late_from: None };
            self.departure.is_followed_by(|| delivery.done());
        }
    }
}

impl Body for Following {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match std::mem::replace(&mut self.last, Last::Over) {
            Last::NotYet => self.last = Last::NotYet,
            Last::Broken => return Poll::Ready(Some(Err(BrokenOff))),
            Last::Over => return Poll::Ready(None),
        }
        match ready!(self.reader.poll_next(context)) {
            Next::Piece(piece) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
            Next::End(Ended::Answer { mark, cost }) => self.ends(mark, cost),
            Next::End(Ended::Error) => {}
            Next::End(Ended::Cut) | Next::Lost => {
                self.last = Last::Broken;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        self.last = Last::Over;
        Poll::Ready(None)
    }
}
