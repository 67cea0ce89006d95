//! HTTP/1.1, from messages to bytes and back, without a connection.

mod answer;
mod framing;
mod question;

pub use answer::{Head, read_head};
pub use framing::{Framing, Piece};
pub use question::{Extent, Question};

/// Headers of an answer, all together: a page of cookies fits, a flood does not.
pub(super) const HEADER_BYTES_MAX: usize = 64 * 1024;

/// What came is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("its headers are too long")]
    HeadersTooLong,
    #[error("what came is not HTTP: {0}")]
    NotHttp(httparse::Error),
    #[error("its status or a header is none")]
    Header,
    #[error("it says in two ways where it ends")]
    Length,
    #[error("its transfer coding is not known")]
    Coding,
    #[error("it switches to another protocol, which nobody asked for")]
    Switched,
    #[error("a chunk of it has no length")]
    Chunk,
}

impl From<httparse::Error> for Malformed {
    fn from(error: httparse::Error) -> Self {
        Malformed::NotHttp(error)
    }
}

#[cfg(test)]
mod tests;
