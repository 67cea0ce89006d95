//! Files: where transcripts lie, and how their bytes are read.

pub mod discover;
pub mod pieces;

use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Enough to see the first line of most transcripts at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// Opens a transcript, unpacked if it is compressed: its first bytes say so, not its name.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    let mut file = File::open(path)?;
    let mut magic = [0; 2];
    let read = file.read(&mut magic)?;
    let whole = io::Cursor::new(magic[..read].to_vec()).chain(file);
    Ok(if magic == [0x1f, 0x8b] {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(whole)))
    } else {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, whole))
    })
}
