//! A client's socket, below hyper. It knows when the last byte of a response was taken, and does not wait for ever for a
//! client that takes nothing.

use super::departures::{Departures, LeavingResponse};
use super::heads::Heads;
use crate::http::socket;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_rustls::server::TlsStream;

/// A client that takes nothing of its response for this long takes nothing more. Some do other work between two reads.
pub(super) const TAKES_NOTHING_MAX: Duration = Duration::from_secs(120);

/// How long a client may still send what nobody reads. Hung up on in the middle, it would not hear its response.
const LINGER_TIME_MAX: Duration = Duration::from_secs(2);

type Timer = Pin<Box<Sleep>>;

#[derive(Debug)]
pub enum ClientStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

trait ByteStream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> ByteStream for S {}

type PinnedStream<'a> = Pin<&'a mut dyn ByteStream>;

impl ClientStream {
    fn bytes(&mut self) -> PinnedStream<'_> {
        match self {
            ClientStream::Plain(stream) => Pin::new(stream),
            ClientStream::Tls(stream) => Pin::new(stream.as_mut()),
        }
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            ClientStream::Plain(stream) => stream,
            ClientStream::Tls(stream) => stream.get_ref().0,
        }
    }

    /// TLS takes some kilobytes more than the kernel had room for.
    fn has_unsent(&self) -> bool {
        matches!(self, ClientStream::Tls(stream) if stream.get_ref().1.wants_write())
    }
}

#[derive(Debug)]
pub struct ClientSocket {
    stream: ClientStream,
    departures: Arc<Departures>,
    heads: Arc<Mutex<Heads>>,
    /// Since the client takes nothing.
    stalled: Option<Timer>,
    lingers: Option<Timer>,
}

impl ClientSocket {
    pub fn new(stream: ClientStream, departures: Arc<Departures>, heads: Arc<Mutex<Heads>>) -> ClientSocket {
        ClientSocket { stream, departures, heads, stalled: None, lingers: None }
    }

    fn poll_watched<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(PinnedStream<'_>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.departures.lock();
        // Looked at before the end is written: a look afterwards would take a client that is quick to close for one
        // that has gone.
        let ends = state.leaving.iter().any(|leaving| leaving.on_sent.is_some());
        if ends && socket::has_hung_up(self.stream.tcp()) {
            state.leaving.iter_mut().for_each(|leaving| leaving.on_sent = None);
        }
        drop(state);
        if let Poll::Ready(written) = write(self.stream.bytes(), context) {
            self.stalled = None;
            return Poll::Ready(written);
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(TAKES_NOTHING_MAX)));
        ready!(stalled.as_mut().poll(context));
        // Closed in peace, the client would take what it has for all.
        self.departures.reset();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for ClientSocket {
    fn drop(&mut self) {
        if self.departures.lock().resets {
            socket::reset_on_close(self.stream.tcp());
        }
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let known = buffer.filled().len();
        let read = self.stream.bytes().poll_read(context, buffer);
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        heads.read(&buffer.filled()[known..]);
        read
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_watched(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_watched(context, |stream, context| stream.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        // Both are.
        true
    }

    /// Hyper flushes once its buffer is empty: every response whose end it was given has left.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.stream.has_unsent() {
            ready!(self.poll_watched(context, |stream, context| stream.poll_flush(context)))?;
        }
        let left = std::mem::take(&mut self.departures.lock().leaving);
        for LeavingResponse { on_sent, held } in left {
            if let Some(on_sent) = on_sent {
                on_sent.run();
            }
            drop(held);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.lingers.is_none() {
            ready!(this.poll_watched(context, |stream, context| stream.poll_shutdown(context)))?;
            if !this.departures.lock().has_unread && !socket::has_bytes(this.stream.tcp()) {
                return Poll::Ready(Ok(()));
            }
        }
        let lingers = this.lingers.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER_TIME_MAX)));
        let mut unread = [0; 4096];
        loop {
            if lingers.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let mut buffer = ReadBuf::new(&mut unread);
            let read = ready!(this.stream.bytes().poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
