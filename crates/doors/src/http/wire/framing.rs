//! Where the body of a message ends that is being read.

use super::{HEADERS_MAX, Malformed, lines};
use bytes::Bytes;
use http::HeaderMap;
use httparse::Status;

/// A chunk's length with what may stand beside it, and what may stand behind the last chunk.
const LINE_BYTES_MAX: usize = 4 * 1024;
const TRAILER_BYTES_MAX: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// So many more bytes.
    Length(u64),
    Chunked(Chunk),
    UntilClosed,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk {
    Size,
    Data(u64),
    /// The line break behind the data.
    Break,
    Trailers,
    Nothing,
}

/// What was taken off what came.
#[derive(Debug)]
pub enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
    /// It has to come first.
    Missing,
    End,
}

impl Framing {
    pub fn chunked() -> Framing {
        Framing::Chunked(Chunk::Size)
    }

    pub fn is_over(&self) -> bool {
        matches!(self, Framing::Length(0) | Framing::Chunked(Chunk::Nothing))
    }

    /// How much is left, where that is known.
    pub fn left(&self) -> Option<u64> {
        match self {
            Framing::Length(left) => Some(*left),
            Framing::Chunked(Chunk::Nothing) => Some(0),
            Framing::Chunked(_) | Framing::UntilClosed => None,
        }
    }

    pub fn take(&mut self, came: &mut Bytes) -> Result<Piece, Malformed> {
        match self {
            Framing::Length(0) => Ok(Piece::End),
            _ if came.is_empty() && !self.is_over() => Ok(Piece::Missing),
            Framing::Length(left) => Ok(Piece::Data(up_to(left, came))),
            Framing::UntilClosed => Ok(Piece::Data(std::mem::take(came))),
            Framing::Chunked(chunk) => chunk.take(came),
        }
    }
}

impl Chunk {
    fn take(&mut self, came: &mut Bytes) -> Result<Piece, Malformed> {
        let piece = loop {
            match self {
                Chunk::Data(left) => {
                    if came.is_empty() {
                        return Ok(Piece::Missing);
                    }
                    let data = up_to(left, came);
                    if *left == 0 {
                        *self = Chunk::Break;
                    }
                    break Piece::Data(data);
                }
                Chunk::Nothing => return Ok(Piece::End),
                Chunk::Size | Chunk::Break | Chunk::Trailers => match self.step(came)? {
                    Step::On => {}
                    Step::Trailers(trailers) => return Ok(Piece::Trailers(trailers)),
                    Step::Missing => return Ok(Piece::Missing),
                },
            }
        };
        self.look_for_end(came);
        Ok(piece)
    }

    /// Whoever has all of the data need not ask for the end, if that has come with it.
    fn look_for_end(&mut self, came: &mut Bytes) {
        let (mut next, mut behind) = (*self, came.clone());
        while matches!(next, Chunk::Size | Chunk::Break | Chunk::Trailers) {
            // What is wrong, or worth telling, is found by whoever asks.
            let Ok(Step::On) = next.step(&mut behind) else { return };
        }
        if next == Chunk::Nothing {
            (*self, *came) = (next, behind);
        }
    }

    /// Over what stands between the data.
    fn step(&mut self, came: &mut Bytes) -> Result<Step, Malformed> {
        match self {
            Chunk::Data(_) | Chunk::Nothing => {}
            Chunk::Break => match came.as_ref() {
                [b'\r', b'\n', ..] => {
                    let _break = came.split_to(2);
                    *self = Chunk::Size;
                }
                [] | [b'\r'] => return Ok(Step::Missing),
                _ => return Err(Malformed::Chunk),
            },
            Chunk::Size => match httparse::parse_chunk_size(came).map_err(|_| Malformed::Chunk)? {
                // A line break alone would be read as a length of nothing.
                Status::Complete((_, _)) if !came[0].is_ascii_hexdigit() => return Err(Malformed::Chunk),
                Status::Complete((line, _)) if !is_one_line(&came[..line]) => return Err(Malformed::Chunk),
                Status::Complete((line, size)) => {
                    let _line = came.split_to(line);
                    *self = if size == 0 { Chunk::Trailers } else { Chunk::Data(size) };
                }
                Status::Partial if came.len() > LINE_BYTES_MAX => return Err(Malformed::Chunk),
                Status::Partial => return Ok(Step::Missing),
            },
            Chunk::Trailers => {
                let mut read = [httparse::EMPTY_HEADER; HEADERS_MAX];
                match httparse::parse_headers(came, &mut read)? {
                    Status::Complete((length, _)) if !lines::are_whole(&came[..length]) => {
                        return Err(Malformed::Line);
                    }
                    Status::Complete((length, found)) => {
                        let trailers = lines::read(came, found)?;
                        let _read = came.split_to(length);
                        *self = Chunk::Nothing;
                        if !trailers.is_empty() {
                            return Ok(Step::Trailers(trailers));
                        }
                    }
                    Status::Partial if came.len() > TRAILER_BYTES_MAX => {
                        return Err(Malformed::HeadersTooLong);
                    }
                    Status::Partial => return Ok(Step::Missing),
                }
            }
        }
        Ok(Step::On)
    }
}

enum Step {
    On,
    Trailers(HeaderMap),
    Missing,
}

/// What may stand beside a length is anything, but for some readers a line ends where for others it does not.
fn is_one_line(line: &[u8]) -> bool {
    line.strip_suffix(b"\r\n").is_some_and(|line| !line.iter().any(|byte| matches!(byte, b'\r' | b'\n')))
}

/// As much of what came as there is left.
fn up_to(left: &mut u64, came: &mut Bytes) -> Bytes {
    let length = usize::try_from(*left).map_or(came.len(), |left| left.min(came.len()));
    *left -= length as u64;
    if length == came.len() { std::mem::take(came) } else { came.split_to(length) }
}
