//! The last writes of this process, as long as nobody else has written: they still hold and need not be read.
//!
//! Most commits are about a row that was written a moment ago by the same process, and require the same few cells.
//! It is asked inside the write transaction alone, after SQLite has said whether another connection has committed
//! since (`PRAGMA data_version`); one that has makes everything forgotten.

use super::read;
use crate::precondition::{LastWrite, RowHead};
use rusqlite::Connection;
use semel_core::digest::Digest;
use std::collections::HashMap;

/// Rows and cells that are kept, a megabyte of them. More are open only where calls take long, and then a read is
/// nothing beside them.
const KEPT_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct HeadCache {
    /// The version of the database that this speaks of; `None` speaks of none.
    version: Option<i64>,
    /// The newest row of a record.
    rows: HashMap<Digest, RowHead>,
    cells: HashMap<Digest, LastWrite>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastToWrite {
    Us,
    PerhapsOthers,
}

impl HeadCache {
    /// Forgets everything unless this connection was the last to write, as far as is known, and says whether it was.
    pub(super) fn check(&mut self, connection: &Connection) -> rusqlite::Result<LastToWrite> {
        let version = Some(read::data_version(connection)?);
        let last = if self.version == version { LastToWrite::Us } else { LastToWrite::PerhapsOthers };
        if last == LastToWrite::PerhapsOthers || self.rows.len().max(self.cells.len()) > KEPT_MAX {
            *self = HeadCache { version, ..HeadCache::default() };
        }
        Ok(last)
    }

    /// After a transaction that may not have landed, and with a new connection, whose versions are its own.
    pub(super) fn nothing(&mut self) {
        *self = HeadCache::default();
    }

    pub(super) fn newest(&self, key: Digest) -> Option<&RowHead> {
        self.rows.get(&key)
    }

    pub(super) fn keep_newest(&mut self, key: Digest, head: RowHead) {
        self.rows.insert(key, head);
    }

    pub(super) fn forget(&mut self, key: Digest) {
        self.rows.remove(&key);
    }

    pub(super) fn cell(&self, key: Digest) -> Option<LastWrite> {
        self.cells.get(&key).copied()
    }

    pub(super) fn keep_cell(&mut self, key: Digest, last: LastWrite) {
        self.cells.insert(key, last);
    }
}
