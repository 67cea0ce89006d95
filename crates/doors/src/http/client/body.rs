//! The body of a response, as it arrives.

use super::connection::Connection;
use super::idle::Idle;
use crate::http::reading::Broken;
use crate::http::wire::Framing;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Whoever reads it moves its connection. Once it was read to its end, that may be used again.
#[derive(Debug)]
pub struct Incoming(Option<(Connection, Idle)>);

impl Incoming {
    pub(super) fn new(connection: Connection, idle: Idle) -> Incoming {
        let mut incoming = Incoming(Some((connection, idle)));
        incoming.finish_if_over();
        incoming
    }

    /// Whether it says itself where it ends, and not by its connection's end alone.
    pub fn has_end(&self) -> bool {
        self.0.as_ref().is_none_or(|(connection, _)| connection.framing() != Framing::UntilClosed)
    }

    /// Whoever knows how much there is does not ask for the end.
    fn finish_if_over(&mut self) {
        if let Some((connection, idle)) = self.0.take_if(|(connection, _)| connection.framing().is_over()) {
            idle.put(connection);
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let Some((connection, _)) = &mut self.0 else { return Poll::Ready(None) };
        let frame = ready!(connection.poll_frame(context));
        self.finish_if_over();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.0.as_ref().map_or(Some(0), |(connection, _)| connection.framing().left());
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
