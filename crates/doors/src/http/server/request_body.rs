//! The body of a request, as it arrives.

use super::departures::Departures;
use crate::http::body::BodyError;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// It notes whether it was read to its end: a client that may still be sending is not hung up on at once.
#[derive(Debug)]
pub struct RequestBody {
    body: hyper::body::Incoming,
    departures: Arc<Departures>,
}

impl RequestBody {
    pub fn body(body: hyper::body::Incoming, departures: &Arc<Departures>) -> Body {
        let is_over = http_body::Body::is_end_stream(&body);
        departures.note_unread(!is_over);
        if is_over {
            return Body::empty();
        }
        Body::new(RequestBody { body, departures: Arc::clone(departures) })
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        // Hyper does not tell the end of a body that is read behind its response.
        if self.body.is_end_stream() {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.departures.note_unread(false);
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
