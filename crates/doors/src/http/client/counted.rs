//! A connection below TLS. It counts the bytes that the kernel took: a request of which none was written was not sent,
//! whatever failed above. Before the first byte of a request it looks at the peer and at the clock.

use super::monitor::SendMonitor;
use super::resolver::CheckedResolver;
use crate::http::socket;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::net::TcpStream;
use tower_service::Service;

#[derive(Debug)]
pub struct CountedSocket {
    stream: TokioIo<TcpStream>,
    monitor: Arc<SendMonitor>,
}

impl CountedSocket {
    pub fn monitor(&self) -> &Arc<SendMonitor> {
        &self.monitor
    }

    /// One write of `length` bytes, watched from both sides.
    fn poll_counted(
        &mut self,
        length: usize,
        write: impl FnOnce(Pin<&mut TokioIo<TcpStream>>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let stream = self.stream.inner();
        self.monitor.check(|| socket::has_hung_up(stream), || socket::has_bytes(stream))?;
        if self.monitor.is_broken() {
            return Poll::Ready(Ok(length));
        }
        match ready!(write(Pin::new(&mut self.stream))) {
            Ok(written) => {
                self.monitor.count(written);
                Poll::Ready(Ok(written))
            }
            // The upstream may have answered before it stopped reading, so its answer is still read.
            Err(error) if self.monitor.has_begun() => {
                self.monitor.breaks(&error);
                Poll::Ready(Ok(length))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Read for CountedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for CountedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_counted(bytes.len(), |stream| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = parts.iter().map(|part| part.len()).sum();
        self.poll_counted(length, |stream| stream.poll_write_vectored(context, parts))
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

impl Connection for CountedSocket {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

/// Opens connections that count.
#[derive(Debug, Clone)]
pub struct CountedConnector(pub HttpConnector<CheckedResolver>);

impl Service<Uri> for CountedConnector {
    type Response = CountedSocket;
    type Error = <HttpConnector<CheckedResolver> as Service<Uri>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<CountedSocket, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.0.call(uri);
        Box::pin(async move { Ok(CountedSocket { stream: connecting.await?, monitor: Arc::default() }) })
    }
}
