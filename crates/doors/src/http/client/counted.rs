//! A connection below TLS. It counts the bytes that it was given to carry: what none of was written was not sent,
//! whatever went wrong above. And it asks the kernel itself whether its peer has said something.

use super::connect::CheckedResolver;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::net::TcpStream;
use tower_service::Service;

#[derive(Debug)]
pub struct Counted {
    stream: TokioIo<TcpStream>,
    written: u64,
}

impl Counted {
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether its peer has said something, or hung up, that nobody has read. A runtime hears of that only when it has
    /// nothing else to do.
    pub fn has_come(&self) -> bool {
        let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        !matches!(recv(self.stream.inner(), &mut [0; 1], look), Err(Errno::AGAIN))
    }
}

impl Read for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.written += written as u64;
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, parts))?;
        self.written += written as u64;
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Connection for Counted {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

/// Opens connections that count.
#[derive(Debug, Clone)]
pub struct Counting(pub HttpConnector<CheckedResolver>);

impl Service<Uri> for Counting {
    type Response = Counted;
    type Error = <HttpConnector<CheckedResolver> as Service<Uri>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Counted, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.0.call(uri);
        Box::pin(async move { Ok(Counted { stream: connecting.await?, written: 0 }) })
    }
}
