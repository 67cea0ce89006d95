//! The body of a response, as it arrives.

use super::connection::Connection;
use super::pool::Pool;
use crate::http::body::BodyError;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::response::Parts;
use http::{Method, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The reader drives the connection. Once the body was read to its end, the connection may be used again.
#[derive(Debug)]
pub struct Incoming {
    body: hyper::body::Incoming,
    /// `None`: the body is over.
    connection: Option<Connection>,
    return_to: Option<(Pool, Arc<str>)>,
    framing: BodyFraming,
}

impl Incoming {
    pub(super) fn new(
        body: hyper::body::Incoming,
        framing: BodyFraming,
        connection: Connection,
        return_to: (Pool, Arc<str>),
    ) -> Incoming {
        let is_reusable = matches!(framing, BodyFraming::Clear | BodyFraming::Stream);
        let return_to = is_reusable.then_some(return_to);
        let mut incoming = Incoming { body, connection: Some(connection), return_to, framing };
        if incoming.body.is_end_stream() {
            incoming.finish();
        }
        incoming
    }

    /// Whether it says itself where it ends, and not by its connection's end alone.
    pub fn has_end(&self) -> bool {
        self.framing != BodyFraming::UntilClosed
    }

    fn finish(&mut self) {
        if let (Some(connection), Some((pool, owner))) = (self.connection.take(), self.return_to.take()) {
            pool.put(connection, owner);
        }
    }
}

/// How a response says where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    Clear,
    /// A stream of HTTP/2. One that the server resets or leaves without naming an error looks to hyper like one that has
    /// ended, and only its state tells them apart.
    Stream,
    /// It has no body, and some servers send one all the same: it would be taken for the next response.
    NoBody,
    UntilClosed,
}

impl BodyFraming {
    pub fn of(head: &Parts, method: &Method) -> BodyFraming {
        let is_chunked = || {
            let last = head.headers.get_all(TRANSFER_ENCODING).iter().next_back();
            last.is_some_and(|codings| codings.as_bytes().to_ascii_lowercase().ends_with(b"chunked"))
        };
        let has_length =
            || head.headers.contains_key(CONTENT_LENGTH) && !head.headers.contains_key(TRANSFER_ENCODING);
        match head.status {
            _ if head.version == Version::HTTP_2 => BodyFraming::Stream,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => BodyFraming::NoBody,
            _ if *method == Method::HEAD => BodyFraming::NoBody,
            _ if is_chunked() || has_length() => BodyFraming::Clear,
            _ => BodyFraming::UntilClosed,
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_pending()
            && let Some(connection) = &mut self.connection
        {
            connection.drive(context);
            polled = Pin::new(&mut self.body).poll_frame(context);
        }
        match &polled {
            Poll::Ready(Some(Ok(_))) if self.body.is_end_stream() => self.finish(),
            Poll::Ready(None) if self.framing == BodyFraming::Stream && !self.body.is_end_stream() => {
                self.connection = None;
                return Poll::Ready(Some(Err(BodyError::cut())));
            }
            Poll::Ready(None) => self.finish(),
            Poll::Ready(Some(Err(_))) => self.connection = None,
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        polled.map_err(BodyError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
