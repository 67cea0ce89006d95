//! The writes of a batch, gathered by statement: one round trip whatever the number of commits.

use super::columns::{IDS_MAX, Sql, micros};
use crate::precondition::RowHead;
use crate::store::{Commit, Put, ReplyChange};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

type Bytes<'c> = Vec<&'c [u8]>;
type MaybeBytes<'c> = Vec<Option<&'c [u8]>>;

#[derive(Debug)]
pub(super) struct Writes<'c> {
    first_id: i64,
    inserted: RowColumns<'c>,
    overwritten: RowColumns<'c>,
    keeps_reply: Vec<bool>,
    forgotten: Vec<i64>,
    reply_dropped: Vec<i64>,
    cells: CellColumns<'c>,
    lines: LineColumns<'c>,
}

#[derive(Debug, Default)]
struct RowColumns<'c> {
    id: Vec<i64>,
    key: Bytes<'c>,
    ordinal: Vec<i32>,
    revision: Vec<i64>,
    nonce: Vec<[u8; 16]>,
    effect: Vec<[u8; 16]>,
    run: MaybeBytes<'c>,
    family: Bytes<'c>,
    alike: MaybeBytes<'c>,
    open: Vec<bool>,
    owner: Vec<Option<[u8; 16]>>,
    opened_at: Vec<i64>,
    changed_at: Vec<i64>,
    body: Bytes<'c>,
    reply: MaybeBytes<'c>,
}

#[derive(Debug, Default)]
struct CellColumns<'c> {
    key: Bytes<'c>,
    revision: Vec<i64>,
    nonce: Vec<[u8; 16]>,
    body: Bytes<'c>,
}

#[derive(Debug, Default)]
struct LineColumns<'c> {
    id: Vec<i64>,
    at: Vec<i64>,
    effect: Vec<Option<[u8; 16]>>,
    run: MaybeBytes<'c>,
    kind: Vec<&'c str>,
    data: Vec<&'c str>,
}

impl<'c> Writes<'c> {
    pub(super) fn from_id(first_id: i64) -> Writes<'c> {
        Writes {
            first_id,
            inserted: RowColumns::default(),
            overwritten: RowColumns::default(),
            keeps_reply: Vec::new(),
            forgotten: Vec::new(),
            reply_dropped: Vec::new(),
            cells: CellColumns::default(),
            lines: LineColumns::default(),
        }
    }

    /// `heads` are the rows that its puts overwrite, as the check has found them.
    pub(super) fn add(&mut self, commit: &'c Commit, heads: Vec<Option<RowHead>>) {
        let nonce = commit.nonce.0.to_be_bytes();
        for (put, head) in commit.puts.iter().zip(heads) {
            let id = head.as_ref().map(|head| head.id.cast_signed());
            match put {
                Put::Record { key, ordinal, expected, index, body, reply } => {
                    let rows = if id.is_some() { &mut self.overwritten } else { &mut self.inserted };
                    let next = self.first_id + rows.id.len() as i64;
                    rows.id.push(id.unwrap_or(next));
                    rows.key.push(&key.0);
                    rows.ordinal.push(ordinal.cast_signed());
                    rows.revision.push(expected.next().0.cast_signed());
                    rows.nonce.push(nonce);
                    rows.effect.push(index.effect.to_be_bytes());
                    rows.run.push(index.run.as_ref().map(|run| run.0.as_slice()));
                    rows.family.push(&index.family.0);
                    rows.alike.push(index.alike.as_ref().map(|alike| alike.0.as_slice()));
                    rows.open.push(index.open);
                    rows.owner.push(index.owner.map(|owner| owner.0.to_be_bytes()));
                    rows.opened_at.push(micros(index.opened_at));
                    rows.changed_at.push(micros(index.changed_at));
                    rows.body.push(body);
                    rows.reply.push(match reply {
                        ReplyChange::Set(reply) => Some(reply),
                        ReplyChange::Keep | ReplyChange::Drop => None,
                    });
                    if id.is_some() {
                        self.keeps_reply.push(*reply == ReplyChange::Keep);
                    }
                }
                Put::Forget { .. } => self.forgotten.extend(id),
                Put::DropReply { .. } => self.reply_dropped.extend(id),
                Put::Cell { key, expected, body } => {
                    self.cells.key.push(&key.0);
                    self.cells.revision.push(expected.next().0.cast_signed());
                    self.cells.nonce.push(nonce);
                    self.cells.body.push(body);
                }
            }
        }
        for line in &commit.journal {
            self.lines.id.push(self.first_id + self.lines.id.len() as i64);
            self.lines.at.push(micros(line.at));
            self.lines.effect.push(line.effect.map(u128::to_be_bytes));
            self.lines.run.push(line.run.as_ref().map(|run| run.0.as_slice()));
            self.lines.kind.push(&line.kind);
            self.lines.data.push(&line.data);
        }
        assert!(self.lines.id.len().max(self.inserted.id.len()) < IDS_MAX, "a batch has fewer lines than ids");
    }

    /// Sends all of it, and `COMMIT` behind it. If a write fails, the server rolls back instead.
    pub(super) async fn commit(self, client: &Client, sql: &Sql) -> Result<(), Error> {
        let (new, old, cells, lines) = (&self.inserted, &self.overwritten, &self.cells, &self.lines);
        tokio::try_join!(
            write(client, &new.id, &sql.insert, &[
                (&new.id, Type::INT8_ARRAY),
                (&new.key, Type::BYTEA_ARRAY),
                (&new.ordinal, Type::INT4_ARRAY),
                (&new.revision, Type::INT8_ARRAY),
                (&slices(&new.nonce), Type::BYTEA_ARRAY),
                (&slices(&new.effect), Type::BYTEA_ARRAY),
                (&new.run, Type::BYTEA_ARRAY),
                (&new.family, Type::BYTEA_ARRAY),
                (&new.alike, Type::BYTEA_ARRAY),
                (&new.open, Type::BOOL_ARRAY),
                (&maybe_slices(&new.owner), Type::BYTEA_ARRAY),
                (&new.opened_at, Type::INT8_ARRAY),
                (&new.changed_at, Type::INT8_ARRAY),
                (&new.body, Type::BYTEA_ARRAY),
                (&new.reply, Type::BYTEA_ARRAY),
            ]),
            write(client, &old.id, &sql.overwrite, &[
                (&old.id, Type::INT8_ARRAY),
                (&old.revision, Type::INT8_ARRAY),
                (&slices(&old.nonce), Type::BYTEA_ARRAY),
                (&slices(&old.effect), Type::BYTEA_ARRAY),
                (&old.run, Type::BYTEA_ARRAY),
                (&old.family, Type::BYTEA_ARRAY),
                (&old.alike, Type::BYTEA_ARRAY),
                (&old.open, Type::BOOL_ARRAY),
                (&maybe_slices(&old.owner), Type::BYTEA_ARRAY),
                (&old.opened_at, Type::INT8_ARRAY),
                (&old.changed_at, Type::INT8_ARRAY),
                (&old.body, Type::BYTEA_ARRAY),
                (&old.reply, Type::BYTEA_ARRAY),
                (&self.keeps_reply, Type::BOOL_ARRAY),
            ]),
            write(client, &self.forgotten, &sql.forget, &[(&self.forgotten, Type::INT8_ARRAY)]),
            write(client, &self.reply_dropped, &sql.drop_replies, &[(&self.reply_dropped, Type::INT8_ARRAY)]),
            write(client, &cells.revision, &sql.put_cells, &[
                (&cells.key, Type::BYTEA_ARRAY),
                (&cells.revision, Type::INT8_ARRAY),
                (&slices(&cells.nonce), Type::BYTEA_ARRAY),
                (&cells.body, Type::BYTEA_ARRAY),
            ]),
            write(client, &lines.id, &sql.journal_lines, &[
                (&lines.id, Type::INT8_ARRAY),
                (&lines.at, Type::INT8_ARRAY),
                (&maybe_slices(&lines.effect), Type::BYTEA_ARRAY),
                (&lines.run, Type::BYTEA_ARRAY),
                (&lines.kind, Type::TEXT_ARRAY),
                (&lines.data, Type::TEXT_ARRAY),
            ]),
            client.batch_execute("COMMIT"),
        )
        .map(|_| ())
    }
}

/// Nothing to write is not sent.
async fn write(
    client: &Client,
    rows: &[i64],
    sql: &str,
    values: &[(&(dyn ToSql + Sync), Type)],
) -> Result<(), Error> {
    if rows.is_empty() { Ok(()) } else { client.query_typed(sql, values).await.map(|_| ()) }
}

fn slices(ids: &[[u8; 16]]) -> Vec<&[u8]> {
    ids.iter().map(<[u8; 16]>::as_slice).collect()
}

fn maybe_slices(ids: &[Option<[u8; 16]>]) -> Vec<Option<&[u8]>> {
    ids.iter().map(|id| id.as_ref().map(<[u8; 16]>::as_slice)).collect()
}
