//! When the WAL is folded back into the database. Left to itself SQLite does so inside COMMIT, where callers wait.

use rusqlite::{Connection, hooks::Wal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug)]
pub(super) struct Checkpoints {
    /// Frames in the WAL after the last commit, whoever wrote them.
    frames: Arc<AtomicU32>,
    /// A checkpoint is due at this many frames.
    pages: u32,
    /// Where to try again after one that a long reader kept from finishing; 0 otherwise.
    retry_at: u32,
}

impl Checkpoints {
    pub(super) fn watch(connection: &mut Connection, pages: u32) -> rusqlite::Result<Self> {
        let checkpoints = Checkpoints { frames: Arc::default(), pages, retry_at: 0 };
        checkpoints.watch_again(connection)?;
        Ok(checkpoints)
    }

    /// The hook also turns off SQLite's own checkpoints.
    pub(super) fn watch_again(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let frames = Arc::clone(&self.frames);
        connection.wal_hook(Some(move |_: &mut Wal, count: i32| {
            frames.store(count.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        }))
    }

    pub(super) fn due(&self) -> bool {
        self.frames.load(Ordering::Relaxed) >= self.pages.max(self.retry_at)
    }

    /// An error is not reported: everything is durable in the WAL, and the next commit tries again.
    pub(super) fn run(&mut self, connection: &Connection) {
        let counts = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let done = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], counts);
        let finished = done.is_ok_and(|(log, moved)| log == moved);
        let frames = self.frames.swap(0, Ordering::Relaxed);
        self.retry_at = if finished { 0 } else { frames + self.pages / 4 };
    }
}
