//! When the WAL is folded back into the database. Left to itself SQLite does so inside COMMIT, where callers wait.

use super::connection;
use rusqlite::{Connection, hooks::Wal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Where commits come one by one, folding costs little beside their flushes, and a short WAL serves them better: a read
/// looks through one block of its index, of 4,062 frames, for each page that it wants, and a flush is cheaper where the
/// file was written before.
const PAGES_ALONE: u32 = 3_500;

#[derive(Debug)]
pub(super) struct Checkpoints {
    /// Frames in the WAL after the last commit, whoever wrote them.
    frames: Arc<AtomicU32>,
    /// A checkpoint is due at this many frames.
    pages: u32,
    /// Where to try again after one that a long reader kept from finishing; 0 otherwise.
    retry_at: u32,
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

    /// After a commit that so many callers shared.
    pub(super) fn due(&self, callers: usize) -> bool {
        let pages = if callers <= 1 { self.pages.min(PAGES_ALONE) } else { self.pages };
        self.has(pages)
    }

    /// Where only lazy commits come, nobody else folds; so few pay for it.
    pub(super) fn overdue(&self) -> bool {
        self.has(self.pages.saturating_mul(4))
    }

    fn has(&self, frames: u32) -> bool {
        self.frames.load(Ordering::Relaxed) >= frames.max(self.retry_at)
    }

    /// An error is not reported: everything is durable in the WAL, and the next commit tries again.
    pub(super) fn run(&mut self, connection: &mut Connection, how: Fold) {
        let counts = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let done = match how {
            Fold::ForLater => connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], counts),
            Fold::AtOnce => {
                // Whoever reads is not waited for.
                let hurried = connection.busy_timeout(Duration::ZERO);
                let done = hurried
                    .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], counts));
                // Without patience the next write would only give up sooner.
                let _impatient = connection::wait_for_others(connection);
                done
            }
        };
        let finished = done.is_ok_and(|(log, moved)| log == moved);
        let frames = self.frames.swap(0, Ordering::Relaxed);
        self.retry_at = if finished { 0 } else { frames + self.pages / 4 };
    }
}
