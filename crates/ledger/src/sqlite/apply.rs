//! One commit inside a write transaction: the checks, then the writes.

use super::columns::{digest, index_from, last_write, micros, prefix, tag};
use super::head_cache::HeadCache;
use super::statements::{Sql, Statements};
use crate::precondition::{Finding, LastWrite, RowHead, View, examine};
use crate::store::{
    ALIKE_MAX, Commit, Cursor, Index, JournalLine, Nonce, PAGE_ROWS_MAX, Put, ReplyChange, SeenAlike,
};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};
use semel_core::digest::Digest;

/// Larger replies lie apart from their rows: a row is rewritten more often than its reply.
const REPLY_IN_ROW_MAX: usize = 1_024;

/// Room in a row for what settling adds to it, so that it does not have to move the rows beside it: as much as the last
/// reply took, and some for the verdict.
static ROOM: [u8; REPLY_IN_ROW_MAX + VERDICT_BYTES] = [b' '; REPLY_IN_ROW_MAX + VERDICT_BYTES];
const VERDICT_BYTES: usize = 64;

/// One write transaction, and what this process remembers of those before.
pub(super) struct Batch<'c> {
    statements: Statements<'c>,
    heads: &'c mut HeadCache,
    /// The last line of the journal that it wrote.
    pub(super) last_line: Option<i64>,
}

impl<'c> Batch<'c> {
    /// To be called inside the transaction, with what was checked there or remembers nothing.
    pub(super) fn new(connection: &'c Connection, heads: &'c mut HeadCache) -> Self {
        Batch { statements: Statements::of(connection), heads, last_line: None }
    }

    /// Writes the commit if it may land, and nothing if it may not.
    pub(super) fn apply(&mut self, commit: &Commit) -> rusqlite::Result<Finding> {
        let finding = examine(self, commit)?;
        if let Finding::Clear(found) = &finding {
            for (put, head) in commit.puts.iter().zip(found) {
                self.put(commit.nonce, put, head.as_ref())?;
            }
            for line in &commit.journal {
                self.write_down(line)?;
            }
        }
        Ok(finding)
    }

    fn put(&mut self, nonce: Nonce, put: &Put, head: Option<&RowHead>) -> rusqlite::Result<()> {
        match put {
            Put::Record { key, ordinal, expected, index, body, reply } => {
                let write = LastWrite::after(*expected, nonce);
                let apart = match reply {
                    ReplyChange::Set(body) => {
                        self.heads.reply_bytes = body.len().min(REPLY_IN_ROW_MAX);
                        body.len() > REPLY_IN_ROW_MAX
                    }
                    ReplyChange::Keep => head.is_some_and(|head| head.reply_apart),
                    ReplyChange::Drop => false,
                };
                let id = match head {
                    None => self.insert(*key, *ordinal, write, index, body, reply)?,
                    Some(head) => {
                        self.overwrite(head, write, index, body, reply)?;
                        head.id as i64
                    }
                };
                match reply {
                    ReplyChange::Set(body) if apart => {
                        self.statements.get(Sql::StoreApart)?.execute(params![id, body])?;
                    }
                    _ if !apart && head.is_some_and(|head| head.reply_apart) => {
                        self.statements.get(Sql::DropApart)?.execute([id])?;
                    }
                    _ => {}
                }
                let index = Index::clone(index);
                let (id, ordinal, reply_apart) = (id as u64, *ordinal, apart);
                self.heads.keep_newest(*key, RowHead { id, ordinal, last_write: write, index, reply_apart });
                Ok(())
            }
            Put::Forget { key, .. } => {
                self.heads.forget(*key);
                let id = head.expect("a row to forget was found by the check").id as i64;
                self.statements.get(Sql::Forget)?.execute([id])?;
                self.statements.get(Sql::DropApart)?.execute([id])?;
                Ok(())
            }
            Put::DropReply { key, .. } => {
                self.heads.forget(*key);
                let id = head.expect("a row whose reply goes was found by the check").id as i64;
                self.statements.get(Sql::DropReply)?.execute([id])?;
                self.statements.get(Sql::DropApart)?.execute([id])?;
                Ok(())
            }
            Put::Cell { key, expected, body } => {
                let write = LastWrite::after(*expected, nonce);
                let (revision, nonce) = (write.revision.0 as i64, nonce.0.to_be_bytes());
                self.statements.get(Sql::PutCell)?.execute(params![key.0, revision, nonce, body])?;
                self.heads.keep_cell(*key, write);
                Ok(())
            }
        }
    }

    fn insert(
        &mut self,
        key: Digest,
        ordinal: u32,
        write: LastWrite,
        index: &Index,
        body: &[u8],
        reply: &ReplyChange,
    ) -> rusqlite::Result<i64> {
        let id = self.statements.get(Sql::Insert)?.insert(params![
            key.0,
            ordinal,
            write.revision.0 as i64,
            index.effect.to_be_bytes(),
            index.run.as_ref().map(|run| run.0),
            index.family.0,
            index.alike.as_ref().map(|alike| alike.0),
            index.open,
            index.owner.map(|owner| owner.0.to_be_bytes()),
            micros(index.opened_at),
            micros(index.changed_at),
            write.nonce.0.to_be_bytes(),
            body,
            in_row(reply, index.open, self.heads.reply_bytes)
        ])?;
        if index.open {
            self.list_open(id, index)?;
        }
        Ok(id)
    }

    fn overwrite(
        &mut self,
        head: &RowHead,
        write: LastWrite,
        index: &Index,
        body: &[u8],
        reply: &ReplyChange,
    ) -> rusqlite::Result<()> {
        let id = head.id as i64;
        let old = &head.index;
        let owner = index.owner.map(|owner| owner.0.to_be_bytes());
        let (revision, at) = (write.revision.0 as i64, micros(index.changed_at));
        let nonce = write.nonce.0.to_be_bytes();
        match reply {
            ReplyChange::Keep => {
                let values = params![id, revision, index.open, owner, at, nonce, body];
                self.statements.get(Sql::Overwrite)?.execute(values)?
            }
            reply => {
                let reply = in_row(reply, index.open, self.heads.reply_bytes);
                let values = params![id, revision, index.open, owner, at, nonce, body, reply];
                self.statements.get(Sql::OverwriteWithReply)?.execute(values)?
            }
        };
        // SQLite rewrites the index entries of every column that is named, changed or not. These hardly ever do.
        let lasting = |index: &Index| (index.effect, index.run, index.family, index.alike, index.opened_at);
        let rehomed = lasting(old) != lasting(index);
        if rehomed {
            self.statements.get(Sql::Rehome)?.execute(params![
                id,
                index.effect.to_be_bytes(),
                index.run.as_ref().map(|run| run.0),
                index.family.0,
                index.alike.as_ref().map(|alike| alike.0),
                micros(index.opened_at)
            ])?;
        }
        if old.open && (!index.open || rehomed) {
            self.statements.get(Sql::StrikeOpen)?.execute([tag(old.family), id])?;
        }
        if index.open && (!old.open || rehomed) {
            self.list_open(id, index)?;
        }
        Ok(())
    }

    /// Files a row among the open ones.
    fn list_open(&mut self, id: i64, index: &Index) -> rusqlite::Result<()> {
        let values = params![tag(index.family), id, index.alike.map(tag)];
        self.statements.get(Sql::ListOpen)?.execute(values)?;
        Ok(())
    }

    fn write_down(&mut self, line: &JournalLine) -> rusqlite::Result<()> {
        let id = self.statements.get(Sql::Journal)?.insert(params![
            micros(line.at),
            line.kind,
            line.effect.map(u128::to_be_bytes),
            line.run.as_ref().map(|run| run.0),
            line.data
        ])?;
        self.last_line = Some(id);
        Ok(())
    }
}

impl View for Batch<'_> {
    type Error = rusqlite::Error;

    fn newest(&mut self, key: Digest) -> rusqlite::Result<Option<RowHead>> {
        if let Some(head) = self.heads.newest(key) {
            return Ok(Some(head.clone()));
        }
        let statement = self.statements.get(Sql::Newest)?;
        statement.query_row([prefix(&key)], head_from).optional()
    }

    fn row(&mut self, key: Digest, ordinal: u32) -> rusqlite::Result<Option<RowHead>> {
        let statement = self.statements.get(Sql::OneRow)?;
        statement.query_row(params![prefix(&key), ordinal], head_from).optional()
    }

    fn cell(&mut self, key: Digest) -> rusqlite::Result<LastWrite> {
        if let Some(last) = self.heads.cell(key) {
            return Ok(last);
        }
        let statement = self.statements.get(Sql::CellHead)?;
        let found = statement.query_row([key.0], |row| last_write(row, 0)).optional()?;
        let last = found.unwrap_or(LastWrite::NONE);
        self.heads.keep_cell(key, last);
        Ok(last)
    }

    fn open_relative(&mut self, family: Digest, except: Option<Digest>) -> rusqlite::Result<Option<Digest>> {
        let statement = self.statements.get(Sql::OpenRelative)?;
        let values = params![tag(family), family.0, except.map(|key| key.0)];
        statement.query_row(values, |row| digest(row, 0)).optional()
    }

    fn alike(&mut self, alike: Digest) -> rusqlite::Result<SeenAlike> {
        let statement = self.statements.get(Sql::NewestAlike)?;
        let values = params![prefix(&alike), alike.0, ALIKE_MAX as i64];
        let (newest, revisions) =
            statement.query_row(values, |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, i64>(1)?)))?;
        let newest = newest.map(|id| Cursor(id as u64));
        let most = PAGE_ROWS_MAX as i64;
        let open = self.statements.get(Sql::OpenAlike)?;
        let open = open.query_row([tag(alike), most], |row| row.get::<_, i64>(0))?;
        Ok(SeenAlike { newest, revisions: revisions as u64, open: open as u64 })
    }
}

/// The reply's columns in a row.
fn in_row(reply: &ReplyChange, open: bool, usual_bytes: usize) -> ToSqlOutput<'_> {
    const APART: i64 = 1;
    let value = match reply {
        ReplyChange::Set(body) if body.len() <= REPLY_IN_ROW_MAX => ValueRef::Blob(body),
        ReplyChange::Set(_) => ValueRef::Integer(APART),
        ReplyChange::Drop if open => ValueRef::Text(&ROOM[..usual_bytes + VERDICT_BYTES]),
        ReplyChange::Drop | ReplyChange::Keep => ValueRef::Null,
    };
    ToSqlOutput::Borrowed(value)
}

fn head_from(row: &Row<'_>) -> rusqlite::Result<RowHead> {
    Ok(RowHead {
        id: row.get::<_, i64>(0)? as u64,
        ordinal: row.get(1)?,
        last_write: last_write(row, 2)?,
        reply_apart: row.get(4)?,
        index: index_from(row, 5)?,
    })
}
