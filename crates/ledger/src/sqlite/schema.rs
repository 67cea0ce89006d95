//! The tables, their version, and the check that this is our ledger, readable by us and written with our secret.
//!
//! The number of pages that one commit touches shapes them, because each costs 4 KiB of WAL:
//!
//! - Rows are appended and not rewritten: `effect` has a claim, `outcome` what became of it, `delivery` its mark. A
//!   repeated claim rewrites its row and takes the other two away. The view `whole` puts them together.
//! - Replies and journal lines are appended too. Only `effect_key` and `effect_alike` grow at random places, so they
//!   hold eight bytes of the digest instead of 32; the row itself settles which one it is. Uniqueness of
//!   (key, ordinal) is therefore kept by the precondition check inside the write transaction. `effect_key` has the
//!   ordinal too, so that one effect of a record with many is a point read.
//! - `effect_id` grows at its end, since ids are in order of time. It has the key too, as a witness (see `witness`) that
//!   costs no page of its own.
//! - What is looked up among *open* rows lies in one small table, `open`, under the tags of its family and of its outline,
//!   instead of partial indexes: its pages are few and hot, and settled rows cost nothing there.
//! - A small reply stands in its outcome, and a large one apart.
//! - There is no index on `changed_at`. It would move with every settlement; retention walks in order of insertion
//!   instead and stops where rows are too young (see `scan`).

use super::fault::SqliteFault;
use crate::Error;
use crate::place::Place;
use rusqlite::{Connection, OptionalExtension, params};
use semel_core::digest::Digest;

/// The stored form that this code writes.
pub const FORMAT: u32 = 7;

const TABLES: &str = "
CREATE TABLE meta(
  one INTEGER PRIMARY KEY CHECK(one = 1), format INTEGER NOT NULL, min_reader INTEGER NOT NULL,
  min_writer INTEGER NOT NULL, secret_check BLOB NOT NULL, barrier INTEGER NOT NULL) STRICT;
CREATE TABLE effect(
  id INTEGER PRIMARY KEY, ordinal INTEGER NOT NULL, revision INTEGER NOT NULL, open INTEGER NOT NULL,
  opened_at INTEGER NOT NULL, changed_at INTEGER NOT NULL, key BLOB NOT NULL, effect BLOB NOT NULL, run BLOB,
  family BLOB NOT NULL, alike BLOB, content INTEGER NOT NULL, owner BLOB, nonce BLOB NOT NULL, fixed BLOB NOT NULL,
  state BLOB NOT NULL) STRICT;
CREATE TABLE outcome(
  id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, open INTEGER NOT NULL, changed_at INTEGER NOT NULL, owner BLOB,
  nonce BLOB NOT NULL, state BLOB NOT NULL, reply BLOB) STRICT;
CREATE TABLE delivery(
  id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, nonce BLOB NOT NULL, mark BLOB NOT NULL) STRICT;
CREATE VIEW whole AS SELECT
  e.id, e.ordinal, e.key, e.effect, e.run, e.family, e.alike, e.content, e.opened_at, e.fixed,
  max(e.revision, ifnull(o.revision, 0), ifnull(d.revision, 0)) AS revision,
  CASE WHEN d.revision > ifnull(o.revision, 0) THEN d.nonce WHEN o.id IS NULL THEN e.nonce ELSE o.nonce END AS nonce,
  iif(o.id IS NULL, e.open, o.open) AS open, iif(o.id IS NULL, e.owner, o.owner) AS owner,
  iif(o.id IS NULL, e.changed_at, o.changed_at) AS changed_at, iif(o.id IS NULL, e.state, o.state) AS state,
  d.mark, o.reply
  FROM effect e LEFT JOIN outcome o ON o.id = e.id LEFT JOIN delivery d ON d.id = e.id;
CREATE INDEX effect_key ON effect(substr(key, 1, 8), ordinal);
CREATE UNIQUE INDEX effect_id ON effect(effect, substr(key, 1, 8));
CREATE INDEX effect_run ON effect(substr(run, 1, 8)) WHERE run IS NOT NULL;
CREATE INDEX effect_alike ON effect(substr(alike, 1, 8)) WHERE alike IS NOT NULL;
CREATE TABLE open(tag INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY(tag, id)) STRICT, WITHOUT ROWID;
CREATE TABLE reply(id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE journal(
  id INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, effect BLOB, run BLOB, data TEXT NOT NULL) STRICT;
CREATE TABLE cell(
  key BLOB PRIMARY KEY, revision INTEGER NOT NULL, nonce BLOB NOT NULL, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
";

/// The caller's use of the ledger; a newer one may allow reading and forbid writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Whether this is a ledger of ours. `false`: it is an empty database, which becomes one by [`found`].
pub(super) fn recognise(
    connection: &Connection,
    place: &Place,
    secret_check: Digest,
    access: Access,
) -> Result<bool, Error> {
    let path = || place.database().to_owned();
    let meta = connection
        .prepare_cached("SELECT format, min_reader, min_writer, secret_check FROM meta")
        .and_then(|mut query| {
            query.query_row([], |row| {
                let needs: (u32, u32, u32) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok((needs, row.get::<_, Vec<u8>>(3)?))
            })
        });
    let ((format, min_reader, min_writer), check) = match meta {
        Ok(meta) => meta,
        Err(error) if SqliteFault::of(&error) == SqliteFault::Statement => {
            return is_empty(connection, place);
        }
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            return Err(Error::Damaged { path: path(), what: "it says nothing about its format".to_owned() });
        }
        Err(error) => return Err(SqliteFault::while_opening(place, &error)),
    };
    if check.is_empty() {
        return Ok(false);
    }
    let needs = if access == Access::Read { min_reader } else { min_reader.max(min_writer) };
    if needs > FORMAT {
        return Err(Error::TooNew { path: path(), needs, has: FORMAT });
    }
    if check != secret_check.0 {
        return Err(Error::WrongSecret { path: path() });
    }
    if format < FORMAT {
        return Err(Error::TooOld { path: path(), has: format, needs: FORMAT });
    }
    Ok(true)
}

pub(super) fn is_newer(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT format > ?1 FROM meta", [FORMAT], |row| row.get(0))
}

pub(super) fn has_tables(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) > 0 FROM sqlite_schema", [], |row| row.get(0))
}

/// A database without our `meta` is either just being founded or none of ours.
fn is_empty(connection: &Connection, place: &Place) -> Result<bool, Error> {
    if has_tables(connection).map_err(|error| SqliteFault::while_opening(place, &error))? {
        let what = "it is an SQLite database, but not a ledger of semel".to_owned();
        return Err(Error::Damaged { path: place.database().to_owned(), what });
    }
    Ok(false)
}

/// Whether founding began and was cut short before a secret was known.
pub(super) fn half_founded(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT length(secret_check) = 0 FROM meta", [], |row| row.get(0))
}

/// Creates the tables unless they are there, without a secret yet: a secret that stands alone must always mean that
/// its ledger is gone, so it is made only once the tables are durable. What may have been forgotten is written in the
/// same transaction.
pub(super) fn found(connection: &Connection, epoch: Option<&[u8]>) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let there = connection
        .query_row("SELECT 1 FROM sqlite_schema WHERE name = 'meta'", [], |_| Ok(()))
        .optional()?
        .is_some();
    if !there {
        connection.execute_batch(TABLES)?;
        connection.execute(
            "INSERT INTO meta(one, format, min_reader, min_writer, secret_check, barrier) VALUES(1, ?1, ?1, ?1, x'', 0)",
            params![FORMAT],
        )?;
        if let Some(body) = epoch {
            connection.execute(
                "INSERT INTO cell(key, revision, nonce, body) VALUES(?1, 1, zeroblob(16), ?2)",
                params![crate::store::EPOCH_CELL.0, body],
            )?;
        }
    }
    connection.execute_batch("COMMIT")
}

/// Ties the ledger to its secret; from now on it opens with no other.
pub(super) fn tie(connection: &Connection, secret_check: Digest) -> rusqlite::Result<()> {
    connection.execute("UPDATE meta SET secret_check = ?1", params![secret_check.0]).map(|_| ())
}

/// How far the journal has come.
pub(super) fn last_line(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT ifnull(max(id), 0) FROM journal")?
        .query_row([], |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
}
