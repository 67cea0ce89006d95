//! The body of a response, as it arrives.

use super::connection::Connection;
use super::idle::Idle;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Whoever reads it moves its connection. Once it was read to its end, that may be used again.
#[derive(Debug)]
pub struct Incoming {
    body: hyper::body::Incoming,
    connection: Option<(Connection, Idle)>,
}

impl Incoming {
    pub(super) fn new(body: hyper::body::Incoming, connection: Connection, idle: Idle) -> Incoming {
        let mut incoming = Incoming { body, connection: Some((connection, idle)) };
        if incoming.body.is_end_stream() {
            incoming.finish();
        }
        incoming
    }

    fn finish(&mut self) {
        if let Some((connection, idle)) = self.connection.take() {
            idle.put(connection);
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
        let Incoming { body, connection } = &mut *self;
        let frame = match connection {
            Some((connection, _)) => ready!(connection.poll_frame(body, context)),
            None => ready!(Pin::new(body).poll_frame(context)),
        };
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
