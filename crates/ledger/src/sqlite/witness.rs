//! A second opinion about keys that are not found. A flipped bit in the index of keys makes a claim invisible, and its
//! call would run again. So a key counts as unseen only where the index of effect ids, which lies on other pages, does
//! not have it either.
//!
//! The keys are kept in memory, eight bytes each, and read on from the newest effect id that was seen. Ids are in order
//! of time, so an effect that another process adds with an older one is not kept; its pages were written just now.

use super::columns::{prefix, tag};
use rusqlite::{Connection, OptionalExtension, params};
use semel_core::digest::Digest;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

const NEWER: &str = "SELECT effect, substr(key, 1, 8) FROM effect INDEXED BY effect_id WHERE effect > ?1 \
     ORDER BY effect DESC LIMIT ?2";

const BY_KEY: &str = "SELECT id FROM effect INDEXED BY effect_id WHERE effect > x'' AND substr(key, 1, 8) = ?1 \
     ORDER BY effect DESC LIMIT 1";

#[derive(Debug)]
pub(super) struct KeyWitness {
    /// No more of the newest effects are asked than this.
    effects_max: usize,
    seen: Mutex<SeenKeys>,
}

#[derive(Debug, Default)]
struct SeenKeys {
    keys: HashSet<i64>,
    /// The newest effect id among them.
    newest: Vec<u8>,
}

impl KeyWitness {
    pub(super) fn of_newest(effects_max: usize) -> Self {
        KeyWitness { effects_max, seen: Mutex::default() }
    }

    /// The number of a row with this key, if there is one after all. To be asked after the index of keys was.
    pub(super) fn find(&self, connection: &Connection, key: Digest) -> rusqlite::Result<Option<i64>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.read_on(connection, self.effects_max)?;
        if !seen.keys.contains(&tag(key)) {
            return Ok(None);
        }
        let id = connection.prepare_cached(BY_KEY)?.query_row([prefix(&key)], |row| row.get(0)).optional()?;
        if id.is_none() {
            // Retention has dropped it.
            seen.keys.remove(&tag(key));
        }
        Ok(id)
    }
}

impl SeenKeys {
    fn read_on(&mut self, connection: &Connection, effects_max: usize) -> rusqlite::Result<()> {
        let mut query = connection.prepare_cached(NEWER)?;
        let mut rows = query.query(params![self.newest, effects_max as i64])?;
        let mut newest = None;
        while let Some(row) = rows.next()? {
            if newest.is_none() {
                newest = Some(row.get(0)?);
            }
            // A witness that is damaged itself says nothing.
            if let Ok(key) = row.get::<_, [u8; 8]>(1) {
                self.keys.insert(i64::from_be_bytes(key));
            }
        }
        self.newest = newest.unwrap_or_else(|| std::mem::take(&mut self.newest));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Place;
    use crate::sqlite::{OpenOptions, SqliteStore};
    use semel_core::time::At;

    /// It would else read the rows, which are forty times as large, and depend on their pages.
    #[test]
    fn it_reads_nothing_but_its_index() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::at(directory.path().join("ledger.db"));
        let options = OpenOptions { blocking: true, ..OpenOptions::at(place, At(1)) };
        let store = SqliteStore::open(options).unwrap().store;
        for sql in [NEWER, BY_KEY] {
            let plan = store
                .with_reader(|connection| {
                    let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                    let nothing = vec![rusqlite::types::Null; explain.parameter_count()];
                    explain.query_row(rusqlite::params_from_iter(nothing), |row| row.get::<_, String>(3))
                })
                .unwrap();
            assert!(plan.contains("COVERING INDEX effect_id"), "{plan}");
        }
    }
}
