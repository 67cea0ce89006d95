//! Messages on a pipe: one line each, bounded.

use super::message::MESSAGE_BYTES_MAX;
use bytes::{Bytes, BytesMut};
use std::io::{self, Read};

/// How much of a giant's beginning, and of its end, is kept.
const ENDS: usize = 4 * 1024;

/// One read of a pipe at its largest.
const CHUNK: usize = 64 * 1024;

/// What a line can be.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(Bytes),
    /// Longer than any message may be. It was skipped to its end; its first and last bytes may tell whose it was.
    TooLong(Bytes),
    /// The stream ended in the middle of a line. Half a message is none.
    Cut(Bytes),
}

#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    buffer: BytesMut,
    /// How far the buffer is known to hold no newline.
    searched: usize,
    /// The ends of a giant that is being skipped.
    skipped: Option<Vec<u8>>,
    max: usize,
}

impl<R: Read> Lines<R> {
    pub fn of(source: R) -> Self {
        Lines::bounded(source, MESSAGE_BYTES_MAX)
    }

    fn bounded(source: R, max: usize) -> Self {
        Lines { source, buffer: BytesMut::new(), searched: 0, skipped: None, max }
    }

    /// The next line that is not blank. `None` at the end.
    pub fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + at + 1).freeze();
                self.searched = 0;
                if let Some(ends) = self.skipped.take() {
                    return Ok(Some(Line::TooLong(with_tail(ends, &line))));
                }
                let line = line.slice(..line.trim_ascii_end().len());
                if !line.is_empty() {
                    return Ok(Some(Line::Text(line)));
                }
                continue;
            }
            self.searched = self.buffer.len();
            self.skip();
            if self.fill()? == 0 {
                let rest = self.buffer.split().freeze();
                self.searched = 0;
                return Ok(match (self.skipped.take(), rest.trim_ascii().is_empty()) {
                    (Some(ends), _) => Some(Line::TooLong(with_tail(ends, &rest))),
                    (None, true) => None,
                    (None, false) => Some(Line::Cut(rest)),
                });
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

    fn fill(&mut self) -> io::Result<usize> {
        let filled = self.buffer.len();
        self.buffer.resize(filled + CHUNK, 0);
        loop {
            match self.source.read(&mut self.buffer[filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    self.buffer.truncate(filled + read.as_ref().copied().unwrap_or(0));
                    return read;
                }
            }
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

    /// Hands out its bytes a few at a time.
    struct Dribble<'a>(&'a [u8], usize);

    impl Read for Dribble<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(out.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn lines(bytes: &[u8], step: usize, max: usize) -> Vec<Line> {
        let mut lines = Lines::bounded(Dribble(bytes, step), max);
        std::iter::from_fn(|| lines.next_line().unwrap()).collect()
    }

    #[test]
    fn lines_are_found_however_the_bytes_arrive() {
        for step in 1..20 {
            let text = |text: &'static str| Line::Text(Bytes::from_static(text.as_bytes()));
            assert_eq!(
                lines(b"{}\r\n\n  \n[1]\n\n{", step, 100),
                [text("{}"), text("[1]"), Line::Cut(Bytes::from_static(b"{"))]
            );
        }
    }

    #[test]
    fn a_giant_is_skipped_and_the_next_line_is_read() {
        for step in [1, 7, 64] {
            let giant = [b"{\"id\":1,".to_vec(), vec![b'x'; 50_000], b"\"id\":2}".to_vec()].concat();
            let bytes = [giant, b"\nok\n".to_vec(), vec![b'y'; 300]].concat();
            let lines = lines(&bytes, step, 100);
            let [Line::TooLong(ends), Line::Text(ok), Line::TooLong(_)] = lines.as_slice() else {
                panic!("{lines:?}")
            };
            assert!(ends.starts_with(b"{\"id\":1,") && ends.trim_ascii_end().ends_with(b"\"id\":2}"));
            assert!(ends.len() <= 2 * ENDS && ok == "ok");
        }
    }
}
