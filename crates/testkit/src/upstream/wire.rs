//! The socket, with an end that can come at any byte.

use super::plan::How;
use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

#[derive(Debug)]
pub struct Wire<'a> {
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

impl<'a> Wire<'a> {
    pub fn new(stream: &'a TcpStream, left: Option<usize>) -> Self {
        Wire { stream, left }
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
pub fn cut(stream: &TcpStream, how: How) -> io::Result<()> {
    if how == How::Reset {
        // Nothing lingers: the peer is told that the connection is no more, not that it has ended.
        rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
        return Ok(());
    }
    stream.shutdown(Shutdown::Both)
}
