//! The meaning of an error of SQLite: whether the batch can be retried, and whether the connection is still good.

use crate::Error;
use crate::place::Place;
use rusqlite::ErrorCode;
use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SqliteFault {
    /// Someone else holds the write lock for too long.
    Busy,
    /// No room. SQLite writes the commit frame last and whole, so what did not fit did not land.
    Full,
    /// The file or the disk: whatever the connection remembers can no longer be trusted.
    Disk,
    /// It was opened where nothing could be written: see [`Readers::closed`](super::readers::Readers::closed).
    ReadOnly,
    /// The file under the path is no longer the one that was opened.
    Moved,
    /// It has less than it had.
    Behind,
    /// The bytes make no sense.
    Damaged,
    /// This statement alone: a constraint, a missing table, a value of the wrong kind.
    Statement,
}

impl SqliteFault {
    pub(super) fn of(error: &rusqlite::Error) -> SqliteFault {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => SqliteFault::Busy,
            Some(ErrorCode::DiskFull) => SqliteFault::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => SqliteFault::Damaged,
            Some(ErrorCode::ReadOnly) => SqliteFault::ReadOnly,
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::OutOfMemory,
            ) => SqliteFault::Disk,
            _ => SqliteFault::Statement,
        }
    }

    /// Whether each commit of the batch may fare better alone.
    pub(super) fn concerns_one_commit(self) -> bool {
        self == SqliteFault::Statement
    }

    pub(super) fn spoils_connection(self) -> bool {
        matches!(self, SqliteFault::Disk | SqliteFault::ReadOnly | SqliteFault::Damaged)
    }

    pub(super) fn while_opening(place: &Place, error: &rusqlite::Error) -> Error {
        match SqliteFault::of(error) {
            SqliteFault::Damaged => damaged(place, error),
            SqliteFault::Busy => {
                place.cannot_open(io::Error::new(io::ErrorKind::WouldBlock, error.to_string()))
            }
            _ => place.cannot_open(io::Error::other(error.to_string())),
        }
    }

    pub(super) fn while_reading(place: &Place, error: &rusqlite::Error) -> Error {
        match SqliteFault::of(error) {
            SqliteFault::Damaged => damaged(place, error),
            _ => Error::NotRead { what: error.to_string() },
        }
    }
}

fn damaged(place: &Place, error: &rusqlite::Error) -> Error {
    Error::Damaged { path: place.database().to_owned(), what: error.to_string() }
}
