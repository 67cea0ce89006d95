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
    let mut file = File::open(path)?;
    let mut magic = [0; 2];
    let length = file.read(&mut magic)?;
    let file = CountedFile { file, read: Arc::clone(read) };
    let whole = io::Cursor::new(magic[..length].to_vec()).chain(file);
    Ok(if magic == [0x1f, 0x8b] {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(whole)))
    } else {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, whole))
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
