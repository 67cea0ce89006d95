//! What is still to be written of a message.

use super::wire::Extent;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body::Body;
use std::fmt;
use std::io::{self, IoSlice, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

#[derive(Debug)]
pub struct Outgoing<B> {
    /// What was taken from the body and not written yet, between what frames it. At first the head is in front.
    front: BytesMut,
    data: Bytes,
    back: &'static [u8],
    /// `None`: all of it was taken.
    body: Option<B>,
    extent: Extent,
}

/// Why a message was not written to its end.
#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    /// Its reader takes no more.
    #[error("{0}")]
    NotTaken(#[from] io::Error),
    /// There is no more, and its reader would wait for it.
    #[error("the body broke off: {0}")]
    BrokeOff(String),
}

const CHUNK_END: &[u8] = b"\r\n";
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const CHUNK_END_AND_LAST: &[u8] = b"\r\n0\r\n\r\n";

impl<B> Outgoing<B> {
    /// Whose body is at hand, and of the length that its head says.
    pub fn whole(head: BytesMut, data: Bytes) -> Outgoing<B> {
        Outgoing { front: head, data, back: b"", body: None, extent: Extent::Length(0) }
    }

    /// Whether something was taken and not written yet.
    pub fn has_something(&self) -> bool {
        !(self.front.is_empty() && self.data.is_empty() && self.back.is_empty())
    }

    /// Whether something of the part of the body that was taken last is not written yet.
    pub fn has_data(&self) -> bool {
        !self.data.is_empty()
    }

    /// Whether all of the body was taken.
    pub fn is_all_taken(&self) -> bool {
        self.body.is_none()
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
        if self.front.is_empty() {
            // A head is long, and what follows it may take hours.
            self.front = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<B> Outgoing<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: fmt::Display,
{
    pub fn new(head: BytesMut, extent: Extent, body: B) -> Outgoing<B> {
        let body = (extent != Extent::Length(0)).then_some(body);
        Outgoing { front: head, data: Bytes::new(), back: b"", body, extent }
    }

    /// All of it.
    pub fn poll_write_all(
        &mut self,
        mut to: Pin<&mut impl AsyncWrite>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Unwritten>> {
        loop {
            let taken = self.poll_take(context)?;
            if self.has_something() {
                ready!(self.poll_write_some(to.as_mut(), context))?;
            } else {
                ready!(taken);
                if self.is_all_taken() {
                    return to.poll_flush(context).map_err(Unwritten::NotTaken);
                }
            }
        }
    }

    /// Asks the body for more, unless some of it is at hand. What is in front leaves together with it.
    pub fn poll_take(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Unwritten>> {
        let broke_off = |why: &str| Poll::Ready(Err(Unwritten::BrokeOff(why.to_owned())));
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(())) };
        if !(self.data.is_empty() && self.back.is_empty()) {
            return Poll::Ready(Ok(()));
        }
        let data = loop {
            match ready!(Pin::new(&mut *body).poll_frame(context)) {
                // What stands behind the data is for nobody but the next.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => break data,
                    _ => {}
                },
                Some(Err(error)) => return broke_off(&error.to_string()),
                None => break Bytes::new(),
            }
        };
        let mut is_last = data.is_empty() || body.is_end_stream();
        match &mut self.extent {
            Extent::Length(left) => {
                let Some(rest) = left.checked_sub(data.len() as u64) else {
                    return broke_off("it is longer than it said");
                };
                if is_last && rest > 0 {
                    return broke_off("it is shorter than it said");
                }
                *left = rest;
                // Nobody asks for what must not come.
                is_last = rest == 0;
            }
            Extent::UntilClosed => {}
            Extent::Chunked if data.is_empty() => self.back = LAST_CHUNK,
            Extent::Chunked => {
                let _never_fails = write!((&mut self.front).writer(), "{:x}\r\n", data.len());
                self.back = if is_last { CHUNK_END_AND_LAST } else { CHUNK_END };
            }
        }
        if is_last {
            self.body = None;
        }
        self.data = data;
        Poll::Ready(Ok(()))
    }
}
