//! The body of a response, as it arrives.

use super::Payload;
use super::idle::Idle;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::client::conn::http1::SendRequest;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Once it was read to its end, its connection may be used again.
#[derive(Debug)]
pub struct Incoming {
    body: hyper::body::Incoming,
    connection: Option<(SendRequest<Payload>, Idle)>,
}

impl Incoming {
    pub(super) fn new(body: hyper::body::Incoming, sender: SendRequest<Payload>, idle: Idle) -> Incoming {
        let mut incoming = Incoming { body, connection: Some((sender, idle)) };
        if incoming.body.is_end_stream() {
            incoming.finish();
        }
        incoming
    }

    fn finish(&mut self) {
        if let Some((sender, idle)) = self.connection.take() {
            idle.put(sender);
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        // Whoever knows how much there is does not ask for the end.
        if frame.is_none() || self.body.is_end_stream() {
            self.finish();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
