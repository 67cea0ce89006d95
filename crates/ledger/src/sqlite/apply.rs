//! One commit inside a write transaction: the checks, then the writes.

use crate::precondition::{Finding, Head, View, examine};
use crate::store::{Commit, Index, JournalLine, OwnerId, Put, ReplyChange, Revision};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use semel_core::digest::Digest;
use semel_core::time::At;
use std::collections::HashMap;

/// The tag under which every open row stands in the tree `open`, in order of insertion.
pub(super) const OPEN: i64 = 0;

/// The columns of [`index_from`], in its order.
macro_rules! index_columns {
    () => {
        "effect, run, family, neighbourhood, open, owner, opened_at, changed_at"
    };
}
pub(super) use index_columns;

/// What a batch has learnt about cells. Inside the transaction nobody else can change them, and most claims of a
/// batch require the same two.
pub(super) struct Batch<'c> {
    connection: &'c Connection,
    cells: HashMap<Digest, Revision>,
}

impl<'c> Batch<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Batch { connection, cells: HashMap::new() }
    }

    /// Writes the commit if it may land, and nothing if it may not.
    pub(super) fn apply(&mut self, commit: &Commit) -> rusqlite::Result<Finding> {
        let finding = examine(self, commit)?;
        if let Finding::Clear(found) = &finding {
            for (put, head) in commit.puts.iter().zip(found) {
                self.put(put, head.as_ref())?;
            }
            for line in &commit.journal {
                self.write_down(line)?;
            }
        }
        Ok(finding)
    }

    fn put(&mut self, put: &Put, head: Option<&Head>) -> rusqlite::Result<()> {
        match put {
            Put::Record { key, ordinal, expected, index, body, reply } => {
                let revision = expected.next();
                let id = match head {
                    None => self.insert(*key, *ordinal, revision, index, body)?,
                    Some(head) => {
                        self.overwrite(head, revision, index, body)?;
                        head.id as i64
                    }
                };
                self.reply(id, reply, head.is_none())
            }
            Put::Forget { .. } => {
                let id = head.expect("a row to forget was found by the check").id as i64;
                self.connection.prepare_cached("DELETE FROM effect WHERE id = ?1")?.execute([id])?;
                self.connection.prepare_cached("DELETE FROM reply WHERE id = ?1")?.execute([id])?;
                Ok(())
            }
            Put::DropReply { .. } => {
                let id = head.expect("a row whose reply goes was found by the check").id as i64;
                self.connection.prepare_cached("DELETE FROM reply WHERE id = ?1")?.execute([id])?;
                Ok(())
            }
            Put::Cell { key, expected, body } => {
                let revision = expected.next();
                self.connection
                    .prepare_cached("INSERT OR REPLACE INTO cell(key, revision, body) VALUES(?1, ?2, ?3)")?
                    .execute(params![key.0, revision.0 as i64, body])?;
                self.cells.insert(*key, revision);
                Ok(())
            }
        }
    }

    fn insert(
        &self,
        key: Digest,
        ordinal: u32,
        revision: Revision,
        index: &Index,
        body: &[u8],
    ) -> rusqlite::Result<i64> {
        let id = self
            .connection
            .prepare_cached(
                "INSERT INTO effect(key, ordinal, revision, effect, run, family, neighbourhood, open, owner, \
                 opened_at, changed_at, body) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .insert(params![
                key.0,
                ordinal,
                revision.0 as i64,
                index.effect.to_be_bytes(),
                index.run.as_ref().map(|run| run.0),
                index.family.0,
                index.neighbourhood.0,
                index.open,
                index.owner.map(|owner| owner.0.to_be_bytes()),
                micros(index.opened_at),
                micros(index.changed_at),
                body
            ])?;
        if index.open {
            self.list_open(id, index)?;
        }
        Ok(id)
    }

    fn overwrite(&self, head: &Head, revision: Revision, index: &Index, body: &[u8]) -> rusqlite::Result<()> {
        let id = head.id as i64;
        let old = &head.index;
        // SQLite rewrites the index entries of every column that is named, changed or not. Of an effect's life
        // only the last few change, so the others are named only when they really did.
        self.connection
            .prepare_cached(
                "UPDATE effect SET revision = ?2, open = ?3, owner = ?4, changed_at = ?5, body = ?6 WHERE id = ?1",
            )?
            .execute(params![
                id,
                revision.0 as i64,
                index.open,
                index.owner.map(|owner| owner.0.to_be_bytes()),
                micros(index.changed_at),
                body
            ])?;
        let lasting =
            |index: &Index| (index.effect, index.run, index.family, index.neighbourhood, index.opened_at);
        let rehomed = lasting(old) != lasting(index);
        if rehomed {
            self.connection
                .prepare_cached(
                    "UPDATE effect SET effect = ?2, run = ?3, family = ?4, neighbourhood = ?5, opened_at = ?6 \
                     WHERE id = ?1",
                )?
                .execute(params![
                    id,
                    index.effect.to_be_bytes(),
                    index.run.as_ref().map(|run| run.0),
                    index.family.0,
                    index.neighbourhood.0,
                    micros(index.opened_at)
                ])?;
        }
        if old.open && (!index.open || rehomed) {
            self.strike_open(id, old)?;
        }
        if index.open && (!old.open || rehomed) {
            self.list_open(id, index)?;
        }
        Ok(())
    }

    fn list_open(&self, id: i64, index: &Index) -> rusqlite::Result<()> {
        let mut insert =
            self.connection.prepare_cached("INSERT OR IGNORE INTO open(tag, id) VALUES(?1, ?2)")?;
        for tag in [OPEN, tag(index.family), tag(index.neighbourhood)] {
            insert.execute([tag, id])?;
        }
        Ok(())
    }

    fn strike_open(&self, id: i64, index: &Index) -> rusqlite::Result<()> {
        let mut delete = self.connection.prepare_cached("DELETE FROM open WHERE tag = ?1 AND id = ?2")?;
        for tag in [OPEN, tag(index.family), tag(index.neighbourhood)] {
            delete.execute([tag, id])?;
        }
        Ok(())
    }

    fn reply(&self, id: i64, change: &ReplyChange, new: bool) -> rusqlite::Result<()> {
        match change {
            ReplyChange::Set(body) => {
                let mut insert = self
                    .connection
                    .prepare_cached("INSERT OR REPLACE INTO reply(id, body) VALUES(?1, ?2)")?;
                insert.execute(params![id, body])?;
            }
            ReplyChange::Drop if !new => {
                self.connection.prepare_cached("DELETE FROM reply WHERE id = ?1")?.execute([id])?;
            }
            ReplyChange::Drop | ReplyChange::Keep => {}
        }
        Ok(())
    }

    fn write_down(&self, line: &JournalLine) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("INSERT INTO journal(at, kind, effect, run, data) VALUES(?1, ?2, ?3, ?4, ?5)")?
            .execute(params![
                micros(line.at),
                line.kind,
                line.effect.map(u128::to_be_bytes),
                line.run.as_ref().map(|run| run.0),
                line.data
            ])?;
        Ok(())
    }
}

impl View for Batch<'_> {
    type Error = rusqlite::Error;

    fn newest(&mut self, key: Digest) -> rusqlite::Result<Option<Head>> {
        self.connection
            .prepare_cached(concat!(
                "SELECT id, ordinal, revision, ",
                index_columns!(),
                " FROM effect WHERE substr(key, 1, 8) = ?1 AND key = ?2 ORDER BY id DESC LIMIT 1"
            ))?
            .query_row(params![prefix(&key), key.0], head_from)
            .optional()
    }

    fn row(&mut self, key: Digest, ordinal: u32) -> rusqlite::Result<Option<Head>> {
        self.connection
            .prepare_cached(concat!(
                "SELECT id, ordinal, revision, ",
                index_columns!(),
                " FROM effect WHERE substr(key, 1, 8) = ?1 AND key = ?2 AND ordinal = ?3"
            ))?
            .query_row(params![prefix(&key), key.0, ordinal], head_from)
            .optional()
    }

    fn cell(&mut self, key: Digest) -> rusqlite::Result<Revision> {
        if let Some(revision) = self.cells.get(&key) {
            return Ok(*revision);
        }
        let found = self
            .connection
            .prepare_cached("SELECT revision FROM cell WHERE key = ?1")?
            .query_row([key.0], |row| row.get::<_, i64>(0))
            .optional()?;
        let revision = Revision(found.unwrap_or(0) as u64);
        self.cells.insert(key, revision);
        Ok(revision)
    }

    fn open_relative(&mut self, family: Digest, except: Option<Digest>) -> rusqlite::Result<Option<Digest>> {
        self.connection
            .prepare_cached(
                "SELECT effect.key FROM open CROSS JOIN effect ON effect.id = open.id \
                 WHERE open.tag = ?1 AND effect.open AND effect.family = ?2 AND effect.key IS NOT ?3 LIMIT 1",
            )?
            .query_row(params![tag(family), family.0, except.map(|key| key.0)], |row| digest(row, 0))
            .optional()
    }
}

/// What a family or neighbourhood is filed under in `open`. It need not be unique: the row says which one it is.
pub(super) fn tag(digest: Digest) -> i64 {
    // Never OPEN, which is even.
    digest.short() as i64 | 1
}

/// What a key or run is filed under in its index.
pub(super) fn prefix(digest: &Digest) -> &[u8] {
    &digest.0[..8]
}

pub(super) fn micros(at: At) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

fn head_from(row: &Row<'_>) -> rusqlite::Result<Head> {
    Ok(Head {
        id: row.get::<_, i64>(0)? as u64,
        ordinal: row.get(1)?,
        revision: Revision(row.get::<_, i64>(2)? as u64),
        index: index_from(row, 3)?,
    })
}

pub(super) fn index_from(row: &Row<'_>, first: usize) -> rusqlite::Result<Index> {
    Ok(Index {
        effect: u128::from_be_bytes(row.get(first)?),
        run: optional_digest(row, first + 1)?,
        family: digest(row, first + 2)?,
        neighbourhood: digest(row, first + 3)?,
        open: row.get(first + 4)?,
        owner: row.get::<_, Option<[u8; 16]>>(first + 5)?.map(|id| OwnerId(u128::from_be_bytes(id))),
        opened_at: At(row.get::<_, i64>(first + 6)? as u64),
        changed_at: At(row.get::<_, i64>(first + 7)? as u64),
    })
}

pub(super) fn digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Digest> {
    row.get(column).map(Digest)
}

pub(super) fn optional_digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Digest>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => digest(row, column).map(Some),
    }
}
