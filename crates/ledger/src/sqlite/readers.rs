//! Connections that only read. A read never waits while it holds one, so there are as many as threads that read at
//! once; and each thread comes back to the one that it had, whose pages its processor still holds.

use super::at_once::try_lock;
use super::connection;
use super::fault::SqliteFault;
use crate::Error;
use crate::place::Place;
use rusqlite::Connection;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many are kept for the next reads; a burst of more closes its own.
const KEPT_MAX: usize = 8;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Which of the places this thread tries first.
    static FIRST: usize = THREADS.fetch_add(1, Ordering::Relaxed) % KEPT_MAX;
}

#[derive(Debug)]
pub(super) struct Readers {
    place: Place,
    kept: [Mutex<Option<Connection>>; KEPT_MAX],
    /// The one that looks for commits of other processes.
    watching: Mutex<Option<Connection>>,
}

/// As long as this is there, no reader is kept.
#[must_use]
pub(super) struct Closed<'r>(
    #[expect(dead_code, reason = "held, not read")] Vec<MutexGuard<'r, Option<Connection>>>,
);

impl Readers {
    pub(super) fn new(place: Place) -> Self {
        Readers { place, kept: std::array::from_fn(|_| Mutex::default()), watching: Mutex::default() }
    }

    pub(super) fn with<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        let failed = |error: &rusqlite::Error| SqliteFault::while_reading(&self.place, error);
        // One that is there is better than one's own that is not: threads that take turns need but one.
        let mut kept = self.idle(Option::is_some).or_else(|| self.idle(Option::is_none));
        let mut in_a_burst = None;
        let slot = kept.as_deref_mut().unwrap_or(&mut in_a_burst);
        let connection = match slot {
            Some(connection) => connection,
            None => slot.insert(connection::reader(&self.place).map_err(|error| failed(&error))?),
        };
        let result = read(connection);
        if result.as_ref().is_err_and(|error| SqliteFault::of(error).spoils_connection()) {
            *slot = None;
        }
        result.map_err(|error| failed(&error))
    }

    /// Reads by the connection that watches, and says whether it had to be opened for that.
    pub(super) fn watch<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> (rusqlite::Result<T>, bool) {
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        let anew = watching.is_none();
        let connection = match watching.take().map_or_else(|| connection::reader(&self.place), Ok) {
            Ok(connection) => connection,
            Err(error) => return (Err(error), anew),
        };
        let result = read(&connection);
        if result.is_ok() {
            *watching = Some(connection);
        }
        (result, anew)
    }

    /// Closes all that are there, once they are idle, and keeps others from being opened in their place until this is
    /// dropped. The connections of a process share one index of the WAL, and it stays as it was opened, read-only too,
    /// until the last of them is closed.
    pub(super) fn closed(&self) -> Closed<'_> {
        let all = self.kept.iter().chain([&self.watching]);
        Closed(
            all.map(|place| {
                let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
                *place = None;
                place
            })
            .collect(),
        )
    }

    /// The first place from this thread's own on that nobody uses and that is as wanted.
    fn idle(
        &self,
        wanted: impl Fn(&Option<Connection>) -> bool,
    ) -> Option<MutexGuard<'_, Option<Connection>>> {
        let first = FIRST.with(|first| *first);
        let from_first = (0..KEPT_MAX).map(|step| &self.kept[(first + step) % KEPT_MAX]);
        from_first.filter_map(try_lock).find(|kept| wanted(kept))
    }
}
