//! The bytes of a connection, in the clear or through TLS.

use super::counted::Counted;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[derive(Debug)]
pub enum Io {
    Plain(TokioIo<Counted>),
    /// Its state is large, and a connection changes hands often.
    Tls(Box<TokioIo<MaybeHttpsStream<Counted>>>),
}

impl Io {
    pub fn is_tls(&self) -> bool {
        matches!(self, Io::Tls(_))
    }

    /// What carries the bytes that leave.
    pub fn below(&self) -> &Counted {
        match self {
            Io::Plain(stream) => stream.inner(),
            Io::Tls(stream) => match stream.inner() {
                MaybeHttpsStream::Http(stream) => stream,
                MaybeHttpsStream::Https(tls) => tls.inner().get_ref().0.inner(),
            },
        }
    }
}

impl From<MaybeHttpsStream<Counted>> for Io {
    fn from(stream: MaybeHttpsStream<Counted>) -> Io {
        match stream {
            MaybeHttpsStream::Http(stream) => Io::Plain(TokioIo::new(stream)),
            tls @ MaybeHttpsStream::Https(_) => Io::Tls(Box::new(TokioIo::new(tls))),
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Io::Plain(stream) => Pin::new(stream).poll_read(context, room),
            Io::Tls(stream) => Pin::new(stream).poll_read(context, room),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Io::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Io::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Io::Plain(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Io::Tls(stream) => Pin::new(stream).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Io::Plain(stream) => stream.is_write_vectored(),
            Io::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Io::Plain(stream) => Pin::new(stream).poll_flush(context),
            Io::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Io::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Io::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
