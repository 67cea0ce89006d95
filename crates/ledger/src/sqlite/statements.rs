//! The statements of the write path, each fetched from the connection's cache once a batch instead of once a commit.

use super::columns::index_columns;
use rusqlite::{CachedStatement, Connection};

/// Whether a row's reply lies apart.
macro_rules! reply_is_apart {
    () => {
        "EXISTS(SELECT 1 FROM reply WHERE reply.id = whole.id)"
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sql {
    Newest,
    OneRow,
    CellHead,
    OpenRelative,
    NewestAlike,
    OpenAlike,
    Insert,
    Rewrite,
    KeepReply,
    Settle,
    Deliver,
    ForgetOutcome,
    ForgetDelivery,
    Forget,
    ListOpen,
    StrikeOpen,
    StoreApart,
    DropApart,
    DropReply,
    PutCell,
    ForgetCell,
    Journal,
}

const COUNT: usize = Sql::Journal as usize + 1;

impl Sql {
    pub(super) fn text(self) -> &'static str {
        match self {
            Sql::Newest => concat!(
                "SELECT id, ordinal, revision, nonce, ",
                reply_is_apart!(),
                ", ",
                index_columns!(),
                " FROM whole WHERE substr(key, 1, 8) = ?1 ORDER BY ordinal DESC LIMIT 1"
            ),
            Sql::OneRow => concat!(
                "SELECT id, ordinal, revision, nonce, ",
                reply_is_apart!(),
                ", ",
                index_columns!(),
                " FROM whole WHERE substr(key, 1, 8) = ?1 AND ordinal = ?2"
            ),
            Sql::CellHead => "SELECT revision, nonce FROM cell WHERE key = ?1",
            Sql::OpenRelative => {
                "SELECT whole.key FROM open CROSS JOIN whole ON whole.id = open.id \
                 WHERE open.tag = ?1 AND whole.open AND whole.family = ?2 AND whole.key IS NOT ?3 LIMIT 1"
            }
            Sql::NewestAlike => {
                "SELECT max(id), coalesce(sum(changes), 0) FROM (SELECT id, revision - (mark NOT NULL) AS changes FROM whole \
                 WHERE substr(alike, 1, 8) = ?1 AND alike = ?2 ORDER BY id DESC LIMIT ?3)"
            }
            // Of two outlines that are filed under one tag, either may be meant: then a call looks once more.
            Sql::OpenAlike => {
                "SELECT coalesce(sum(id), 0) FROM (SELECT id FROM open WHERE tag = ?1 ORDER BY id DESC LIMIT ?2)"
            }
            Sql::Insert => {
                "INSERT INTO effect(key, ordinal, revision, effect, run, family, alike, content, open, owner, \
                 opened_at, changed_at, nonce, fixed, state) \
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
            }
            // SQLite rewrites the index entries of every column that is named, changed or not. Few calls come to it.
            Sql::Rewrite => {
                "UPDATE effect SET revision = ?2, effect = ?3, run = ?4, family = ?5, alike = ?6, content = ?7, \
                 open = ?8, owner = ?9, opened_at = ?10, changed_at = ?11, nonce = ?12, fixed = ?13, state = ?14 \
                 WHERE id = ?1"
            }
            Sql::KeepReply => {
                "INSERT OR REPLACE INTO reply(id, body) SELECT id, reply FROM outcome WHERE id = ?1 AND reply NOT NULL"
            }
            Sql::Settle => {
                "INSERT INTO outcome(id, revision, open, owner, changed_at, nonce, state, reply) \
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(id) DO UPDATE SET revision = ?2, open = ?3, \
                 owner = ?4, changed_at = ?5, nonce = ?6, state = ?7, reply = iif(?9, reply, ?8)"
            }
            Sql::Deliver => {
                "INSERT OR REPLACE INTO delivery(id, revision, nonce, mark) VALUES(?1, ?2, ?3, ?4)"
            }
            Sql::ForgetOutcome => "DELETE FROM outcome WHERE id = ?1",
            Sql::ForgetDelivery => "DELETE FROM delivery WHERE id = ?1",
            Sql::Forget => "DELETE FROM effect WHERE id = ?1",
            Sql::ListOpen => "INSERT OR IGNORE INTO open(tag, id) VALUES(?1, ?2)",
            Sql::StrikeOpen => "DELETE FROM open WHERE tag = ?1 AND id = ?2",
            Sql::StoreApart => "INSERT OR REPLACE INTO reply(id, body) VALUES(?1, ?2)",
            Sql::DropApart => "DELETE FROM reply WHERE id = ?1",
            Sql::DropReply => "UPDATE outcome SET reply = NULL WHERE id = ?1",
            Sql::PutCell => "INSERT OR REPLACE INTO cell(key, revision, nonce, body) VALUES(?1, ?2, ?3, ?4)",
            Sql::ForgetCell => "DELETE FROM cell WHERE key = ?1",
            Sql::Journal => "INSERT INTO journal(at, kind, effect, run, data) VALUES(?1, ?2, ?3, ?4, ?5)",
        }
    }
}

pub(super) struct Statements<'c> {
    connection: &'c Connection,
    prepared: [Option<CachedStatement<'c>>; COUNT],
}

impl<'c> Statements<'c> {
    pub(super) fn of(connection: &'c Connection) -> Self {
        Statements { connection, prepared: [const { None }; COUNT] }
    }

    pub(super) fn get(&mut self, sql: Sql) -> rusqlite::Result<&mut CachedStatement<'c>> {
        let slot = &mut self.prepared[sql as usize];
        if slot.is_none() {
            *slot = Some(self.connection.prepare_cached(sql.text())?);
        }
        Ok(slot.as_mut().expect("prepared above"))
    }
}
