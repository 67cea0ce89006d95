//! One commit inside a write transaction: the checks, then the writes.

use super::columns::{digest, index_from, last_write, micros, prefix, tag};
use super::head_cache::HeadCache;
use super::statements::{Sql, Statements};
use crate::precondition::{Finding, LastWrite, RowHead, View, examine};
use crate::store::{
    ALIKE_MAX, Against, Body, Commit, Cursor, Index, JournalLine, Nonce, PAGE_ROWS_MAX, Part, Put,
    ReplyChange, SeenAlike,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use semel_core::digest::Digest;
use std::iter;

/// Larger replies lie apart from their outcome, which may be written more than once.
const REPLY_IN_ROW_MAX: usize = 1_024;

/// The parameters of a row that is inserted or rewritten, behind those that name it.
macro_rules! row_values {
    ([$($name:expr),+], $write:expr, $index:expr, $body:expr) => {
        params![
            $($name,)+
            $write.revision.0 as i64,
            $index.effect.to_be_bytes(),
            $index.run.as_ref().map(|run| run.0),
            $index.family.0,
            $index.alike.as_ref().map(|alike| alike.0),
            $index.content as i64,
            $index.open,
            $index.owner.map(|owner| owner.0.to_be_bytes()),
            micros($index.opened_at),
            micros($index.changed_at),
            $write.nonce.0.to_be_bytes(),
            $body.fixed,
            $body.state
        ]
    };
}

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
            Put::Record { key, ordinal, expected, against, index, body, changed, reply } => {
                let last_write = LastWrite::after(*expected, nonce);
                let rewrites = head.is_some() && *changed == Part::Fixed;
                let apart = match reply {
                    ReplyChange::Set(bytes) if rewrites || bytes.len() > REPLY_IN_ROW_MAX => Some(bytes),
                    _ => None,
                };
                let in_row = if apart.is_some() { &ReplyChange::Drop } else { reply };
                let id = match head {
                    None => {
                        let id = self.insert((*key, *ordinal), last_write, index, body)?;
                        // A copied row.
                        if let ReplyChange::Set(_) = in_row {
                            self.settle(id, last_write, index, body, in_row)?;
                        }
                        id
                    }
                    Some(head) => {
                        self.overwrite(head, last_write, index, (body, *changed), in_row)?;
                        head.id as i64
                    }
                };
                let was_apart = head.is_some_and(|head| head.reply_apart);
                match (apart, reply) {
                    (Some(bytes), _) => {
                        self.statements.get(Sql::StoreApart)?.execute(params![id, bytes])?;
                    }
                    (None, ReplyChange::Set(_) | ReplyChange::Drop) if was_apart => {
                        self.statements.get(Sql::DropApart)?.execute([id])?;
                    }
                    _ => {}
                }
                if *against == Against::Itself || rewrites {
                    self.heads.forget(*key);
                    return Ok(());
                }
                let reply_apart = apart.is_some() || was_apart && *reply == ReplyChange::Keep;
                let (index, id, ordinal) = (Index::clone(index), id as u64, *ordinal);
                self.heads.keep_newest(*key, RowHead { id, ordinal, last_write, index, reply_apart });
                Ok(())
            }
            Put::Forget { key, .. } => {
                self.heads.forget(*key);
                let id = head.expect("a row to forget was found by the check").id as i64;
                for sql in [Sql::Forget, Sql::ForgetOutcome, Sql::ForgetDelivery, Sql::DropApart] {
                    self.statements.get(sql)?.execute([id])?;
                }
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
            Put::ForgetCell { key, .. } => {
                self.statements.get(Sql::ForgetCell)?.execute([key.0])?;
                self.heads.keep_cell(*key, LastWrite::NONE);
                Ok(())
            }
        }
    }

    fn insert(
        &mut self,
        (key, ordinal): (Digest, u32),
        write: LastWrite,
        index: &Index,
        body: &Body,
    ) -> rusqlite::Result<i64> {
        let id =
            self.statements.get(Sql::Insert)?.insert(row_values!([key.0, ordinal], write, index, body))?;
        if index.open {
            self.list_open(id, index)?;
        }
        if !body.delivery.is_empty() {
            self.deliver(id, write, &body.delivery)?;
        }
        Ok(id)
    }

    fn overwrite(
        &mut self,
        head: &RowHead,
        write: LastWrite,
        index: &Index,
        (body, changed): (&Body, Part),
        reply: &ReplyChange,
    ) -> rusqlite::Result<()> {
        let (id, old) = (head.id as i64, &head.index);
        match changed {
            Part::Delivery => return self.deliver(id, write, &body.delivery),
            Part::State => self.settle(id, write, index, body, reply)?,
            Part::Fixed => self.rewrite(id, write, index, body, reply)?,
        }
        // One that was open until now has no mark.
        if !old.open && body.delivery.is_empty() {
            self.statements.get(Sql::ForgetDelivery)?.execute([id])?;
        }
        let lists = |index: &Index| (index.family, index.alike);
        let refiled = lists(old) != lists(index);
        if old.open && (!index.open || refiled) {
            for tag in open_tags(old) {
                self.statements.get(Sql::StrikeOpen)?.execute([tag, id])?;
            }
        }
        if index.open && (!old.open || refiled) {
            self.list_open(id, index)?;
        }
        Ok(())
    }

    fn settle(
        &mut self,
        id: i64,
        write: LastWrite,
        index: &Index,
        body: &Body,
        reply: &ReplyChange,
    ) -> rusqlite::Result<()> {
        let owner = index.owner.map(|owner| owner.0.to_be_bytes());
        let (revision, nonce) = (write.revision.0 as i64, write.nonce.0.to_be_bytes());
        let set = match reply {
            ReplyChange::Set(reply) => Some(reply),
            ReplyChange::Keep | ReplyChange::Drop => None,
        };
        let keeps = *reply == ReplyChange::Keep;
        let at = micros(index.changed_at);
        let values = params![id, revision, index.open, owner, at, nonce, body.state, set, keeps];
        self.statements.get(Sql::Settle)?.execute(values).map(drop)
    }

    fn rewrite(
        &mut self,
        id: i64,
        write: LastWrite,
        index: &Index,
        body: &Body,
        reply: &ReplyChange,
    ) -> rusqlite::Result<()> {
        self.statements.get(Sql::Rewrite)?.execute(row_values!([id], write, index, body))?;
        if *reply == ReplyChange::Keep {
            self.statements.get(Sql::KeepReply)?.execute([id])?;
        }
        self.statements.get(Sql::ForgetOutcome)?.execute([id])?;
        if body.delivery.is_empty() { Ok(()) } else { self.deliver(id, write, &body.delivery) }
    }

    fn deliver(&mut self, id: i64, write: LastWrite, mark: &[u8]) -> rusqlite::Result<()> {
        let (revision, nonce) = (write.revision.0 as i64, write.nonce.0.to_be_bytes());
        self.statements.get(Sql::Deliver)?.execute(params![id, revision, nonce, mark]).map(drop)
    }

    /// Files a row among the open ones.
    fn list_open(&mut self, id: i64, index: &Index) -> rusqlite::Result<()> {
        for tag in open_tags(index) {
            self.statements.get(Sql::ListOpen)?.execute([tag, id])?;
        }
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

/// The tags under which `open` lists an open row.
fn open_tags(index: &Index) -> impl Iterator<Item = i64> {
    iter::once(index.family).chain(index.alike).map(tag)
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
        let (newest, changes) =
            statement.query_row(values, |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, i64>(1)?)))?;
        let newest = newest.map(|id| Cursor(id as u64));
        let most = PAGE_ROWS_MAX as i64;
        let open = self.statements.get(Sql::OpenAlike)?;
        let open = open.query_row([tag(alike), most], |row| row.get::<_, i64>(0))?;
        Ok(SeenAlike { newest, changes: changes as u64, open: open as u64 })
    }
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
