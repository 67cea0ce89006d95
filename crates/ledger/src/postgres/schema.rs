//! The tables: the migrations that a ledger has not seen yet, in one transaction.

use super::address::PostgresAddress;
use super::connect::{explain, read_committed};
use super::statements::quote;
use crate::Error;
use semel_core::digest::Secret;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

/// What each migration leads to is its place in this list, from 1.
const MIGRATIONS: [&str; 1] = [include_str!("../../migrations/postgres/0001_ledger.sql")];

/// The stored form that this code writes.
pub(super) const FORMAT: i32 = MIGRATIONS.len() as i32;

/// Two processes that come at once must not both found the ledger.
const FOUNDING_LOCK: i64 = 0x0073_656d_656c;

/// A ledger that is there.
pub(super) struct FoundLedger {
    pub(super) secret: Secret,
    /// A newer semel has written it, in this format. It may be read.
    pub(super) newer: Option<i32>,
}

/// Makes the tables that are missing, unless a newer semel has made others. `fresh` becomes the secret of a new ledger.
pub(super) async fn migrate(
    client: &mut Client,
    address: &PostgresAddress,
    fresh: [u8; 32],
) -> Result<FoundLedger, Error> {
    let found = |(format, secret)| {
        let newer = (format > FORMAT).then_some(format);
        Ok(FoundLedger { secret: read_secret(address, secret)?, newer })
    };
    let refused = |error: tokio_postgres::Error| refuse(address, explain(&error));
    let schema = &quote(&address.schema);
    match stored(client, schema).await.map_err(refused)? {
        Some((format, secret)) if format >= FORMAT => return found((format, secret)),
        _ => {}
    }
    let transaction = read_committed(client).await.map_err(refused)?;
    let begin = format!(
        "SET LOCAL synchronous_commit = on; SELECT pg_advisory_xact_lock({FOUNDING_LOCK}); \
         CREATE SCHEMA IF NOT EXISTS {schema}; SET LOCAL search_path = {schema}"
    );
    transaction.batch_execute(&begin).await.map_err(refused)?;
    let stands = stored(transaction.client(), schema).await.map_err(refused)?;
    let has = match stands {
        Some((format, secret)) if format > FORMAT => return found((format, secret)),
        stands => stands.map_or(0, |(format, _)| format),
    };
    for migration in MIGRATIONS.iter().skip(has.cast_unsigned() as usize) {
        transaction.batch_execute(migration).await.map_err(refused)?;
    }
    if has == 0 {
        let insert = "INSERT INTO meta (one, format, secret, system, timeline, id_base) \
                      SELECT 1, $1, $2, system, timeline, 0 FROM history()";
        let fresh = fresh.as_slice();
        let values: &[(&(dyn ToSql + Sync), Type)] = &[(&FORMAT, Type::INT4), (&fresh, Type::BYTEA)];
        transaction.execute_typed(insert, values).await.map_err(refused)?;
    } else if has < FORMAT {
        let values: &[(&(dyn ToSql + Sync), Type)] = &[(&FORMAT, Type::INT4)];
        transaction.execute_typed("UPDATE meta SET format = $1", values).await.map_err(refused)?;
    }
    let kept = stored(transaction.client(), schema).await.map_err(refused)?;
    transaction.commit().await.map_err(refused)?;
    found(kept.unwrap_or_default())
}

fn refuse(address: &PostgresAddress, what: String) -> Error {
    Error::Engine { ledger: address.to_string(), what }
}

pub(super) fn too_new(format: i32) -> String {
    format!(
        "a newer semel has written it: it has format {format}, and this one writes {FORMAT}; update semel"
    )
}

/// The format and the secret of a ledger that is there.
async fn stored(client: &Client, schema: &str) -> Result<Option<(i32, Vec<u8>)>, tokio_postgres::Error> {
    let meta = format!("{schema}.meta");
    let found = client.query_typed_one("SELECT to_regclass($1) IS NOT NULL", &[(&meta, Type::TEXT)]).await?;
    if !found.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = client.query_typed_opt(&format!("SELECT format, secret FROM {meta}"), &[]).await?;
    Ok(row.map(|row| (row.get(0), row.get(1))))
}

fn read_secret(address: &PostgresAddress, secret: Vec<u8>) -> Result<Secret, Error> {
    let damaged = |_| refuse(address, "its secret is damaged".to_owned());
    secret.try_into().map(Secret::new).map_err(damaged)
}
