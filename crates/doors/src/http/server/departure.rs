//! Whether an answer has left: all of it was written to a connection whose client was still there to read it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

type Action = Box<dyn FnOnce() + Send>;

/// Stands among a response's extensions. What follows is done once the answer has left; if it never does, it is dropped
/// undone.
#[derive(Clone, Default)]
pub struct Departure(Arc<Mutex<Option<Action>>>);

impl Departure {
    pub fn then(action: impl FnOnce() + Send + 'static) -> Departure {
        let departure = Departure::default();
        departure.is_followed_by(action);
        departure
    }

    /// For an answer of which is known only at its end what follows.
    pub fn is_followed_by(&self, action: impl FnOnce() + Send + 'static) {
        *lock(&self.0) = Some(Box::new(action));
    }

    fn happens(&self) {
        // Taken first: the lock is not held while it is done.
        let action = lock(&self.0).take();
        if let Some(action) = action {
            action();
        }
    }
}

impl fmt::Debug for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Departure")
    }
}

/// Answers of one connection that were taken to their last byte, and may not have been written yet.
#[derive(Debug, Clone, Default)]
pub struct Departures(Arc<Mutex<Vec<Departure>>>);

impl Departures {
    pub fn add(&self, departure: Departure) {
        lock(&self.0).push(departure);
    }

    fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    fn take(&self) -> Vec<Departure> {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// A client's connection.
#[derive(Debug)]
pub struct Line {
    stream: TcpStream,
    departures: Departures,
}

impl Line {
    pub fn new(stream: TcpStream, departures: Departures) -> Line {
        Line { stream, departures }
    }

    /// Before the end of an answer is written: nobody reads it who has hung up. A look afterwards would take a client
    /// that is quick to close for one that has gone.
    fn look(&self) {
        if !self.departures.is_empty() && has_hung_up(&self.stream) {
            drop(self.departures.take());
        }
    }
}

/// A byte that the client sent behind its request hides its hanging up from whoever only reads.
fn has_hung_up(stream: &TcpStream) -> bool {
    #[cfg(target_os = "linux")]
    let hung_up = PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    let hung_up = PollFlags::HUP;
    let mut asked = [PollFd::new(stream, hung_up)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&at_once)).is_ok_and(|found| found > 0)
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.look();
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.look();
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Asked for when everything before was written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        for departure in self.departures.take() {
            departure.happens();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    /// Whether an answer left, to a client that did this before.
    async fn leaves(client_does: impl AsyncFnOnce(TcpStream) -> Option<TcpStream>) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let departures = Departures::default();
        let mut line = Line::new(stream, departures.clone());
        let client = client_does(client).await;
        let left = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&left);
        departures.add(Departure::then(move || seen.store(true, Ordering::SeqCst)));
        assert!(!left.load(Ordering::SeqCst), "nothing was written yet");
        line.write_all(b"an answer").await.unwrap();
        line.flush().await.unwrap();
        drop(client);
        left.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn an_answer_has_left_once_it_was_written_to_somebody() {
        assert!(leaves(async |client| Some(client)).await);
        assert!(!leaves(async |_gone| None).await);
        let stray_byte = async |mut client: TcpStream| {
            client.write_all(b"x").await.unwrap();
            None
        };
        assert!(!leaves(stray_byte).await);
    }
}
