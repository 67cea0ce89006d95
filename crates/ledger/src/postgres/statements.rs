//! The statements, with the name of the schema in them.

use super::lineage::{SYSTEM, TIMELINE};
use crate::store::EPOCH_CELL;
use semel_core::digest::Digest;

/// The ids of one transaction begin here. 48 bits of transactions, and 16 for what one of them writes.
pub(super) const FIRST_ID: &str = "(pg_current_xact_id()::text::bigint << 16)";

/// A transaction writes at most so many rows, and so many lines.
pub(super) const IDS_MAX: usize = 1 << 16;

/// Statements are not prepared by name: a pooler that shares connections between transactions would mix them up.
#[derive(Debug, Clone)]
pub(super) struct Sql {
    /// Ready to stand in a statement.
    pub(super) schema: String,
    /// Where news is told.
    pub(super) channel: String,
    lock_salt: u64,
    pub(super) read: String,
    pub(super) cell: String,
    pub(super) cell_keys: String,
    pub(super) reply: String,
    pub(super) revision: String,
    pub(super) journal: String,
    pub(super) newest_lines: String,
    pub(super) newest_ended_lines: String,
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
    pub(super) forget_cells: String,
    pub(super) journal_lines: String,
}

/// In the order of [`super::columns::head`].
const HEAD: &str = "e.id, e.key, e.ordinal, e.revision, e.nonce, e.effect, e.run, e.family, e.alike, e.open, e.owner, \
                    e.opened_at, e.changed_at";

/// In the order of [`super::columns::row`].
pub(super) const ROW: &str = "e.id, e.key, e.ordinal, e.revision, e.nonce, e.effect, e.run, e.family, e.alike, e.open, \
                              e.owner, e.opened_at, e.changed_at, e.fixed, e.state, e.delivery";

/// In the order of [`super::columns::line`].
const LINE: &str = "id, at, effect, run, kind, data";

/// A write that touched another number of rows than it was checked for ends its transaction, by a division by zero.
fn exactly(write: &str) -> String {
    format!("WITH written AS ({write} RETURNING 1) SELECT 1 / (count(*) = cardinality($1))::int FROM written")
}

/// A schema may be named like a word of SQL. It has no quotes of its own: see `PostgresAddress`.
pub(super) fn quote(schema: &str) -> String {
    format!("\"{schema}\"")
}

impl Sql {
    pub(super) fn new(schema: &str) -> Sql {
        let s = quote(schema);
        let epoch = format!("(SELECT revision FROM {s}.cell WHERE key = '\\x{EPOCH_CELL}')");
        let ended = format!(
            "id < (SELECT id_base FROM {s}.meta) + (pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 16)"
        );
        Sql {
            schema: s.clone(),
            channel: format!("semel_{schema}"),
            lock_salt: Digest::of(&[b"semel advisory lock", schema.as_bytes()]).short(),
            read: format!(
                "SELECT {ROW}, e.reply, {epoch} FROM (SELECT 1) one LEFT JOIN LATERAL (SELECT * FROM {s}.effect \
                 WHERE key = $1 ORDER BY ordinal DESC LIMIT 1) e ON true"
            ),
            cell: format!("SELECT revision, body FROM {s}.cell WHERE key = $1"),
            cell_keys: format!("SELECT key FROM {s}.cell WHERE key > $1 ORDER BY key LIMIT $2"),
            reply: format!("SELECT reply FROM {s}.effect WHERE key = $1 AND ordinal = $2"),
            revision: format!(
                "SELECT greatest((SELECT revision FROM {s}.effect WHERE key = $1 ORDER BY ordinal DESC LIMIT 1), \
                 (SELECT revision FROM {s}.cell WHERE key = $1), 0)"
            ),
            // Transactions below the oldest running one have all ended: what commits later has a higher id.
            journal: format!("SELECT {LINE}, {ended} FROM {s}.journal WHERE id > $1 ORDER BY id LIMIT $2"),
            newest_lines: format!("SELECT {LINE}, {ended} FROM {s}.journal ORDER BY id DESC LIMIT $1"),
            newest_ended_lines: format!(
                "SELECT {LINE} FROM {s}.journal WHERE {ended} ORDER BY id DESC LIMIT $1"
            ),
            place: format!(
                "SELECT id_base + {FIRST_ID}, (system, timeline) = ({SYSTEM}, {TIMELINE}), format FROM {s}.meta"
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
                "SELECT wanted.family, e.key FROM unnest($1::bytea[], $2::bytea[]) wanted(family, own) \
                 CROSS JOIN LATERAL (SELECT key FROM {s}.effect WHERE open AND family = wanted.family \
                 AND key IS DISTINCT FROM wanted.own LIMIT 1) e"
            ),
            alike: format!(
                "SELECT wanted, newest.id, newest.revisions, open.ids FROM unnest($1::bytea[]) wanted \
                 CROSS JOIN LATERAL (SELECT max(id) AS id, coalesce(sum(revision), 0)::bigint AS revisions FROM \
                 (SELECT id, revision FROM {s}.effect WHERE alike = wanted ORDER BY id DESC LIMIT $2) n) newest \
                 CROSS JOIN LATERAL (SELECT coalesce(sum(id), 0)::text AS ids FROM \
                 (SELECT id FROM {s}.effect WHERE alike = wanted AND open ORDER BY id DESC LIMIT $3) o) open"
            ),
            insert: format!(
                "INSERT INTO {s}.effect (key, ordinal, id, revision, nonce, effect, run, family, alike, open, owner, \
                 opened_at, changed_at, fixed, state, delivery, reply) SELECT * FROM unnest($1::bytea[], $2::int[], \
                 $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[], \
                 $10::bool[], $11::bytea[], $12::bigint[], $13::bigint[], $14::bytea[], $15::bytea[], $16::bytea[], \
                 $17::bytea[])"
            ),
            overwrite: exactly(&format!(
                "UPDATE {s}.effect e SET revision = n.revision, nonce = n.nonce, effect = n.effect, run = n.run, \
                     family = n.family, alike = n.alike, open = n.open, owner = n.owner, opened_at = n.opened_at, \
                     changed_at = n.changed_at, fixed = n.fixed, state = n.state, delivery = n.delivery, \
                     reply = CASE WHEN n.keeps_reply THEN e.reply ELSE n.reply END \
                     FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], \
                     $7::bytea[], $8::bool[], $9::bytea[], $10::bigint[], $11::bigint[], $12::bytea[], $13::bytea[], \
                     $14::bytea[], $15::bytea[], $16::bool[]) n(id, revision, nonce, effect, run, family, alike, open, \
                     owner, opened_at, changed_at, fixed, state, delivery, reply, keeps_reply) WHERE e.id = n.id AND e.revision = n.revision - 1"
            )),
            forget: exactly(&format!("DELETE FROM {s}.effect WHERE id = ANY($1)")),
            drop_replies: exactly(&format!("UPDATE {s}.effect SET reply = NULL WHERE id = ANY($1)")),
            forget_cells: exactly(&format!("DELETE FROM {s}.cell WHERE key = ANY($1)")),
            put_cells: exactly(&format!(
                "INSERT INTO {s}.cell AS old (key, revision, nonce, body) \
                     SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::bytea[]) \
                     ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, nonce = excluded.nonce, \
                     body = excluded.body WHERE old.revision = excluded.revision - 1"
            )),
            journal_lines: format!(
                "INSERT INTO {s}.journal (id, at, effect, run, kind, data) SELECT * FROM unnest($1::bigint[], \
                 $2::bigint[], $3::bytea[], $4::bytea[], $5::text[], $6::text[])"
            ),
        }
    }

    /// The number that is locked for a row or cell. Two digests may share one: then two commits wait for each other that
    /// need not. The schema is in it, so that ledgers in one database do not.
    pub(super) fn lock_number(&self, digest: Digest) -> i64 {
        (digest.short() ^ self.lock_salt).cast_signed()
    }
}
