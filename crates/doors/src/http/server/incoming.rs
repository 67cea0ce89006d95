//! The body of a request, as it arrives.

use super::line::Line;
use crate::http::reading::Broken;
use crate::http::wire::Framing;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Whoever reads it reads its connection, as long as that is with this request.
#[derive(Debug)]
pub struct Incoming {
    line: Line,
    number: u64,
}

impl Incoming {
    /// What is there already needs no connection.
    pub fn body(line: &Line, framing: Framing, waits_for_word: bool) -> Body {
        if framing.is_over() {
            return Body::empty();
        }
        if let Some(whole) = line.take_whole(framing) {
            return Body::from(whole);
        }
        let number = line.begins_body(framing, waits_for_word);
        Body::new(Incoming { line: line.clone(), number })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.line.ends_body(self.number);
    }
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.line.poll_body(self.number, context).map(|next| next.map(|data| data.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.line.body_left(self.number) == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.line.body_left(self.number).map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
