//! Raw HTTP/1.1 on connections that are kept: as little as a client can do, so that what is measured is the server.

use super::load::LoadResult;
use super::measure::{self, Times};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use xtask::project::Result;

/// A runtime with sockets.
pub fn runtime() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().enable_all().build()?)
}

/// A request, whole; `headers` end with a line break each.
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
        .into()
}

/// Longer than any answer takes; a bench that waits for ever tells nobody anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// One connection, used for one request after the other.
#[derive(Debug)]
pub struct BenchConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl BenchConnection {
    pub async fn to(address: SocketAddr) -> io::Result<BenchConnection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(BenchConnection { stream, buffer: Vec::with_capacity(4 * 1024) })
    }

    pub async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await
    }

    /// More bytes of the answer.
    async fn more(&mut self) -> io::Result<()> {
        match tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.buffer)).await {
            Ok(Ok(1..)) => Ok(()),
            Ok(Ok(0)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                let so_far = String::from_utf8_lossy(&self.buffer).into_owned();
                Err(io::Error::new(io::ErrorKind::TimedOut, format!("nothing more came after {so_far:?}")))
            }
        }
    }

    /// Reads on until this is among what came, and takes all up to its end.
    pub async fn until(&mut self, mark: &[u8]) -> io::Result<Vec<u8>> {
        let mut from = 0;
        loop {
            if let Some(at) = find(&self.buffer[from..], mark) {
                let end = from + at + mark.len();
                let taken = self.buffer[..end].to_vec();
                self.buffer.drain(..end);
                return Ok(taken);
            }
            from = self.buffer.len().saturating_sub(mark.len() - 1);
            self.more().await?;
        }
    }

    /// The body of one whole answer, which must be a success.
    pub async fn answer(&mut self) -> io::Result<Vec<u8>> {
        let head = self.until(b"\r\n\r\n").await?;
        let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
        if !text.starts_with("http/1.1 2") {
            let rest = String::from_utf8_lossy(&self.buffer).into_owned();
            return Err(io::Error::other(format!("{text}{rest}")));
        }
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let Some(length) = length.and_then(|length| length.parse::<usize>().ok()) else {
            return self.until(b"\r\n0\r\n\r\n").await;
        };
        while self.buffer.len() < length {
            self.more().await?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    pub async fn ask(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.send(request).await?;
        self.answer().await
    }
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

/// Sends `request` with 0, 1, 2, … over so many connections until the time is over.
pub fn drive(
    runtime: &Runtime,
    to: SocketAddr,
    connections: usize,
    span: Duration,
    request: impl Fn(u64) -> Vec<u8> + Send + Sync + 'static,
) -> Result<LoadResult> {
    let (request, next) = (Arc::new(request), Arc::new(AtomicU64::new(0)));
    let wires = (0..connections)
        .map(|_| runtime.block_on(BenchConnection::to(to)))
        .collect::<io::Result<Vec<_>>>()?;
    let cpu_before = measure::own_seconds();
    let started = measure::now();
    let driving = wires.into_iter().map(|mut wire| {
        let (request, next) = (Arc::clone(&request), Arc::clone(&next));
        runtime.spawn(async move {
            let mut times = Times::default();
            while started.elapsed() < span {
                let asked = request(next.fetch_add(1, Ordering::Relaxed));
                let before = measure::now();
                wire.ask(&asked).await?;
                times.add(before.elapsed());
            }
            io::Result::Ok(times)
        })
    });
    let driving: Vec<_> = driving.collect();
    let mut times = Times::default();
    for one in driving {
        times.join(runtime.block_on(one)??);
    }
    let cpu = measure::own_seconds() - cpu_before;
    Ok(LoadResult { calls: next.load(Ordering::Relaxed), took: started.elapsed(), cpu, times })
}
