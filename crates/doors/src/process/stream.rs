//! One stream of a child's output: passed on live, and kept up to a cap.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fs::File;
use std::io::{self, Read};

/// A pipe that polls as writable takes at least this much without blocking (POSIX `PIPE_BUF`).
const PIPE_BUF: usize = 4096;

/// How much may wait for a slow reader before we stop reading from the child, which then waits in its turn.
const PENDING_BYTES_MAX: usize = 256 * 1024;

/// Of a stream that is longer than what is kept, this much of the end: that is where a program says why it failed.
const END_BYTES: usize = 64 * 1024;

/// Where a child's output goes while it runs.
#[derive(Debug)]
pub enum Sink {
    Stdout(io::Stdout),
    Stderr(io::Stderr),
    /// Only kept, for `--json`.
    Nowhere,
}

impl Sink {
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Sink::Stdout(out) => Some(out.as_fd()),
            Sink::Stderr(err) => Some(err.as_fd()),
            Sink::Nowhere => None,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Straight to the descriptor: a buffer of our own could block at any moment.
        match self.fd() {
            Some(fd) => Ok(rustix::io::write(fd, bytes)?),
            None => Ok(bytes.len()),
        }
    }
}

#[derive(Debug)]
pub struct OutputStream {
    source: Option<File>,
    sink: Sink,
    kept: Vec<u8>,
    kept_max: usize,
    /// The last of what was not kept.
    end: Vec<u8>,
    total: u64,
    pending: Vec<u8>,
    /// The reader went away: the child's output is still drained, so that it can finish.
    broken: bool,
}

impl OutputStream {
    pub fn new(source: OwnedFd, sink: Sink, kept_max: usize) -> Self {
        OutputStream {
            source: Some(source.into()),
            sink,
            kept: Vec::new(),
            kept_max,
            end: Vec::new(),
            total: 0,
            pending: Vec::new(),
            broken: false,
        }
    }

    /// The descriptor to read from, while there is something to read, and room for it unless it is the last.
    pub fn readable(&self, last: bool) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().filter(|_| last || self.pending.len() < PENDING_BYTES_MAX).map(AsFd::as_fd)
    }

    pub fn at_end(&self) -> bool {
        self.source.is_none()
    }

    pub fn writable(&self) -> Option<BorrowedFd<'_>> {
        self.sink.fd().filter(|_| !self.pending.is_empty() && !self.broken)
    }

    /// Reads what there is. Called only when the descriptor polls as readable.
    pub fn take_in(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let Some(source) = &mut self.source else { return Ok(()) };
        match source.read(buffer) {
            Ok(0) => self.source = None,
            Ok(count) => {
                let bytes = &buffer[..count];
                self.total += count as u64;
                // One byte past the cap tells that there was more.
                let room = (self.kept_max + 1).saturating_sub(self.kept.len());
                self.kept.extend_from_slice(&bytes[..count.min(room)]);
                self.end.extend_from_slice(&bytes[count.min(room)..]);
                self.end.drain(..self.end.len().saturating_sub(END_BYTES));
                if !self.broken && self.sink.fd().is_some() {
                    self.pending.extend_from_slice(bytes);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Passes on a little. Called only when the sink polls as writable.
    pub fn pass_on(&mut self) {
        let length = self.pending.len().min(PIPE_BUF);
        match self.sink.write(&self.pending[..length]) {
            Ok(written) => drop(self.pending.drain(..written)),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(_) => self.broken = true,
        }
        if self.broken {
            self.pending = Vec::new();
        }
    }

    /// The end of a pipe to which a process may still write.
    pub fn left_open(&mut self) -> Option<OwnedFd> {
        self.source.take().map(OwnedFd::from)
    }

    pub fn finish(self) -> FinishedStream {
        FinishedStream {
            kept: self.kept,
            end: self.end,
            total: self.total,
            pending: self.pending,
            sink: self.sink,
            broken: self.broken,
        }
    }
}

/// A stream after the child has ended.
#[derive(Debug)]
pub struct FinishedStream {
    /// At most the cap and one byte.
    pub kept: Vec<u8>,
    end: Vec<u8>,
    pub total: u64,
    pending: Vec<u8>,
    sink: Sink,
    broken: bool,
}

impl FinishedStream {
    /// Its beginning and its end; in between something may be missing.
    pub fn both_ends(&self) -> Vec<u8> {
        [self.kept.as_slice(), &self.end].concat()
    }

    /// Hands over what a slow reader has not taken yet. `true`: the last byte was accepted.
    pub fn deliver(&mut self) -> bool {
        let pending = std::mem::take(&mut self.pending);
        if let Some(fd) = self.sink.fd() {
            self.broken |= !write_fully(fd, &pending);
        }
        !self.broken
    }
}

/// Writes everything, however slowly it is taken. `true`: the last byte was accepted.
pub fn write_fully(fd: BorrowedFd<'_>, bytes: &[u8]) -> bool {
    try_write_fully(fd, bytes).is_ok()
}

/// The same, also where the descriptor does not block.
pub fn try_write_fully(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                let _woken_or_interrupted = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether nobody can read any more from what was written to this descriptor: a pipe whose other end is closed.
pub fn reader_is_gone(fd: BorrowedFd<'_>) -> bool {
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::NVAL)
}
