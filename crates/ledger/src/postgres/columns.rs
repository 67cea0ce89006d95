//! Values of the ledger as columns, and back; and the statements, with the name of the schema in them.

use crate::precondition::{LastWrite, RowHead};
use crate::store::{Cursor, Index, JournalLine, Nonce, OwnerId, Revision, Row};
use semel_core::digest::Digest;
use semel_core::time::At;
use tokio_postgres::Row as Found;

/// The ids of one transaction begin here. 48 bits of transactions, and 16 for what one of them writes.
pub(super) const FIRST_ID: &str = "(pg_current_xact_id()::text::bigint << 16)";

/// A transaction writes at most so many rows, and so many lines.
pub(super) const IDS_MAX: usize = 1 << 16;

/// Statements are not prepared by name: a pooler that shares connections between transactions would mix them up.
#[derive(Debug, Clone)]
pub(super) struct Sql {
    pub(super) schema: String,
    pub(super) read: String,
    pub(super) cell: String,
    pub(super) reply: String,
    pub(super) revision: String,
    pub(super) journal: String,
    pub(super) newest_line: String,
    pub(super) place: String,
    pub(super) heads: String,
    pub(super) rows: String,
    pub(super) cells: String,
    pub(super) relatives: String,
    pub(super) alike: String,
    pub(super) insert: String,
    pub(super) overwrite: String,
    pub(super) forget: String,
    pub(super) drop_replies: String,
    pub(super) put_cells: String,
    pub(super) journal_lines: String,
}

/// In the order of [`head`].
const HEAD: &str = "e.id, e.key, e.ordinal, e.revision, e.nonce, e.effect, e.run, e.family, e.alike, e.open, e.owner, \
                    e.opened_at, e.changed_at";

/// In the order of [`row`].
pub(super) const ROW: &str = "e.id, e.key, e.ordinal, e.revision, e.nonce, e.effect, e.run, e.family, e.alike, e.open, \
                              e.owner, e.opened_at, e.changed_at, e.body";

/// A write that touched another number of rows than it was checked for ends its transaction, by a division by zero.
fn exactly(write: &str, count: &str) -> String {
    format!("WITH written AS ({write} RETURNING 1) SELECT 1 / (count(*) = {count})::int FROM written")
}

impl Sql {
    pub(super) fn new(schema: &str, epoch: Digest) -> Sql {
        let s = schema;
        let epoch = format!("(SELECT revision FROM {s}.cell WHERE key = '\\x{epoch}')");
        Sql {
            schema: s.to_owned(),
            read: format!(
                "SELECT {ROW}, e.reply, {epoch} FROM (SELECT 1) one LEFT JOIN LATERAL (SELECT * FROM {s}.effect \
                 WHERE key = $1 ORDER BY ordinal DESC LIMIT 1) e ON true"
            ),
            cell: format!("SELECT revision, body FROM {s}.cell WHERE key = $1"),
            reply: format!("SELECT reply FROM {s}.effect WHERE key = $1 AND ordinal = $2"),
            revision: format!(
                "SELECT greatest((SELECT revision FROM {s}.effect WHERE key = $1 ORDER BY ordinal DESC LIMIT 1), \
                 (SELECT revision FROM {s}.cell WHERE key = $1), 0)"
            ),
            // Transactions below the oldest running one have all ended: what commits later has a higher id.
            journal: format!(
                "SELECT id, at, effect, run, kind, data FROM {s}.journal WHERE id > $1 AND id < \
                 (SELECT id_base FROM {s}.meta) + (pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 16) \
                 ORDER BY id LIMIT $2"
            ),
            newest_line: format!(
                "SELECT id, at, effect, run, kind, data FROM {s}.journal ORDER BY id DESC LIMIT 1"
            ),
            place: format!(
                "SELECT id_base + {FIRST_ID}, timeline = {} FROM {s}.meta",
                super::lineage::TIMELINE
            ),
            heads: format!(
                "SELECT {HEAD} FROM unnest($1::bytea[]) wanted CROSS JOIN LATERAL (SELECT * FROM {s}.effect \
                 WHERE key = wanted ORDER BY ordinal DESC LIMIT 1) e"
            ),
            rows: format!(
                "SELECT {HEAD} FROM unnest($1::bytea[], $2::int[]) wanted(key, ordinal) \
                 JOIN {s}.effect e ON e.key = wanted.key AND e.ordinal = wanted.ordinal"
            ),
            cells: format!("SELECT key, revision, nonce FROM {s}.cell WHERE key = ANY($1)"),
            relatives: format!(
                "SELECT wanted.family, e.key FROM unnest($1::bytea[], $2::bytea[]) wanted(family, except) \
                 CROSS JOIN LATERAL (SELECT key FROM {s}.effect WHERE open AND family = wanted.family \
                 AND key IS DISTINCT FROM wanted.except LIMIT 1) e"
            ),
            alike: format!(
                "SELECT wanted, newest.id, newest.revisions, open.ids FROM unnest($1::bytea[]) wanted \
                 CROSS JOIN LATERAL (SELECT max(id) AS id, coalesce(sum(revision), 0)::bigint AS revisions FROM \
                 (SELECT id, revision FROM {s}.effect WHERE alike = wanted ORDER BY id DESC LIMIT $2) n) newest \
                 CROSS JOIN LATERAL (SELECT coalesce(sum(id), 0)::text AS ids FROM \
                 (SELECT id FROM {s}.effect WHERE alike = wanted AND open ORDER BY id DESC LIMIT $3) o) open"
            ),
            insert: format!(
                "INSERT INTO {s}.effect (id, key, ordinal, revision, nonce, effect, run, family, alike, open, owner, \
                 opened_at, changed_at, body, reply) SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::int[], \
                 $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bool[], \
                 $11::bytea[], $12::bigint[], $13::bigint[], $14::bytea[], $15::bytea[])"
            ),
            overwrite: exactly(
                &format!(
                    "UPDATE {s}.effect e SET revision = n.revision, nonce = n.nonce, effect = n.effect, run = n.run, \
                     family = n.family, alike = n.alike, open = n.open, owner = n.owner, opened_at = n.opened_at, \
                     changed_at = n.changed_at, body = n.body, \
                     reply = CASE WHEN n.keeps_reply THEN e.reply ELSE n.reply END \
                     FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], \
                     $7::bytea[], $8::bool[], $9::bytea[], $10::bigint[], $11::bigint[], $12::bytea[], $13::bytea[], \
                     $14::bool[]) n(id, revision, nonce, effect, run, family, alike, open, owner, opened_at, \
                     changed_at, body, reply, keeps_reply) WHERE e.id = n.id AND e.revision = n.revision - 1"
                ),
                "cardinality($1)",
            ),
            forget: format!("DELETE FROM {s}.effect WHERE id = ANY($1)"),
            drop_replies: format!("UPDATE {s}.effect SET reply = NULL WHERE id = ANY($1)"),
            put_cells: exactly(
                &format!(
                    "INSERT INTO {s}.cell AS old (key, revision, nonce, body) \
                     SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::bytea[]) \
                     ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, nonce = excluded.nonce, \
                     body = excluded.body WHERE old.revision = excluded.revision - 1"
                ),
                "cardinality($1)",
            ),
            journal_lines: format!(
                "INSERT INTO {s}.journal (id, at, effect, run, kind, data) SELECT * FROM unnest($1::bigint[], \
                 $2::bigint[], $3::bytea[], $4::bytea[], $5::text[], $6::text[])"
            ),
        }
    }
}

pub(super) fn micros(at: At) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

pub(super) fn digest(found: &Found, column: usize) -> Digest {
    Digest(fixed(found.get(column)))
}

fn optional_digest(found: &Found, column: usize) -> Option<Digest> {
    found.get::<_, Option<&[u8]>>(column).map(|bytes| Digest(fixed(bytes)))
}

pub(super) fn nonce(found: &Found, column: usize) -> Nonce {
    Nonce(u128::from_be_bytes(fixed(found.get(column))))
}

/// A value of another length was written by somebody else; it equals nothing of ours.
fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0xff; N])
}

pub(super) fn revision(found: &Found, column: usize) -> Revision {
    Revision(found.get::<_, Option<i64>>(column).unwrap_or(0).cast_unsigned())
}

pub(super) fn cursor(found: &Found, column: usize) -> Cursor {
    Cursor(found.get::<_, i64>(column).cast_unsigned())
}

fn index(found: &Found) -> Index {
    Index {
        effect: u128::from_be_bytes(fixed(found.get(5))),
        run: optional_digest(found, 6),
        family: digest(found, 7),
        alike: optional_digest(found, 8),
        open: found.get(9),
        owner: found.get::<_, Option<&[u8]>>(10).map(|id| OwnerId(u128::from_be_bytes(fixed(id)))),
        opened_at: At(found.get::<_, i64>(11).cast_unsigned()),
        changed_at: At(found.get::<_, i64>(12).cast_unsigned()),
    }
}

pub(super) fn head(found: &Found) -> (Digest, RowHead) {
    let last_write = LastWrite { revision: revision(found, 3), nonce: nonce(found, 4) };
    let head = RowHead {
        id: found.get::<_, i64>(0).cast_unsigned(),
        ordinal: found.get::<_, i32>(2).cast_unsigned(),
        last_write,
        index: index(found),
        reply_apart: false,
    };
    (digest(found, 1), head)
}

/// A row without its reply.
pub(super) fn row(found: &Found) -> (Cursor, Row) {
    let row = Row {
        key: digest(found, 1),
        ordinal: found.get::<_, i32>(2).cast_unsigned(),
        revision: revision(found, 3),
        index: index(found),
        body: found.get(13),
        reply: None,
    };
    (cursor(found, 0), row)
}

pub(super) fn line(found: &Found) -> (Cursor, JournalLine) {
    let line = JournalLine {
        at: At(found.get::<_, i64>(1).cast_unsigned()),
        effect: found.get::<_, Option<&[u8]>>(2).map(|id| u128::from_be_bytes(fixed(id))),
        run: optional_digest(found, 3),
        kind: found.get(4),
        data: found.get(5),
    };
    (cursor(found, 0), line)
}
