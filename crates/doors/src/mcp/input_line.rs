//! Messages on a pipe: one line each, bounded.

use super::message::MESSAGE_BYTES_MAX;
use bytes::{Bytes, BytesMut};
use std::io;

/// How much of a giant's beginning, and of its end, is kept.
const ENDS: usize = 4 * 1024;

/// One read of a pipe at its largest: as much as a pipe holds.
const CHUNK: usize = 64 * 1024;

/// One line of a pipe.
#[derive(Debug, PartialEq, Eq)]
pub enum InputLine {
    Text(Bytes),
    /// Longer than any message may be. It was skipped to its end; its first and last bytes may tell whose it was.
    TooLong(Bytes),
    /// The stream ended in the middle of a line. Half a message is none.
    Cut(Bytes),
}

/// Bytes that were read, until they make a line.
#[derive(Debug)]
pub struct LineBuffer {
    buffer: BytesMut,
    /// How far the buffer is known to hold no newline.
    searched: usize,
    /// The ends of a giant that is being skipped.
    skipped: Option<Vec<u8>>,
    max: usize,
    /// Where a read goes first: room in the buffer would have to be made anew for each.
    chunk: Box<[u8]>,
}

impl Default for LineBuffer {
    fn default() -> Self {
        LineBuffer::bounded(MESSAGE_BYTES_MAX)
    }
}

impl LineBuffer {
    fn bounded(max: usize) -> Self {
        let (buffer, chunk) = (BytesMut::new(), vec![0; CHUNK].into());
        LineBuffer { buffer, searched: 0, skipped: None, max, chunk }
    }

    /// The next line that is there as a whole, and is not blank.
    pub fn take_line(&mut self) -> Option<InputLine> {
        while let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(self.searched + at + 1).freeze();
            self.searched = 0;
            if let Some(ends) = self.skipped.take() {
                return Some(InputLine::TooLong(with_tail(ends, &line)));
            }
            let line = line.slice(..line.trim_ascii_end().len());
            if !line.is_empty() {
                return Some(InputLine::Text(line));
            }
        }
        self.searched = self.buffer.len();
        self.skip();
        None
    }

    /// The rest, when nothing more will come.
    pub fn take_rest(&mut self) -> Option<InputLine> {
        let rest = self.buffer.split().freeze();
        self.searched = 0;
        match (self.skipped.take(), rest.trim_ascii().is_empty()) {
            (Some(ends), _) => Some(InputLine::TooLong(with_tail(ends, &rest))),
            (None, true) => None,
            (None, false) => Some(InputLine::Cut(rest)),
        }
    }

    /// Reads once.
    pub fn fill(&mut self, mut read: impl FnMut(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match read(&mut self.chunk[..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(count) => {
                    self.buffer.extend_from_slice(&self.chunk[..count]);
                    return Ok(count);
                }
            }
        }
    }

    /// Lets go of all but the ends of a line that has grown too long.
    fn skip(&mut self) {
        if self.skipped.is_none() && self.buffer.len() > self.max {
            self.skipped = Some(self.buffer[..ENDS.min(self.buffer.len())].to_vec());
        }
        if self.skipped.is_some() && self.buffer.len() > ENDS {
            let tail = self.buffer.len() - ENDS;
            drop(self.buffer.split_to(tail));
            self.searched = self.buffer.len();
        }
    }
}

fn with_tail(mut ends: Vec<u8>, tail: &[u8]) -> Bytes {
    ends.extend_from_slice(&tail[tail.len().saturating_sub(ENDS)..]);
    ends.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes come a few at a time.
    fn lines(bytes: &[u8], step: usize, max: usize) -> Vec<InputLine> {
        let mut pieces = LineBuffer::bounded(max);
        let mut lines = Vec::new();
        for some in bytes.chunks(step) {
            let read = pieces.fill(|room| {
                room[..some.len()].copy_from_slice(some);
                Ok(some.len())
            });
            assert_eq!(read.unwrap(), some.len());
            lines.extend(std::iter::from_fn(|| pieces.take_line()));
        }
        lines.extend(pieces.take_rest());
        lines
    }

    #[test]
    fn lines_are_found_however_the_bytes_arrive() {
        for step in 1..20 {
            let text = |text: &'static str| InputLine::Text(Bytes::from_static(text.as_bytes()));
            assert_eq!(
                lines(b"{}\r\n\n  \n[1]\n\n{", step, 100),
                [text("{}"), text("[1]"), InputLine::Cut(Bytes::from_static(b"{"))]
            );
        }
    }

    #[test]
    fn a_giant_is_skipped_and_the_next_line_is_read() {
        for step in [1, 7, 64] {
            let giant = [b"{\"id\":1,".to_vec(), vec![b'x'; 50_000], b"\"id\":2}".to_vec()].concat();
            let bytes = [giant, b"\nok\n".to_vec(), vec![b'y'; 300]].concat();
            let lines = lines(&bytes, step, 100);
            let [InputLine::TooLong(ends), InputLine::Text(ok), InputLine::TooLong(_)] = lines.as_slice()
            else {
                panic!("{lines:?}")
            };
            assert!(ends.starts_with(b"{\"id\":1,") && ends.trim_ascii_end().ends_with(b"\"id\":2}"));
            assert!(ends.len() <= 2 * ENDS && ok == "ok");
        }
    }
}
