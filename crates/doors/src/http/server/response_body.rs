//! The body of a response on its way to hyper. It tells the socket which of its bytes are the last.

use super::departures::{Departures, LeavingResponse};
use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

#[derive(Debug)]
pub struct ResponseBody {
    body: Body,
    /// `None`: it was handed over to the socket.
    leaving: Option<LeavingResponse>,
    departures: Arc<Departures>,
    ends_with_connection: bool,
}

impl ResponseBody {
    pub fn new(
        body: Body,
        leaving: LeavingResponse,
        departures: Arc<Departures>,
        ends_with_connection: bool,
    ) -> ResponseBody {
        ResponseBody { body, leaving: Some(leaving), departures, ends_with_connection }
    }

    /// For a response of which the head is all.
    pub fn leave_at_once(mut self) -> ResponseBody {
        self.leave();
        self
    }

    /// The last bytes are given to hyper now, which puts them into its buffer before it writes again.
    fn leave(&mut self) {
        if let Some(leaving) = self.leaving.take() {
            self.departures.push(leaving);
        }
    }

    /// The same for a part that says all, though the stream goes on.
    fn leave_with_part(&mut self) {
        if let Some(LeavingResponse { on_sent, .. }) = &mut self.leaving
            && let Some(on_sent) = on_sent.take_if(|on_sent| on_sent.is_for_this_part())
        {
            self.departures.push(LeavingResponse { on_sent: Some(on_sent), held: Box::new(()) });
        }
    }

    fn is_over(&self) -> bool {
        self.body.is_end_stream() || self.body.size_hint().exact() == Some(0)
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            None => self.leave(),
            Some(Ok(_)) if self.is_over() => self.leave(),
            Some(Ok(_)) => self.leave_with_part(),
            Some(Err(_)) if self.ends_with_connection => self.departures.reset(),
            Some(Err(_)) => {}
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
