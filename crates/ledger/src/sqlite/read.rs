//! Point reads. Each statement is one snapshot.

use super::columns::{body_from, digest, index_columns, index_from, micros, optional_digest, prefix};
use super::witness::KeyWitness;
use crate::store::{
    Body, Cell, Cursor, EPOCH_CELL, Index, JOURNAL_PAGE_MAX, JournalLine, Page, Revision, Row, Versioned,
};
use rusqlite::{Connection, OptionalExtension, params};
use semel_core::digest::Digest;
use semel_core::time::At;

/// The reply of a row, wherever it lies.
macro_rules! reply_column {
    () => {
        "coalesce(whole.reply, (SELECT body FROM reply WHERE reply.id = whole.id))"
    };
}

/// [`EPOCH_CELL`], written out: a constant need not be bound anew for each read.
macro_rules! epoch_cell {
    () => {
        "x'0000000000000000000000000000000000000000000000000000000000000000'"
    };
}

/// What is read of a row, its reply and the epoch.
macro_rules! select_newest {
    ($where:literal) => {
        concat!(
            "SELECT (SELECT revision FROM cell WHERE key = ",
            epoch_cell!(),
            "), ",
            reply_column!(),
            ", ordinal, whole.revision, fixed, state, mark, ",
            index_columns!(),
            " FROM whole WHERE ",
            $where
        )
    };
}

/// The newest row of a record, its reply, and the epoch. Where there is no row the epoch is read after it: one that is
/// newer than what was read of the record makes its reader more careful, and never less.
pub(super) fn newest(
    connection: &Connection,
    key: Digest,
    witness: &KeyWitness,
) -> rusqlite::Result<Versioned> {
    let by_key = select_newest!("substr(key, 1, 8) = ?1 ORDER BY ordinal DESC LIMIT 1");
    let read = |found: &rusqlite::Row<'_>| versioned(found, key);
    if let Some(found) = connection.prepare_cached(by_key)?.query_row([prefix(&key)], read).optional()? {
        return Ok(found);
    }
    if let Some(id) = witness.find(connection, key)? {
        return connection.prepare_cached(select_newest!("id = ?1"))?.query_row([id], read);
    }
    let epoch = cell(connection, EPOCH_CELL)?.map_or(Revision::ABSENT, |cell| cell.revision);
    Ok(Versioned { revision: Revision::ABSENT, row: None, epoch, position: 0 })
}

fn versioned(found: &rusqlite::Row<'_>, key: Digest) -> rusqlite::Result<Versioned> {
    let epoch = Revision(found.get::<_, Option<i64>>(0)?.unwrap_or(0) as u64);
    let revision = Revision(found.get::<_, i64>(3)? as u64);
    let read = || {
        let (index, body, reply) = (index_from(found, 7)?, body_from(found, 4)?, found.get(1)?);
        Ok(Row { key, ordinal: found.get(2)?, revision, index, body, reply })
    };
    let row = Some(or_damaged(read(), key, revision)?);
    Ok(Versioned { revision, row, epoch, position: 0 })
}

/// A row with a column of a kind that none of ours has: its record reads as damaged.
fn or_damaged(read: rusqlite::Result<Row>, key: Digest, revision: Revision) -> rusqlite::Result<Row> {
    match read {
        Err(error) if error.sqlite_error_code().is_none() => {
            // Since when is not known either, so no probe's "no" counts.
            let (opened_at, changed_at) = (At(u64::MAX), At(u64::MAX));
            let (run, alike, owner) = (None, None, None);
            let index = Index {
                effect: 0,
                run,
                family: key,
                alike,
                content: 0,
                open: true,
                owner,
                opened_at,
                changed_at,
            };
            let body = Body { fixed: [].into(), state: Vec::new(), delivery: Vec::new() };
            Ok(Row { key, ordinal: 1, revision, index, body, reply: None })
        }
        read => read,
    }
}

pub(super) fn cell(connection: &Connection, key: Digest) -> rusqlite::Result<Option<Cell>> {
    connection
        .prepare_cached("SELECT revision, body FROM cell WHERE key = ?1")?
        .query_row([key.0], |found| {
            Ok(Cell { revision: Revision(found.get::<_, i64>(0)? as u64), body: found.get(1)? })
        })
        .optional()
}

pub(super) fn cell_keys(connection: &Connection) -> rusqlite::Result<Vec<Digest>> {
    connection
        .prepare_cached("SELECT key FROM cell ORDER BY key")?
        .query_map([], |found| digest(found, 0))?
        .collect()
}

pub(super) fn reply(connection: &Connection, key: Digest, ordinal: u32) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached(concat!(
            "SELECT ",
            reply_column!(),
            " FROM whole WHERE substr(key, 1, 8) = ?1 AND ordinal = ?2"
        ))?
        .query_row(params![prefix(&key), ordinal], |found| found.get(0))
        .optional()
        .map(Option::flatten)
}

/// Of the record or the cell under this key, whichever there is.
pub(super) fn revision(connection: &Connection, key: Digest) -> rusqlite::Result<Revision> {
    connection
        .prepare_cached(
            "SELECT max(coalesce((SELECT revision FROM whole WHERE substr(key, 1, 8) = ?1 \
             ORDER BY ordinal DESC LIMIT 1), 0), coalesce((SELECT revision FROM cell WHERE key = ?2), 0))",
        )?
        .query_row(params![prefix(&key), key.0], |found| found.get::<_, i64>(0))
        .map(|revision| Revision(revision as u64))
}

/// One effect of a record, without its reply.
pub(super) fn occurrence(
    connection: &Connection,
    key: Digest,
    ordinal: u32,
) -> rusqlite::Result<Option<Row>> {
    let one = format!("SELECT {ROW_COLUMNS} FROM whole WHERE substr(key, 1, 8) = ?1 AND ordinal = ?2");
    let mut query = connection.prepare_cached(&one)?;
    Ok(query.query_row(params![prefix(&key), ordinal], row).optional()?.map(|(_, row)| row))
}

/// Moves when another connection commits.
pub(super) fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |found| found.get(0))
}

pub(super) fn journal(
    connection: &Connection,
    after: Option<Cursor>,
    limit: usize,
) -> rusqlite::Result<Page<(Cursor, JournalLine)>> {
    let limit = limit.clamp(1, JOURNAL_PAGE_MAX);
    let mut lines = connection.prepare_cached(
        "SELECT id, at, effect, run, kind, data FROM journal WHERE id > ?1 ORDER BY id LIMIT ?2",
    )?;
    let found = lines.query_map(params![from(after), limit as i64 + 1], line)?.collect::<Result<_, _>>()?;
    Ok(Page::cut(found, limit, |(cursor, _)| *cursor))
}

pub(super) fn newest_lines(
    connection: &Connection,
    limit: usize,
) -> rusqlite::Result<Vec<(Cursor, JournalLine)>> {
    connection
        .prepare_cached("SELECT id, at, effect, run, kind, data FROM journal ORDER BY id DESC LIMIT ?1")?
        .query_map([limit.min(JOURNAL_PAGE_MAX) as i64], line)?
        .collect()
}

fn line(found: &rusqlite::Row<'_>) -> rusqlite::Result<(Cursor, JournalLine)> {
    let line = JournalLine {
        at: At(found.get::<_, i64>(1)? as u64),
        effect: found.get::<_, Option<[u8; 16]>>(2)?.map(u128::from_be_bytes),
        run: optional_digest(found, 3)?,
        kind: found.get(4)?,
        data: found.get(5)?,
    };
    Ok((Cursor(found.get::<_, i64>(0)? as u64), line))
}

pub(super) fn from(after: Option<Cursor>) -> i64 {
    after.map_or(0, |Cursor(id)| i64::try_from(id).unwrap_or(i64::MAX))
}

/// In the place of a key that is none: no digest of anything is all zeros.
const UNREADABLE_KEY: Digest = Digest([0; 32]);

pub(super) const ROW_COLUMNS: &str =
    concat!("whole.id, whole.key, ordinal, whole.revision, fixed, state, mark, ", index_columns!());

/// One row of [`ROW_COLUMNS`], without its reply.
pub(super) fn row(found: &rusqlite::Row<'_>) -> rusqlite::Result<(Cursor, Row)> {
    let key = digest(found, 1).unwrap_or(UNREADABLE_KEY);
    let revision = Revision(found.get::<_, i64>(3)? as u64);
    let read = || {
        let (index, body) = (index_from(found, 7)?, body_from(found, 4)?);
        Ok(Row { key, ordinal: found.get(2)?, revision, index, body, reply: None })
    };
    Ok((Cursor(found.get::<_, i64>(0)? as u64), or_damaged(read(), key, revision)?))
}

pub(super) fn before(at: At) -> i64 {
    micros(at)
}

#[cfg(test)]
mod tests {
    use super::super::statements::Sql;
    use super::*;
    use crate::place::Place;
    use crate::sqlite::{OpenOptions, SqliteStore};

    /// A record may have tens of thousands of effects.
    #[test]
    fn no_statement_about_one_effect_goes_through_its_record() {
        let directory = tempfile::tempdir().unwrap();
        let options = OpenOptions::at(Place::at(directory.path().join("ledger.db")), At(1));
        let store = SqliteStore::open(OpenOptions { blocking: true, ..options }).unwrap().store;
        let newest = select_newest!("substr(key, 1, 8) = ?1 ORDER BY ordinal DESC LIMIT 1");
        for sql in [newest, Sql::Newest.text(), Sql::OneRow.text()] {
            let plan = store
                .with_reader(|connection| {
                    let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                    let nothing = vec![rusqlite::types::Null; explain.parameter_count()];
                    let steps = explain.query_map(rusqlite::params_from_iter(nothing), |row| row.get(3))?;
                    steps.collect::<Result<Vec<String>, _>>()
                })
                .unwrap();
            let search = plan.iter().find(|step| step.contains("effect_key")).expect("it goes by the key");
            assert!(sql.contains("LIMIT 1") || search.contains("AND ordinal=?"), "{plan:?}");
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
        }
    }

    #[test]
    fn the_epochs_cell_is_written_out_as_it_is() {
        assert_eq!(epoch_cell!(), format!("x'{EPOCH_CELL}'"));
    }
}
