//! The body of a response that follows an answer while it comes, and knows when its last byte was taken.

use super::live::{Ended, Next, Reader};
use crate::hall::Hall;
use crate::leaving::Left;
use bytes::Bytes;
use http_body::{Body, Frame};
use semel_gate::clock::Clock;
use semel_ledger::Found;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// What is marked once the last byte was taken.
#[derive(Debug)]
pub struct Delivery {
    pub hall: Arc<Hall>,
    pub found: Option<Arc<Found>>,
    /// Whoever comes next waits for the mark as long as this is held.
    pub leaving: Option<Arc<Left>>,
    /// After this moment, on the monotonic clock, nobody may be there any more to take it.
    pub late_from: Option<Duration>,
}

impl Delivery {
    fn done(self) {
        let Delivery { hall, found, leaving, late_from } = self;
        let late = late_from.is_some_and(|late| hall.clock.elapsed() > late);
        let Some(found) = found.filter(|_| !late) else { return };
        let working = hall.busy.begin();
        tokio::spawn(async move {
            if let Ok(gate) = &hall.gate {
                // A missing mark means undelivered: the next request is answered from the record, which is safe.
                let _unmarked = gate.delivered(&found).await;
            }
            drop((leaving, working));
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
    /// With the action whose tokens a joined answer saves.
    Live(Reader, Arc<Hall>, Option<&'static str>),
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
    pub fn live(reader: Reader, hall: Arc<Hall>, saves: Option<&'static str>) -> Following {
        Following { from: From::Live(reader, hall, saves), last: Last::NotYet }
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
            Next::End(Ended::Answer { delivery: found, leaving, cost }) => {
                if let (Some(action), Some(cost)) = (saves.take(), cost) {
                    hall.lives.counts.change(action, |totals| totals.saved.add(cost));
                }
                // Whoever has taken a stream so far is there to take its end.
                Step::End(Some(Delivery { hall: Arc::clone(hall), found, leaving, late_from: None }))
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
