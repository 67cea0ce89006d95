//! The writes of a batch, gathered by statement: one round trip whatever the number of commits.

use super::columns::micros;
use super::statements::{IDS_MAX, Sql};
use crate::precondition::RowHead;
use crate::store::{Commit, Put, ReplyChange};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

/// Gives a transaction that writes nothing a place in the log, up to which its commit is then flushed.
const FLUSH: &str = "SELECT pg_logical_emit_message(true, 'semel', '')";

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
    forgotten_cells: Bytes<'c>,
    lines: LineColumns<'c>,
    flushes: bool,
}

#[derive(Debug, Default)]
struct RowColumns<'c> {
    id: Vec<i64>,
    key: Bytes<'c>,
    ordinal: Vec<i32>,
    revision: Vec<i64>,
    nonce: Vec<Vec<u8>>,
    effect: Vec<Vec<u8>>,
    run: MaybeBytes<'c>,
    family: Bytes<'c>,
    alike: MaybeBytes<'c>,
    content: Vec<i64>,
    open: Vec<bool>,
    owner: Vec<Option<Vec<u8>>>,
    opened_at: Vec<i64>,
    changed_at: Vec<i64>,
    fixed: Bytes<'c>,
    state: Bytes<'c>,
    delivery: Bytes<'c>,
    reply: MaybeBytes<'c>,
}

#[derive(Debug, Default)]
struct CellColumns<'c> {
    key: Bytes<'c>,
    revision: Vec<i64>,
    nonce: Vec<Vec<u8>>,
    body: Bytes<'c>,
}

#[derive(Debug, Default)]
struct LineColumns<'c> {
    id: Vec<i64>,
    at: Vec<i64>,
    effect: Vec<Option<Vec<u8>>>,
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
            forgotten_cells: Vec::new(),
            lines: LineColumns::default(),
            flushes: false,
        }
    }

    /// `heads` are the rows that its puts overwrite, as the check has found them.
    pub(super) fn add(&mut self, commit: &'c Commit, heads: Vec<Option<RowHead>>) {
        let nonce = commit.nonce.0.to_be_bytes().to_vec();
        for (put, head) in commit.puts.iter().zip(heads) {
            let id = head.as_ref().map(|head| head.id.cast_signed());
            match put {
                Put::Record { key, ordinal, expected, index, body, reply, .. } => {
                    let rows = if id.is_some() { &mut self.overwritten } else { &mut self.inserted };
                    let next = self.first_id + rows.id.len() as i64;
                    rows.id.push(id.unwrap_or(next));
                    rows.key.push(&key.0);
                    rows.ordinal.push(ordinal.cast_signed());
                    rows.revision.push(expected.next().0.cast_signed());
                    rows.nonce.push(nonce.clone());
                    rows.effect.push(index.effect.to_be_bytes().to_vec());
                    rows.run.push(index.run.as_ref().map(|run| run.0.as_slice()));
                    rows.family.push(&index.family.0);
                    rows.alike.push(index.alike.as_ref().map(|alike| alike.0.as_slice()));
                    rows.content.push(index.content.cast_signed());
                    rows.open.push(index.open);
                    rows.owner.push(index.owner.map(|owner| owner.0.to_be_bytes().to_vec()));
                    rows.opened_at.push(micros(index.opened_at));
                    rows.changed_at.push(micros(index.changed_at));
                    rows.fixed.push(&body.fixed);
                    rows.state.push(&body.state);
                    rows.delivery.push(&body.delivery);
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
                    self.cells.nonce.push(nonce.clone());
                    self.cells.body.push(body);
                }
                Put::ForgetCell { key, .. } => self.forgotten_cells.push(&key.0),
            }
        }
        for line in &commit.journal {
            self.lines.id.push(self.first_id + self.lines.id.len() as i64);
            self.lines.at.push(micros(line.at));
            self.lines.effect.push(line.effect.map(|effect| effect.to_be_bytes().to_vec()));
            self.lines.run.push(line.run.as_ref().map(|run| run.0.as_slice()));
            self.lines.kind.push(&line.kind);
            self.lines.data.push(&line.data);
        }
        assert!(
            self.lines.id.len().max(self.inserted.id.len()) < IDS_MAX,
            "a batch has fewer lines than ids"
        );
    }

    /// Something that has landed before is to be on the disk, and on the standbys that the server waits for: its own
    /// transaction may have been cut off while it waited for them.
    pub(super) fn flush(&mut self) {
        self.flushes = true;
    }

    /// Sends all of it, and `COMMIT` behind it. If a write fails, the server rolls back instead.
    pub(super) async fn commit(self, client: &Client, sql: &Sql) -> Result<(), Error> {
        let inserted = self.inserted.values();
        let inserted: Vec<_> =
            [(&self.inserted.key as Value, Type::BYTEA_ARRAY), (&self.inserted.ordinal, Type::INT4_ARRAY)]
                .into_iter()
                .chain(inserted)
                .collect();
        let mut overwritten = self.overwritten.values();
        overwritten.push((&self.keeps_reply, Type::BOOL_ARRAY));
        let forgotten: Values<'_> = vec![(&self.forgotten, Type::INT8_ARRAY)];
        let reply_dropped: Values<'_> = vec![(&self.reply_dropped, Type::INT8_ARRAY)];
        let forgotten_cells: Values<'_> = vec![(&self.forgotten_cells, Type::BYTEA_ARRAY)];
        let (cells, lines) = (self.cells.values(), self.lines.values());
        // In this order: each is sent when it is first polled.
        tokio::try_join!(
            biased;
            write(client, &sql.insert, &inserted, self.inserted.id.len()),
            write(client, &sql.overwrite, &overwritten, self.overwritten.id.len()),
            write(client, &sql.forget, &forgotten, self.forgotten.len()),
            write(client, &sql.drop_replies, &reply_dropped, self.reply_dropped.len()),
            write(client, &sql.put_cells, &cells, self.cells.key.len()),
            write(client, &sql.forget_cells, &forgotten_cells, self.forgotten_cells.len()),
            write(client, &sql.journal_lines, &lines, self.lines.id.len()),
            write(client, FLUSH, &[], usize::from(self.flushes)),
            client.batch_execute("COMMIT"),
        )
        .map(|_| ())
    }
}

type Value<'v> = &'v (dyn ToSql + Sync);
type Values<'v> = Vec<(Value<'v>, Type)>;

impl RowColumns<'_> {
    /// In the order of the statements' parameters; an insert has the key and the ordinal before them.
    fn values(&self) -> Values<'_> {
        vec![
            (&self.id, Type::INT8_ARRAY),
            (&self.revision, Type::INT8_ARRAY),
            (&self.nonce, Type::BYTEA_ARRAY),
            (&self.effect, Type::BYTEA_ARRAY),
            (&self.run, Type::BYTEA_ARRAY),
            (&self.family, Type::BYTEA_ARRAY),
            (&self.alike, Type::BYTEA_ARRAY),
            (&self.content, Type::INT8_ARRAY),
            (&self.open, Type::BOOL_ARRAY),
            (&self.owner, Type::BYTEA_ARRAY),
            (&self.opened_at, Type::INT8_ARRAY),
            (&self.changed_at, Type::INT8_ARRAY),
            (&self.fixed, Type::BYTEA_ARRAY),
            (&self.state, Type::BYTEA_ARRAY),
            (&self.delivery, Type::BYTEA_ARRAY),
            (&self.reply, Type::BYTEA_ARRAY),
        ]
    }
}

impl CellColumns<'_> {
    fn values(&self) -> Values<'_> {
        vec![
            (&self.key, Type::BYTEA_ARRAY),
            (&self.revision, Type::INT8_ARRAY),
            (&self.nonce, Type::BYTEA_ARRAY),
            (&self.body, Type::BYTEA_ARRAY),
        ]
    }
}

impl LineColumns<'_> {
    fn values(&self) -> Values<'_> {
        vec![
            (&self.id, Type::INT8_ARRAY),
            (&self.at, Type::INT8_ARRAY),
            (&self.effect, Type::BYTEA_ARRAY),
            (&self.run, Type::BYTEA_ARRAY),
            (&self.kind, Type::TEXT_ARRAY),
            (&self.data, Type::TEXT_ARRAY),
        ]
    }
}

/// Nothing to write is not sent.
async fn write(client: &Client, sql: &str, values: &[(Value<'_>, Type)], rows: usize) -> Result<(), Error> {
    if rows == 0 { Ok(()) } else { client.query_typed(sql, values).await.map(|_| ()) }
}
