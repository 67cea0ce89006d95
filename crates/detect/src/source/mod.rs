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
