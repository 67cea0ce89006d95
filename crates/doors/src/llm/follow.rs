//! The body of a response that follows an answer while it comes, and knows when its last byte was taken.

use super::live::{Ended, Next, Reader};
use super::meter::Meter;
use crate::hall::Hall;
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
    fn done(self) {
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
    from: From,
    last: Last,
}

#[derive(Debug)]
enum From {
    /// With the account of one who joined, and saves.
    Live(Reader, Arc<Hall>, Option<Box<Meter>>),
    Whole(Option<Bytes>, Option<Delivery>),
}

/// Where the end is.
#[derive(Debug)]
enum Last {
    NotYet,
    /// The last byte was given to the connection, which writes it before it asks again; if it cannot, it never asks.
    Given(Option<Box<Delivery>>),
    /// It broke off; what there was of it is written first.
    Broken,
    Over,
}

/// What comes next of an answer.
#[derive(Debug)]
enum Step {
    Piece(Bytes),
    End(Option<Delivery>),
    Broken,
}

/// The answer broke off, and so does its copy: a client must not take a part for the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer broke off")]
pub struct BrokenOff;

impl Following {
    pub fn live(reader: Reader, hall: Arc<Hall>, saves: Option<Meter>) -> Following {
        Following { from: From::Live(reader, hall, saves.map(Box::new)), last: Last::NotYet }
    }

    pub fn whole(body: Bytes, delivery: Option<Delivery>) -> Following {
        Following { from: From::Whole(Some(body), delivery), last: Last::NotYet }
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        let (reader, hall, saves) = match &mut self.from {
            From::Live(reader, hall, saves) => (reader, hall, saves),
            From::Whole(body, delivery) => {
                return Poll::Ready(body.take().map_or_else(|| Step::End(delivery.take()), Step::Piece));
            }
        };
        Poll::Ready(match ready!(reader.poll_next(context)) {
            Next::Piece(piece) => Step::Piece(piece),
            Next::End(Ended::Answer { mark, cost }) => {
                if let (Some(meter), Some(cost)) = (saves.take(), cost) {
                    meter.saved(hall, cost);
                }
                // Whoever has taken a stream so far is there to take its end.
                Step::End(mark.map(|mark| Delivery { hall: Arc::clone(hall), mark, late_from: None }))
            }
            Next::End(Ended::Error) => Step::End(None),
            Next::End(Ended::Cut) | Next::Lost => Step::Broken,
        })
    }
}

impl Body for Following {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if let Last::NotYet = self.last {
            match ready!(self.poll_step(context)) {
                Step::Piece(piece) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Step::Broken => self.last = Last::Broken,
                Step::End(delivery) => self.last = Last::Given(delivery.map(Box::new)),
            }
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        match std::mem::replace(&mut self.last, Last::Over) {
            Last::Broken => return Poll::Ready(Some(Err(BrokenOff))),
            Last::Given(Some(delivery)) => delivery.done(),
            _ => {}
        }
        Poll::Ready(None)
    }
}
