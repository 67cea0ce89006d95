//! HTTP/1.1, from messages to bytes and back, without a connection.

mod framing;
mod lines;
mod read_answer;
mod read_question;
mod write_answer;
mod write_question;

pub use framing::{Framing, Piece};
pub use read_answer::{Head, read_answer};
pub use read_question::{Asked, Asker, has_whole_head, read_question};
pub use write_answer::Answer;
pub use write_question::Question;

/// The headers of a message, all together: a page of cookies fits, a flood does not.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;

/// One by one.
const HEADERS_MAX: usize = 100;

/// How the body of a message says where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes are still to come.
    Length(u64),
    Chunked,
    UntilClosed,
}

impl Extent {
    /// What a body knows of itself.
    fn of(size: http_body::SizeHint) -> Extent {
        size.exact().map_or(Extent::Chunked, Extent::Length)
    }
}

/// What came is no message, or could be read in two ways.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("its headers are too long")]
    HeadersTooLong,
    #[error("what came is not HTTP: {0}")]
    NotHttp(httparse::Error),
    #[error("its first line or a header is none")]
    Header,
    #[error("a line of it ends without a carriage return")]
    Line,
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
