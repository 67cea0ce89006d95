//! When the WAL is folded back into the database. Left to itself SQLite does so inside COMMIT, where callers wait.

use super::connection;
use crate::place::Place;
use rusqlite::{Connection, hooks::Wal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Where commits come one by one, folding costs little beside their flushes, and a short WAL serves them better: a read
/// looks through one block of its index, of 4,062 frames, for each page that it wants, and a flush is cheaper where the
/// file was written before.
const PAGES_ALONE: u32 = 3_500;

/// Of the room that is left on the disk the WAL takes no more than one part in so many, so that a small disk is filled by
/// the database and not by its log.
const ROOM_PARTS: u64 = 8;

/// A WAL of so many pages, 256 KiB, is never too large, and the room is asked for once in so many.
const PAGES_PER_LOOK: u32 = 64;

const PAGE_BYTES: u64 = 4_096;

#[derive(Debug)]
pub(super) struct Checkpoints {
    wal: Arc<WalState>,
    /// A checkpoint is due at this many frames.
    pages: u32,
    /// Where the ledger lies.
    directory: PathBuf,
}

/// The state of the WAL, as this connection's commits show it.
#[derive(Debug, Default)]
struct WalState {
    /// Frames in it after the last commit of any process.
    frames: AtomicU32,
    /// Where to try again after a checkpoint that a long reader kept from finishing; 0 otherwise.
    retry_at: AtomicU32,
    /// The bytes that were free on the disk, and the frames at which that was.
    room: AtomicU64,
    room_seen_at: AtomicU32,
}

impl WalState {
    fn now_has(&self, frames: u32) {
        if frames < self.frames.swap(frames, Ordering::Relaxed) {
            // Somebody else has folded it; what stood against that is over.
            self.retry_at.store(0, Ordering::Relaxed);
        }
    }
}

/// How the WAL starts over once it is folded back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// With the next commit of anybody who has it open.
    ForLater,
    /// Now: a command that makes one commit and ends is forgotten by the next, which would fold again.
    AtOnce,
}

impl Checkpoints {
    pub(super) fn watch(connection: &mut Connection, pages: u32, place: &Place) -> rusqlite::Result<Self> {
        let directory = place.directory().to_owned();
        let checkpoints = Checkpoints { wal: Arc::default(), pages, directory };
        checkpoints.watch_again(connection)?;
        Ok(checkpoints)
    }

    /// The hook also turns off SQLite's own checkpoints.
    pub(super) fn watch_again(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let wal = Arc::clone(&self.wal);
        connection.wal_hook(Some(move |_: &mut Wal, count: i32| {
            wal.now_has(count.unsigned_abs());
            Ok(())
        }))
    }

    /// After a commit that so many callers shared.
    pub(super) fn due(&self, callers: usize) -> bool {
        let pages = if callers <= 1 { self.pages.min(PAGES_ALONE) } else { self.pages };
        self.has(pages) || self.crowds()
    }

    /// Where only lazy commits come, nobody else folds; so few pay for it.
    pub(super) fn overdue(&self) -> bool {
        self.has(self.pages.saturating_mul(4)) || self.crowds()
    }

    /// Whether the WAL takes too much of a disk that is nearly full. It is then to be cut, not only folded.
    pub(super) fn crowds(&self) -> bool {
        let frames = self.wal.frames.load(Ordering::Relaxed);
        self.has(PAGES_PER_LOOK) && u64::from(frames) * PAGE_BYTES > self.room(frames) / ROOM_PARTS
    }

    fn room(&self, frames: u32) -> u64 {
        let seen_at = self.wal.room_seen_at.load(Ordering::Relaxed);
        if frames < seen_at || frames - seen_at >= PAGES_PER_LOOK {
            let disk = rustix::fs::statvfs(&self.directory);
            let room = disk.map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
            self.wal.room.store(room, Ordering::Relaxed);
            self.wal.room_seen_at.store(frames, Ordering::Relaxed);
        }
        self.wal.room.load(Ordering::Relaxed)
    }

    fn has(&self, frames: u32) -> bool {
        let at = frames.max(self.wal.retry_at.load(Ordering::Relaxed));
        self.wal.frames.load(Ordering::Relaxed) >= at
    }

    /// An error is not reported: everything is durable in the WAL, and the next commit tries again.
    pub(super) fn run(&self, connection: &mut Connection, how: Fold) {
        let counts = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let done = match how {
            Fold::ForLater => connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], counts),
            Fold::AtOnce => {
                // Readers are not waited for.
                let hurried = connection.busy_timeout(Duration::ZERO);
                let done = hurried
                    .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], counts));
                // Without patience the next write would only give up sooner.
                let _impatient = connection::wait_for_others(connection);
                done
            }
        };
        let finished = done.is_ok_and(|(log, moved)| log == moved);
        let frames = self.wal.frames.swap(0, Ordering::Relaxed);
        let retry_at = if finished { 0 } else { frames + self.pages / 4 };
        self.wal.retry_at.store(retry_at, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wal_that_somebody_else_has_folded_is_not_let_grow_to_where_it_was() {
        let directory = PathBuf::from("/");
        let checkpoints = Checkpoints { wal: Arc::default(), pages: 14_000, directory };
        checkpoints.wal.retry_at.store(60_000, Ordering::Relaxed);
        checkpoints.wal.now_has(50_000);
        assert!(!checkpoints.due(64), "a long reader is not to be asked each time");
        checkpoints.wal.now_has(10);
        checkpoints.wal.now_has(14_000);
        assert!(checkpoints.due(64));
    }
}
