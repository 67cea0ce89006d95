//! The body of a response that follows an answer while it comes, and knows what follows once it has left.

use super::form::says_only_usage;
use super::live_answer::{AnswerEnd, AnswerReader, NextPiece};
use super::meter::Meter;
use super::usage::TokenUsage;
use crate::http::server::on_sent::OnSent;
use crate::services::Services;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

#[derive(Debug)]
pub struct JoinedBody {
    reader: AnswerReader,
    services: Arc<Services>,
    /// The account of one who joined, and saves.
    saves: Option<Box<Meter>>,
    /// It has joined a stream of chat that says what it cost, and did not ask for that.
    hides_usage: bool,
    /// Of the response.
    on_sent: OnSent,
    /// The event that ends the stream was given.
    has_terminal: bool,
    last: StreamEnd,
}

/// Where the end is.
#[derive(Debug, PartialEq, Eq)]
enum StreamEnd {
    NotYet,
    /// It broke off; what there was of it is written first.
    Broken,
    Over,
}

/// The answer broke off, and so does its copy: a client must not take a part for the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer broke off")]
pub struct BrokenOff;

impl JoinedBody {
    pub fn new(
        reader: AnswerReader,
        services: Arc<Services>,
        saves: Option<Meter>,
        on_sent: OnSent,
    ) -> JoinedBody {
        let saves = saves.map(Box::new);
        JoinedBody {
            reader,
            services,
            saves,
            hides_usage: false,
            on_sent,
            has_terminal: false,
            last: StreamEnd::NotYet,
        }
    }

    pub fn hiding_usage(self, hides_usage: bool) -> JoinedBody {
        JoinedBody { hides_usage, ..self }
    }

    fn saves(&mut self, cost: Option<TokenUsage>) {
        if let (Some(meter), Some(cost)) = (self.saves.take(), cost) {
            meter.saved(&self.services, cost);
        }
    }
}

impl Body for JoinedBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match std::mem::replace(&mut self.last, StreamEnd::Over) {
            StreamEnd::NotYet => self.last = StreamEnd::NotYet,
            StreamEnd::Broken => return Poll::Ready(Some(Err(BrokenOff))),
            StreamEnd::Over => return Poll::Ready(None),
        }
        let mut next = ready!(self.reader.poll_next(context));
        while let NextPiece::Piece(piece) = &next
            && self.hides_usage
            && says_only_usage(piece)
        {
            next = ready!(self.reader.poll_next(context));
        }
        match next {
            NextPiece::Piece(piece) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
            NextPiece::Terminal { piece, delivery, cost } => {
                self.saves(cost);
                if let Some(delivery) = delivery {
                    self.on_sent.set_for_this_part(|| delivery.mark());
                }
                self.has_terminal = true;
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            NextPiece::End(AnswerEnd::Answer { delivery, cost }) => {
                self.saves(cost);
                if let Some(delivery) = delivery.filter(|_| !self.has_terminal) {
                    self.on_sent.set(|| delivery.mark());
                }
            }
            NextPiece::End(AnswerEnd::Error) => {}
            NextPiece::End(AnswerEnd::Cut | AnswerEnd::CutAtError) | NextPiece::Lost => {
                self.last = StreamEnd::Broken;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        self.last = StreamEnd::Over;
        Poll::Ready(None)
    }
}
