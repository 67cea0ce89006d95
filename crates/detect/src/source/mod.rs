//! Files: where transcripts lie, and how their bytes are read.

pub mod discover;
pub mod pieces;

use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Enough to see the first line of most transcripts at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// Opens a transcript, unpacked if it is compressed: its first bytes say so, not its name. `read` grows by the bytes
/// that were read, before they are unpacked.
pub fn open(path: &Path, read: &Arc<AtomicU64>) -> io::Result<Box<dyn BufRead + Send>> {
    let file = CountedFile { file: File::open(path)?, read: Arc::clone(read) };
    let mut input = BufReader::with_capacity(BUFFER_BYTES, file);
    Ok(if input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(input)))
    } else {
        Box::new(input)
    })
}

struct CountedFile {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for CountedFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(into)?;
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

/// Keeps a copy of the bytes that are read.
#[derive(Debug)]
pub struct RecordingReader<'a, R> {
    pub input: R,
    pub seen: &'a mut Vec<u8>,
}

impl<R: BufRead> Read for RecordingReader<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(into)?;
        self.seen.extend_from_slice(&into[..length]);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for RecordingReader<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // The bytes are in the buffer already, so this reads nothing.
        if let Ok(buffer) = self.input.fill_buf() {
            self.seen.extend_from_slice(&buffer[..amount.min(buffer.len())]);
        }
        self.input.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pieces::Pieces;

    #[test]
    fn a_document_over_lines_is_one_wherever_its_first_line_ends() {
        for text in
            ["{\n\"messages\": [1]}", "{\"messages\": [\n1]}", "{\"model\": \"m\",\n\"messages\": [1]}"]
        {
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), text).expect("it is written");
            let mut pieces = Pieces::new(open(file.path(), &Arc::default()).expect("it is there"));
            let piece = pieces.read().expect("readable").expect("a document").expect("a whole one");
            assert_eq!(piece.bytes, text.as_bytes(), "{text}");
        }
    }
}
