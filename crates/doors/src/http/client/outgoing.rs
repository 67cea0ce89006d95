//! What is still to be written of a request.

use super::Payload;
use super::wire::Extent;
use bytes::{Buf, Bytes};
use http_body::Body;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

#[derive(Debug)]
pub struct Outgoing {
    /// What was taken from the body and not written yet, between what frames it.
    front: Bytes,
    data: Bytes,
    back: &'static [u8],
    /// `None`: all of it was taken.
    body: Option<Payload>,
    extent: Extent,
}

/// Why a request was not written to its end.
#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    /// The upstream takes no more. It may have answered all the same.
    #[error("{0}")]
    NotTaken(#[from] io::Error),
    /// There is no more, and the upstream would wait for it.
    #[error("the request broke off: {0}")]
    BrokeOff(String),
}

const CHUNK_END: &[u8] = b"\r\n";
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

impl Outgoing {
    /// What is at hand of the body is written along with the head.
    pub fn new(head: Bytes, extent: Extent, body: Payload) -> Outgoing {
        let (data, body) = match (body, extent) {
            (Payload::Whole(data), _) => (data, None),
            (Payload::Streamed(_), Extent::Length(0)) => (Bytes::new(), None),
            (arriving @ Payload::Streamed(_), _) => (Bytes::new(), Some(arriving)),
        };
        Outgoing { front: head, data, back: b"", body, extent }
    }

    /// The body, if nothing of it was written.
    pub fn unwritten(self) -> Payload {
        self.body.unwrap_or(Payload::Whole(self.data))
    }

    /// One write of what is at hand.
    pub fn poll_write_some(
        &mut self,
        to: Pin<&mut impl AsyncWrite>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let parts = [IoSlice::new(&self.front), IoSlice::new(&self.data), IoSlice::new(self.back)];
        let mut written = match &parts {
            [front, data, back] if data.is_empty() && back.is_empty() => {
                ready!(to.poll_write(context, front))?
            }
            parts => ready!(to.poll_write_vectored(context, parts))?,
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        let mut off = |part: &mut dyn Buf| {
            let taken = part.remaining().min(written);
            part.advance(taken);
            written -= taken;
        };
        off(&mut self.front);
        off(&mut self.data);
        off(&mut self.back);
        Poll::Ready(Ok(()))
    }

    /// All of it.
    pub fn poll_write_all(
        &mut self,
        mut to: Pin<&mut impl AsyncWrite>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Unwritten>> {
        loop {
            while self.has_something() {
                ready!(self.poll_write_some(to.as_mut(), context))?;
            }
            if self.body.is_none() {
                return to.poll_flush(context).map_err(Unwritten::NotTaken);
            }
            ready!(self.poll_take_more(context))?;
        }
    }

    fn has_something(&self) -> bool {
        !(self.front.is_empty() && self.data.is_empty() && self.back.is_empty())
    }

    /// Asks the body for more.
    fn poll_take_more(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Unwritten>> {
        let broke_off = |why: &str| Poll::Ready(Err(Unwritten::BrokeOff(why.to_owned())));
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(())) };
        let data = match ready!(Pin::new(body).poll_frame(context)) {
            // What stands behind the data is for nobody but the next.
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => return broke_off(&error.to_string()),
            None => {
                self.body = None;
                match self.extent {
                    Extent::Length(0) => {}
                    Extent::Length(_) => return broke_off("its body is shorter than it said"),
                    Extent::Chunked => self.back = LAST_CHUNK,
                }
                return Poll::Ready(Ok(()));
            }
        };
        if data.is_empty() {
            return Poll::Ready(Ok(()));
        }
        match &mut self.extent {
            Extent::Length(left) => match left.checked_sub(data.len() as u64) {
                Some(rest) => *left = rest,
                None => return broke_off("its body is longer than it said"),
            },
            Extent::Chunked => {
                let size = format!("{:x}\r\n", data.len());
                (self.front, self.back) = (size.into(), CHUNK_END);
            }
        }
        self.data = data;
        Poll::Ready(Ok(()))
    }
}
