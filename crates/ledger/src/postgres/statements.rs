//! The statements, with the name of the schema in them.

use crate::store::EPOCH_CELL;
use semel_core::digest::Digest;

/// A transaction writes at most so many rows, and so many lines: an id has 48 bits of its number, and 16 for these.
pub(super) const IDS_MAX: usize = 1 << 16;

/// Statements are not prepared by name: a pooler that shares connections between transactions would mix them up. Those of
/// every claim call functions of the schema, whose plans the server keeps.
#[derive(Debug, Clone)]
pub(super) struct Sql {
    /// Ready to stand in a statement.
    pub(super) schema: String,
    /// Where news is told.
    pub(super) channel: String,
    lock_salt: u64,
    pub(super) read: String,
    pub(super) cards: String,
    pub(super) cell: String,
    pub(super) cell_keys: String,
    pub(super) occurrence: String,
    pub(super) reply: String,
    pub(super) revisions: String,
    pub(super) journal: String,
    pub(super) newest_lines: String,
    pub(super) newest_ended_lines: String,
    pub(super) begin: String,
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

/// In the order of [`super::columns::row`].
pub(super) const ROW: &str = "e.id, e.key, e.ordinal, e.revision, e.nonce, e.effect, e.run, e.family, e.alike, e.content, \
                              e.open, e.owner, e.opened_at, e.changed_at, e.fixed, e.state, e.delivery";

/// In the order of [`super::columns::line`].
const LINE: &str = "id, at, effect, run, kind, data";

/// A schema may be named like a word of SQL. It has no quotes of its own: see `PostgresAddress`.
pub(super) fn quote(schema: &str) -> String {
    format!("\"{schema}\"")
}

impl Sql {
    pub(super) fn new(schema: &str) -> Sql {
        let s = quote(schema);
        let call = |function: &str, parameters: usize| {
            let places: Vec<String> = (1..=parameters).map(|place| format!("${place}")).collect();
            format!("SELECT {s}.{function}({})", places.join(", "))
        };
        let ended = format!(
            "id < (SELECT id_base FROM {s}.meta) + (pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 16)"
        );
        Sql {
            schema: s.clone(),
            channel: format!("semel_{schema}"),
            lock_salt: Digest::of(&[b"semel advisory lock", schema.as_bytes()]).short(),
            read: format!("SELECT * FROM {s}.newest($1, '\\x{EPOCH_CELL}')"),
            cards: format!("SELECT * FROM {s}.cards($1, $2, $3)"),
            cell: format!("SELECT revision, body FROM {s}.cell WHERE key = $1"),
            cell_keys: format!("SELECT key FROM {s}.cell WHERE key > $1 ORDER BY key LIMIT $2"),
            occurrence: format!("SELECT {ROW} FROM {s}.effect e WHERE key = $1 AND ordinal = $2"),
            reply: format!("SELECT reply FROM {s}.effect WHERE key = $1 AND ordinal = $2"),
            revisions: format!(
                "SELECT w.key, greatest((SELECT e.revision FROM {s}.effect e WHERE e.key = w.key ORDER BY e.ordinal DESC \
                 LIMIT 1), (SELECT c.revision FROM {s}.cell c WHERE c.key = w.key), 0) FROM unnest($1) w(key)"
            ),
            // Transactions below the oldest running one have all ended: what commits later has a higher id.
            journal: format!("SELECT {LINE}, {ended} FROM {s}.journal WHERE id > $1 ORDER BY id LIMIT $2"),
            newest_lines: format!("SELECT {LINE}, {ended} FROM {s}.journal ORDER BY id DESC LIMIT $1"),
            newest_ended_lines: format!(
                "SELECT {LINE} FROM {s}.journal WHERE {ended} ORDER BY id DESC LIMIT $1"
            ),
            begin: format!("SELECT * FROM {s}.begin_batch($1, $2, $3, $4)"),
            heads: format!("SELECT * FROM {s}.heads($1)"),
            rows: format!("SELECT * FROM {s}.rows_at($1, $2)"),
            cells: format!("SELECT * FROM {s}.cells($1)"),
            relatives: format!("SELECT * FROM {s}.open_relatives($1, $2)"),
            alike: format!("SELECT * FROM {s}.seen_alike($1, $2, $3)"),
            insert: call("add_rows", 18),
            overwrite: call("overwrite_rows", 17),
            forget: call("forget_rows", 1),
            drop_replies: call("drop_replies", 1),
            forget_cells: call("forget_cells", 1),
            put_cells: call("put_cells", 4),
            journal_lines: call("add_lines", 6),
        }
    }

    /// The number that is locked for a row or cell. Two digests may share one: then two commits wait for each other that
    /// need not. The schema is in it, so that ledgers in one database do not.
    pub(super) fn lock_number(&self, digest: Digest) -> i64 {
        (digest.short() ^ self.lock_salt).cast_signed()
    }
}
