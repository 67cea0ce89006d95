//! The body of a request, as it arrives.

use super::line::{Broken, Line};
use crate::http::wire::Framing;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Whoever reads it reads its connection.
#[derive(Debug)]
pub struct Incoming(Line);

impl Incoming {
    /// What is there already needs no connection.
    pub fn body(line: &Line, framing: Framing, waits_for_word: bool) -> Body {
        if framing.is_over() {
            return Body::empty();
        }
        if let Some(whole) = line.take_whole(framing) {
            return Body::from(whole);
        }
        line.begins_body(framing, waits_for_word);
        Body::new(Incoming(line.clone()))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.0.ends_body();
    }
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.0.poll_body(context).map(|next| next.map(|data| data.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_body_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.body_left().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
