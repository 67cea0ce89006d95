//! Splits a file into JSON documents without holding more than one of them.
//!
//! A file is read as lines if its first line is a whole document, as the elements of an array if it begins with one,
//! and as one document otherwise. A broken line costs that line alone.

use serde::de::IgnoredAny;
use std::io::{self, BufRead, Read};

/// The longest document that is read. Agents write whole files into one line; nothing sensible is longer than this.
pub const PIECE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// One document, and the line that it begins at.
#[derive(Debug, PartialEq, Eq)]
pub struct JsonPiece<'a> {
    pub line: u64,
    pub bytes: &'a [u8],
}

/// Why a document is passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Skipped {
    #[error("longer than {} MiB", PIECE_BYTES_MAX >> 20)]
    TooLong,
    #[error("cut off by the end of the file")]
    CutOff,
}

#[derive(Debug)]
pub struct Pieces<R> {
    input: R,
    buffer: Vec<u8>,
    /// The line of the next byte.
    line: u64,
    layout: Layout,
}

#[derive(Debug, Clone, Copy)]
enum Layout {
    Unknown,
    Lines,
    Elements,
    Whole,
    End,
}

impl<R: BufRead> Pieces<R> {
    pub fn new(input: R) -> Pieces<R> {
        Pieces { input, buffer: Vec::new(), line: 1, layout: Layout::Unknown }
    }

    /// The next document, or the line of one that is passed over. `None`: the file is over.
    #[allow(clippy::type_complexity, reason = "the three ways that reading goes on")]
    pub fn read(&mut self) -> io::Result<Option<Result<JsonPiece<'_>, (u64, Skipped)>>> {
        self.buffer.clear();
        if let Layout::Unknown = self.layout {
            self.layout = self.find_layout()?;
        }
        let (line, skipped) = match self.layout {
            Layout::Lines => {
                let mut line = self.line;
                let mut skipped = self.read_line()?;
                while skipped.is_none() && !self.buffer.is_empty() && self.buffer.trim_ascii().is_empty() {
                    self.buffer.clear();
                    line = self.line;
                    skipped = self.read_line()?;
                }
                (line, skipped)
            }
            Layout::Elements => {
                self.skip(|byte| byte.is_ascii_whitespace() || byte == b',')?;
                (self.line, self.read_element()?)
            }
            Layout::Whole => {
                self.layout = Layout::End;
                (&mut self.input).take(PIECE_BYTES_MAX as u64 + 1).read_to_end(&mut self.buffer)?;
                (self.line, (self.buffer.len() > PIECE_BYTES_MAX).then_some(Skipped::TooLong))
            }
            Layout::Unknown | Layout::End => (self.line, None),
        };
        let bytes = self.buffer.trim_ascii();
        Ok(match skipped {
            Some(why) => Some(Err((line, why))),
            None if bytes.is_empty() => None,
            None => Some(Ok(JsonPiece { line, bytes })),
        })
    }

    fn find_layout(&mut self) -> io::Result<Layout> {
        self.skip(|byte| byte.is_ascii_whitespace() || byte > 0x7f)?;
        let ahead = self.input.fill_buf()?;
        let (first_line, is_whole) = match ahead.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&ahead[..end], true),
            None => (ahead, false),
        };
        let count = |wanted: u8| first_line.iter().filter(|byte| **byte == wanted).count();
        Ok(match first_line.first() {
            None => Layout::End,
            Some(b'[') => {
                self.input.consume(1);
                Layout::Elements
            }
            Some(b'{') if is_whole && serde_json::from_slice::<IgnoredAny>(first_line).is_err() => {
                // A document that goes over lines opens more than it closes.
                if count(b'{') + count(b'[') > count(b'}') + count(b']') {
                    Layout::Whole
                } else {
                    Layout::Lines
                }
            }
            Some(_) => Layout::Lines,
        })
    }

    /// Reads one line into the buffer; of a line that is too long nothing is kept.
    fn read_line(&mut self) -> io::Result<Option<Skipped>> {
        let mut too_long = false;
        loop {
            let ahead = self.input.fill_buf()?;
            if ahead.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', ahead);
            let taken = end.map_or(ahead.len(), |end| end + 1);
            too_long |= self.buffer.len() + taken > PIECE_BYTES_MAX;
            if too_long {
                self.buffer.clear();
            } else {
                self.buffer.extend_from_slice(&ahead[..taken]);
            }
            self.input.consume(taken);
            if end.is_some() {
                self.line += 1;
                break;
            }
        }
        Ok(too_long.then_some(Skipped::TooLong))
    }

    /// Reads one element of an array into the buffer. It leaves the buffer empty at the array's end.
    fn read_element(&mut self) -> io::Result<Option<Skipped>> {
        let (mut depth, mut in_text, mut escaped, mut too_long) = (0usize, false, false, false);
        loop {
            let ahead = self.input.fill_buf()?;
            if ahead.is_empty() {
                self.layout = Layout::End;
                return Ok((!self.buffer.is_empty()).then_some(Skipped::CutOff));
            }
            let mut end = None;
            for (at, byte) in ahead.iter().enumerate() {
                self.line += u64::from(*byte == b'\n');
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if in_text => escaped = true,
                    b'"' => in_text = !in_text,
                    _ if in_text => {}
                    b'{' | b'[' => depth += 1,
                    b']' | b',' if depth == 0 => {
                        end = Some((at, *byte));
                        break;
                    }
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            let taken = end.map_or(ahead.len(), |(at, _)| at);
            too_long |= self.buffer.len() + taken > PIECE_BYTES_MAX;
            if too_long {
                self.buffer.clear();
            } else {
                self.buffer.extend_from_slice(&ahead[..taken]);
            }
            self.input.consume(taken + usize::from(end.is_some()));
            if let Some((_, byte)) = end {
                if byte == b']' {
                    self.layout = Layout::End;
                }
                return Ok(too_long.then_some(Skipped::TooLong));
            }
        }
    }

    fn skip(&mut self, unwanted: impl Fn(u8) -> bool) -> io::Result<()> {
        loop {
            let ahead = self.input.fill_buf()?;
            let kept = ahead.iter().position(|byte| !unwanted(*byte));
            let taken = kept.unwrap_or(ahead.len());
            self.line += ahead[..taken].iter().filter(|byte| **byte == b'\n').count() as u64;
            let is_over = ahead.is_empty();
            self.input.consume(taken);
            if kept.is_some() || is_over {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn pieces(text: &str, room: usize) -> Vec<Result<(u64, String), (u64, Skipped)>> {
        let mut pieces = Pieces::new(BufReader::with_capacity(room, text.as_bytes()));
        let mut found = Vec::new();
        while let Some(piece) = pieces.read().expect("memory is readable") {
            found.push(piece.map(|piece| (piece.line, String::from_utf8_lossy(piece.bytes).into_owned())));
        }
        found
    }

    fn ok(line: u64, text: &str) -> Result<(u64, String), (u64, Skipped)> {
        Ok((line, text.to_owned()))
    }

    #[test]
    fn lines_arrays_and_single_documents_are_told_apart() {
        for (text, expected) in [
            ("", vec![]),
            ("\n \n", vec![]),
            ("{\"a\":1}\n\n{\"b\":2}\n", vec![ok(1, "{\"a\":1}"), ok(3, "{\"b\":2}")]),
            ("{\"a\":1}\n{\"b\"\n{\"c\":3}", vec![ok(1, "{\"a\":1}"), ok(2, "{\"b\""), ok(3, "{\"c\":3}")]),
            ("{\n\"a\": [1,\n2]}\n", vec![ok(1, "{\n\"a\": [1,\n2]}")]),
            ("[{\"a\":\"],\"},\n {\"b\":[1,2]}]", vec![ok(1, "{\"a\":\"],\"}"), ok(2, "{\"b\":[1,2]}")]),
            ("[]", vec![]),
            ("hello\nworld", vec![ok(1, "hello"), ok(2, "world")]),
        ] {
            assert_eq!(pieces(text, 8 * 1024), expected, "{text}");
        }
    }

    #[test]
    fn an_array_that_is_cut_off_gives_its_whole_elements() {
        assert_eq!(pieces("[{\"a\":1},{\"b\":", 4), vec![ok(1, "{\"a\":1}"), Err((1, Skipped::CutOff))]);
    }

    #[test]
    fn a_line_that_is_too_long_costs_that_line_alone() {
        let text = format!("{{\"a\":1}}\n{}\n{{\"b\":2}}\n", "x".repeat(PIECE_BYTES_MAX + 1));
        let expected = vec![ok(1, "{\"a\":1}"), Err((2, Skipped::TooLong)), ok(3, "{\"b\":2}")];
        assert_eq!(pieces(&text, 64 * 1024), expected);
    }
}
