//! Which history of a database this is. After a failover to a standby that lagged, or a restore, commits may be gone:
//! then a new epoch begins.

use super::columns::{self, micros};
use super::connect::read_committed;
use super::statements::Sql;
use crate::entropy::{OsEntropy, nonce};
use crate::journal;
use crate::small_records::{Epoch, cell_bytes, cell_value};
use crate::store::{Cell, EPOCH_CELL, Revision};
use semel_core::time::At;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

/// Begins a new epoch if this is another history than the ledger was last written in.
pub(super) async fn begin_epoch(client: &mut Client, sql: &Sql) -> Result<(), Error> {
    let same = format!(
        "SELECT (m.system, m.timeline) = (h.system, h.timeline) FROM {0}.meta m, {0}.history() h",
        sql.schema
    );
    if client.query_typed_one(&same, &[]).await?.get(0) {
        return Ok(());
    }
    let transaction = read_committed(client).await?;
    // Every batch holds this lock, shared, from before it reads until it has committed.
    let lock = sql.lock_number(EPOCH_CELL);
    let pin = format!("SET LOCAL synchronous_commit = on; SELECT pg_advisory_xact_lock({lock})");
    transaction.batch_execute(&pin).await?;
    let moved = transaction
        .query_typed_opt(
            &format!(
                "UPDATE {0}.meta m SET system = h.system, timeline = h.timeline, id_base = greatest(id_base, \
                 (SELECT coalesce(max(id), 0) FROM {0}.effect), (SELECT coalesce(max(id), 0) FROM {0}.journal)) \
                 FROM {0}.history() h WHERE (m.system, m.timeline) <> (h.system, h.timeline) \
                 RETURNING (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
                sql.schema
            ),
            &[],
        )
        .await?;
    if let Some(row) = moved {
        let now = At(row.get::<_, i64>(0).cast_unsigned());
        write_epoch(&transaction, sql, now).await?;
    }
    transaction.commit().await
}

async fn write_epoch(transaction: &tokio_postgres::Transaction<'_>, sql: &Sql, now: At) -> Result<(), Error> {
    let key = EPOCH_CELL.0;
    let found = transaction
        .query_typed_opt(
            &format!("SELECT revision, body FROM {}.cell WHERE key = $1 FOR UPDATE", sql.schema),
            &[(&key.as_slice(), Type::BYTEA)],
        )
        .await?;
    let cell = found.map(|row| Cell { revision: columns::revision(&row, 0), body: row.get(1) });
    let previous: Option<Epoch> = cell.as_ref().and_then(|cell| cell_value(EPOCH_CELL, cell));
    let revision = cell.map_or(Revision::ABSENT, |cell| cell.revision).next();
    let reason = "the database has another history than before: a standby took over, or it was restored";
    let epoch = Epoch::after(previous.as_ref(), reason, now);
    let body = cell_bytes(EPOCH_CELL, revision, &epoch);
    let nonce = nonce(&OsEntropy).0.to_be_bytes();
    transaction
        .execute_typed(
            &format!(
                "INSERT INTO {0}.cell (key, revision, nonce, body) VALUES ($1, $4, $2, $3) \
                 ON CONFLICT (key) DO UPDATE SET revision = $4, nonce = $2, body = $3",
                sql.schema
            ),
            &[
                (&key.as_slice(), Type::BYTEA),
                (&nonce.as_slice(), Type::BYTEA),
                (&body, Type::BYTEA),
                (&revision.0.cast_signed(), Type::INT8),
            ],
        )
        .await?;
    let data = serde_json::json!({"number": epoch.number, "reason": reason});
    let line = journal::note("commits_lost", None, None, data, now);
    let at = micros(line.at);
    transaction
        .execute_typed(
            &format!(
                "INSERT INTO {0}.journal (id, at, kind, data) SELECT id_base + (pg_current_xact_id()::text::bigint << 16), $1, $2, $3 \
                 FROM {0}.meta",
                sql.schema
            ),
            &[(&at, Type::INT8), (&line.kind, Type::TEXT), (&line.data, Type::TEXT)],
        )
        .await?;
    Ok(())
}
