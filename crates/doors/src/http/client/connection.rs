//! A connection to an upstream. It has no task of its own: whoever waits for an answer moves its bytes, which spares
//! changes of task on the way of every request; and it holds no buffers while nothing comes.

use super::counted::Counted;
use super::io::Io;
use super::{Payload, Unanswered, Unsent, plain};
use crate::http::outgoing::{Outgoing, Unwritten};
use crate::http::reading::{self, Broken};
use crate::http::wire::{Framing, Head, Malformed, Piece, read_answer};
use bytes::Bytes;
use http::Method;
use http::response::Parts;
use http_body::Frame;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::runtime;

/// Words before an answer (`100 Continue` and its like) have an end.
const BEFORE_HEAD_BYTES_MAX: usize = 1 << 20;

pub struct Connection {
    io: Io,
    /// What came and was not taken yet.
    came: Bytes,
    /// Where the answer ends that is being read.
    framing: Framing,
    /// What is left of a request when its answer comes early. Never locked: it is used through `&mut` alone, and so can
    /// be part of what is shared.
    outgoing: Mutex<Option<Box<Outgoing<Payload>>>>,
    keeps_open: bool,
    is_used: bool,
    home: runtime::Id,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("keeps_open", &self.keeps_open).finish_non_exhaustive()
    }
}

impl Connection {
    pub fn new(io: Io) -> Connection {
        let home = runtime::Handle::current().id();
        let (came, outgoing) = (Bytes::new(), Mutex::new(None));
        Connection { io, came, framing: Framing::Length(0), outgoing, keeps_open: true, is_used: false, home }
    }

    /// The runtime that hears its peer, and that has the fewest wake-ups with it therefore.
    pub fn home(&self) -> runtime::Id {
        self.home
    }

    /// Whether a request can be sent on it, as far as its peer has been heard.
    pub fn is_ready(&mut self) -> bool {
        self.framing.is_over() && self.outgoing().is_none() && self.is_quiet()
    }

    /// Whether it is open and nothing comes that nobody asked for.
    fn is_quiet(&mut self) -> bool {
        // Nobody waits for it while it is idle.
        let mut quietly = Context::from_waker(Waker::noop());
        self.keeps_open =
            self.keeps_open && self.came.is_empty() && self.poll_read(&mut quietly).is_pending();
        self.keeps_open
    }

    /// Whether some of a request is still to be written.
    pub fn is_writing(&mut self) -> bool {
        self.outgoing().is_some()
    }

    /// Writes what is left to be written. `false`: it cannot be used again. Whoever takes nothing for this long takes
    /// nothing more.
    pub async fn comes_to_rest(&mut self, patience: Duration) -> bool {
        loop {
            let before = self.below().written();
            match tokio::time::timeout(patience, poll_fn(|context| self.poll_write(context))).await {
                Ok(()) => return self.is_ready(),
                Err(_) if self.below().written() > before => {}
                Err(_) => return false,
            }
        }
    }

    /// Sends a request, and reads the head of its answer.
    pub async fn send(&mut self, request: Unsent) -> Result<Parts, Unanswered> {
        // What comes before it was asked for is not its answer, but perhaps somebody else's.
        if !self.is_quiet() || self.has_come() {
            let why = "the upstream has closed the connection".into();
            return Err(Unanswered::NeverSent(Box::new(request), why));
        }
        self.is_used = true;
        // Until its answer says so.
        self.keeps_open = false;
        let Unsent { method, mut outgoing } = request;
        let before = self.below().written();
        let begun = poll_fn(|context| outgoing.poll_write_some(Pin::new(&mut self.io), context)).await;
        if let Err(error) = begun {
            if self.below().written() > before {
                return Err(Unanswered::Lost(plain(&error)));
            }
            return Err(Unanswered::NeverSent(Box::new(Unsent { method, outgoing }), plain(&error)));
        }
        let mut outgoing = Some(outgoing);
        // Whoever does not read to the end may have answered all the same.
        let mut unwritten = None;
        let mut bytes = 0;
        let answered = poll_fn(|context| {
            if let Some(rest) = &mut outgoing
                && let Poll::Ready(written) = rest.poll_write_all(Pin::new(&mut self.io), context)
            {
                outgoing = None;
                match written {
                    Ok(()) => {}
                    Err(Unwritten::NotTaken(error)) => unwritten = Some(error),
                    Err(broke_off @ Unwritten::BrokeOff(_)) => return Poll::Ready(Err(plain(&broke_off))),
                }
            }
            self.poll_head(&method, &mut bytes, context).map_err(|error| plain(&error))
        });
        match answered.await {
            Ok(Head { parts, framing, keeps_open }) => {
                (self.framing, self.keeps_open) = (framing, keeps_open && unwritten.is_none());
                *self.outgoing() = outgoing.map(Box::new);
                Ok(parts)
            }
            Err(error) => Err(Unanswered::Lost(match unwritten {
                Some(before) => plain(&before),
                None => error,
            })),
        }
    }

    fn below(&self) -> &Counted {
        self.io.below()
    }

    /// Whether something has come by now. Behind its handshake TLS has some more to say.
    fn has_come(&self) -> bool {
        let still_greets = !self.is_used && self.io.is_tls();
        !still_greets && self.below().has_come()
    }

    /// The head, with how many bytes came until now.
    fn poll_head(
        &mut self,
        method: &Method,
        bytes: &mut usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<Head, Broken>> {
        loop {
            if let Some(head) = read_answer(&mut self.came, method)? {
                return Poll::Ready(Ok(head));
            }
            match ready!(self.poll_read(context))? {
                0 => return Poll::Ready(Err(Broken::Closed)),
                more => *bytes += more,
            }
            if *bytes > BEFORE_HEAD_BYTES_MAX {
                return Poll::Ready(Err(Malformed::HeadersTooLong.into()));
            }
        }
    }

    /// The next part of the answer's body.
    pub fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let _is_written_meanwhile = self.poll_write(context);
        let next = ready!(self.poll_piece(context));
        if next.is_err() {
            (self.framing, self.keeps_open) = (Framing::Length(0), false);
        }
        Poll::Ready(next.transpose())
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, Broken>> {
        loop {
            match self.framing.take(&mut self.came)? {
                Piece::Data(data) => return Poll::Ready(Ok(Some(Frame::data(data)))),
                Piece::Trailers(trailers) => return Poll::Ready(Ok(Some(Frame::trailers(trailers)))),
                Piece::End => return Poll::Ready(Ok(None)),
                Piece::Missing => {}
            }
            if ready!(self.poll_read(context))? == 0 {
                let ended = std::mem::replace(&mut self.framing, Framing::Length(0));
                let whole = ended == Framing::UntilClosed;
                return Poll::Ready(if whole { Ok(None) } else { Err(Broken::Closed) });
            }
        }
    }

    /// Where the answer ends that is being read.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        reading::poll_read(Pin::new(&mut self.io), &mut self.came, context)
    }

    /// Writes what is left of a request that was answered early.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let outgoing = self.outgoing.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(rest) = outgoing {
            let written = ready!(rest.poll_write_all(Pin::new(&mut self.io), context));
            *outgoing = None;
            self.keeps_open = self.keeps_open && written.is_ok();
        }
        Poll::Ready(())
    }

    fn outgoing(&mut self) -> &mut Option<Box<Outgoing<Payload>>> {
        self.outgoing.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
