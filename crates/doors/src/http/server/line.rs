//! A client's line, which its connection shares with the body of the request that comes on it.

use crate::http::reading::{self, Broken};
use crate::http::wire::{Asked, Framing, Malformed, Piece, has_whole_head, read_question};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

/// What a client may have sent ahead while an earlier request is answered. Whether it went away is not heard behind it.
const AHEAD_BYTES_MAX: usize = 64 * 1024;

const GO_ON: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Locked for one read or one write at a time.
#[derive(Debug, Clone)]
pub struct Line(Arc<Mutex<Wire>>);

#[derive(Debug)]
struct Wire {
    stream: TcpStream,
    /// What came and was not taken yet.
    came: Bytes,
    /// How much of it is known to be no whole head.
    looked_at: usize,
    /// The request whose body is being read: whoever still holds an earlier one gets nothing of it.
    number: u64,
    /// Where that body ends.
    framing: Framing,
    /// Somebody has it, and may read it.
    is_read: bool,
    /// A word that the client waits for before it sends the body.
    word: &'static [u8],
    /// Whoever wants to know that the body is read no more.
    waits: Option<Waker>,
    /// Whoever waits for more of the body.
    reads: Option<Waker>,
    /// What comes from now on is nobody's body.
    is_cut_off: bool,
}

/// What whoever listens behind a request has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    Gone,
    TooMuch,
}

impl Line {
    pub fn new(stream: TcpStream) -> Line {
        Line(Arc::new(Mutex::new(Wire {
            stream,
            came: Bytes::new(),
            looked_at: 0,
            number: 0,
            framing: Framing::Length(0),
            is_read: false,
            word: b"",
            waits: None,
            reads: None,
            is_cut_off: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The head of the next request; `None` when no more will come.
    pub fn poll_question(&self, context: &mut Context<'_>) -> Poll<Result<Option<Asked>, Malformed>> {
        let wire = &mut *self.lock();
        loop {
            let is_new = !wire.came.is_empty() && wire.looked_at == 0;
            if (is_new || has_whole_head(&wire.came, wire.looked_at))
                && let Some(asked) = read_question(&mut wire.came)?
            {
                wire.looked_at = 0;
                return Poll::Ready(Ok(Some(asked)));
            }
            wire.looked_at = wire.came.len();
            if !matches!(ready!(wire.poll_read(context)), Ok(1..)) {
                return Poll::Ready(Ok(None));
            }
        }
    }

    /// Whether nothing of a request has come.
    pub fn is_idle(&self) -> bool {
        self.lock().came.is_empty()
    }

    /// All of the request's body, if it is there already.
    pub fn take_whole(&self, framing: Framing) -> Option<Bytes> {
        let mut wire = self.lock();
        let length = framing.left().and_then(|length| usize::try_from(length).ok())?;
        (length <= wire.came.len()).then(|| wire.came.split_to(length))
    }

    /// The request's body is read, by whoever asks for it with this number.
    pub fn begins_body(&self, framing: Framing, waits_for_word: bool) -> u64 {
        let mut wire = self.lock();
        wire.number += 1;
        (wire.framing, wire.is_read) = (framing, true);
        wire.word = if waits_for_word { GO_ON } else { b"" };
        wire.number
    }

    /// Nobody reads that body any more.
    pub fn ends_body(&self, number: u64) {
        let mut wire = self.lock();
        if wire.number == number {
            wire.is_read = false;
            wire.wakes();
        }
    }

    /// How much of that body is left, if that is known.
    pub fn body_left(&self, number: u64) -> Option<u64> {
        let wire = self.lock();
        if wire.number == number { wire.framing.left() } else { Some(0) }
    }

    /// The next part of that body.
    pub fn poll_body(&self, number: u64, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        let wire = &mut *self.lock();
        if wire.number != number {
            // The next request is not begun before all of this one was read.
            return Poll::Ready(None);
        }
        if wire.is_cut_off {
            return Poll::Ready(Some(Err(Broken::Closed)));
        }
        let Poll::Ready(piece) = wire.poll_piece(context) else {
            wire.reads = Some(context.waker().clone());
            return Poll::Pending;
        };
        if wire.framing.is_over() {
            wire.wakes();
        }
        Poll::Ready(piece.transpose())
    }

    /// Whether another request can be read behind this one: its body was read, or is being read, or has come so far that
    /// it can be passed over.
    pub fn can_go_on(&self) -> bool {
        let wire = &mut *self.lock();
        if !wire.is_read && wire.word.is_empty() {
            while let Ok(Piece::Data(_) | Piece::Trailers(_)) = wire.framing.take(&mut wire.came) {}
        }
        wire.is_read || wire.framing.is_over()
    }

    /// Once nobody reads the body any more: whether it was read to its end.
    pub fn poll_body_read(&self, context: &mut Context<'_>) -> Poll<bool> {
        let mut wire = self.lock();
        if wire.is_read && !wire.framing.is_over() {
            return wire.waits(context);
        }
        Poll::Ready(wire.framing.is_over())
    }

    /// Ready when the client has gone, or has sent so much ahead that it is not heard behind that. As long as its body is
    /// read, whoever reads it hears of it.
    pub fn poll_ahead(&self, context: &mut Context<'_>) -> Poll<Ahead> {
        let wire = &mut *self.lock();
        if wire.is_read && !wire.framing.is_over() {
            return wire.waits(context);
        }
        while wire.came.len() < AHEAD_BYTES_MAX {
            if !matches!(ready!(wire.poll_read(context)), Ok(1..)) {
                return Poll::Ready(Ahead::Gone);
            }
        }
        Poll::Ready(Ahead::TooMuch)
    }

    /// Whoever still reads the body gets no more of it.
    pub fn cuts_off(&self) {
        let mut wire = self.lock();
        wire.is_cut_off = true;
        if let Some(reader) = wire.reads.take() {
            reader.wake();
        }
    }

    /// Reads what comes, for nobody.
    pub fn poll_drain(&self, context: &mut Context<'_>) -> Poll<()> {
        let wire = &mut *self.lock();
        loop {
            wire.came = Bytes::new();
            if !matches!(ready!(wire.poll_read(context)), Ok(1..)) {
                return Poll::Ready(());
            }
        }
    }

    /// Ends with an error for its client, so that what was cut off does not look whole.
    pub fn resets(&self) {
        let _else_it_closes =
            rustix::net::sockopt::set_socket_linger(&self.lock().stream, Some(Duration::ZERO));
    }

    /// Whether its client may not have done with sending.
    pub fn may_be_sent_more(&self) -> bool {
        let wire = self.lock();
        !wire.framing.is_over() || !wire.came.is_empty()
    }

    /// A byte that the client sent behind its request hides its hanging up from whoever only reads.
    pub fn has_hung_up(&self) -> bool {
        #[cfg(target_os = "linux")]
        let hung_up = PollFlags::RDHUP;
        #[cfg(not(target_os = "linux"))]
        let hung_up = PollFlags::HUP;
        let wire = self.lock();
        let mut asked = [PollFd::new(&wire.stream, hung_up)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut asked, Some(&at_once)).is_ok_and(|found| found > 0)
    }
}

impl Wire {
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        reading::poll_read(Pin::new(&mut self.stream), &mut self.came, context)
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        loop {
            match self.framing.take(&mut self.came)? {
                Piece::Data(data) => return Poll::Ready(Ok(Some(data))),
                // They say nothing that anybody here asks for.
                Piece::Trailers(_) => {}
                Piece::End => return Poll::Ready(Ok(None)),
                Piece::Missing => {
                    ready!(self.poll_say_word(context))?;
                    if ready!(self.poll_read(context))? == 0 {
                        return Poll::Ready(Err(Broken::Closed));
                    }
                }
            }
        }
    }

    fn poll_say_word(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.word.is_empty() {
            let said = ready!(Pin::new(&mut self.stream).poll_write(context, self.word))?;
            self.word = &self.word[said..];
        }
        Poll::Ready(Ok(()))
    }

    /// Whoever is answered need not be told to go on, unless the word was begun.
    fn poll_word_is_over(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.word.len() == GO_ON.len() {
            self.word = b"";
        }
        self.poll_say_word(context)
    }

    fn waits<T>(&mut self, context: &mut Context<'_>) -> Poll<T> {
        if !self.waits.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.waits = Some(context.waker().clone());
        }
        Poll::Pending
    }

    fn wakes(&mut self) {
        if let Some(waker) = self.waits.take() {
            waker.wake();
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut wire = self.lock();
        ready!(wire.poll_word_is_over(context))?;
        Pin::new(&mut wire.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut wire = self.lock();
        ready!(wire.poll_word_is_over(context))?;
        Pin::new(&mut wire.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_shutdown(context)
    }
}
