//! How far the journal had come, written beside the database: a ledger that has less was robbed of commits (its WAL
//! deleted or cut, an older copy put back), and must not pass for one that has never seen them.
//!
//! It stands in the lock file and is written after each durable commit, without a flush of its own: it may lag behind
//! the truth, which costs a detection, and never runs ahead of it, which would cost a false alarm. It is compared when
//! the ledger is opened, and inside a write transaction wherever somebody else has written since the last one: what
//! puts an older state back under a running process is somebody else too.

use crate::place::Place;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The highest line of the journal that was ever made durable here, as far as anybody wrote it down.
pub(super) fn read(place: &Place) -> u64 {
    File::open(place.lock_file()).map_or(0, |file| read_from(&file))
}

pub(super) fn read_from(file: &File) -> u64 {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 0).map_or(0, |()| u64::from_le_bytes(bytes))
}

/// Failing to raise it only makes it lag behind. Failing to lower it, once a loss is dealt with, would find that loss
/// again and again.
pub(super) fn write(file: &File, line: u64) -> io::Result<()> {
    file.write_all_at(&line.to_le_bytes(), 0)
}
