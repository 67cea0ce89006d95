//! The socket, with an end that can come at any byte.

use super::plan::CutMode;
use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

#[derive(Debug)]
pub struct CutWire<'a> {
    stream: &'a TcpStream,
    /// How many more bytes go out before the connection is cut.
    left: Option<usize>,
}

/// Whether the line is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Went {
    Out,
    Cut,
}

impl<'a> CutWire<'a> {
    pub fn new(stream: &'a TcpStream, left: Option<usize>) -> Self {
        CutWire { stream, left }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Went> {
        let allowed = self.left.map_or(bytes.len(), |left| left.min(bytes.len()));
        self.stream.write_all(&bytes[..allowed])?;
        if let Some(left) = &mut self.left {
            *left -= allowed;
            if *left == 0 {
                return Ok(Went::Cut);
            }
        }
        Ok(Went::Out)
    }
}

/// Ends a connection in the middle of whatever it did.
pub fn cut(stream: &TcpStream, how: CutMode) -> io::Result<()> {
    if how == CutMode::Reset {
        // Nothing lingers: the peer is told that the connection is no more, not that it has ended.
        rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
        return Ok(());
    }
    stream.shutdown(Shutdown::Both)
}

#[allow(clippy::disallowed_methods, reason = "a slow world is what the test asked for")]
pub fn pause(span_ms: u64) {
    if span_ms > 0 {
        std::thread::sleep(Duration::from_millis(span_ms));
    }
}
