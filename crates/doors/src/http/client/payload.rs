//! The body of a request: at hand, or given on as it arrives.

use axum::body::Body as Arriving;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

#[derive(Debug)]
pub enum Payload {
    Whole(Bytes),
    Streamed(Arriving),
}

impl Payload {
    /// The same once more, if it is at hand.
    pub fn try_clone(&self) -> Option<Payload> {
        match self {
            Payload::Whole(whole) => Some(Payload::Whole(whole.clone())),
            Payload::Streamed(_) => None,
        }
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Payload {
        Payload::Whole(bytes)
    }
}

impl From<Arriving> for Payload {
    fn from(arriving: Arriving) -> Payload {
        Payload::Streamed(arriving)
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut *self {
            Payload::Whole(whole) if whole.is_empty() => Poll::Ready(None),
            Payload::Whole(whole) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(whole))))),
            Payload::Streamed(arriving) => Pin::new(arriving).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Payload::Whole(whole) => whole.is_empty(),
            Payload::Streamed(arriving) => arriving.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Payload::Whole(whole) => SizeHint::with_exact(whole.len() as u64),
            Payload::Streamed(arriving) => arriving.size_hint(),
        }
    }
}
