//! The tables: migrations in order, each in a transaction of its own.

use super::address::PostgresAddress;
use super::connect::{explain, read_committed};
use super::lineage;
use super::statements::quote;
use crate::Error;
use semel_core::digest::Secret;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// What each migration leads to is its place in this list, from 1.
const MIGRATIONS: [&str; 1] = [include_str!("../../migrations/postgres/0001_ledger.sql")];

/// The stored form that this code writes.
pub const FORMAT: i32 = MIGRATIONS.len() as i32;

/// Two processes that come at once must not both found the ledger.
const FOUNDING_LOCK: i64 = 0x0073_656d_656c;

/// Makes the tables that are missing, and gives the ledger's secret. `fresh` becomes the secret of a new ledger.
pub(super) async fn migrate(
    client: &mut Client,
    address: &PostgresAddress,
    fresh: [u8; 32],
) -> Result<Secret, Error> {
    let refused =
        |error: tokio_postgres::Error| Error::Engine { ledger: address.to_string(), what: explain(&error) };
    let schema = &quote(&address.schema);
    if let Some((FORMAT, secret)) = stored(client, schema).await.map_err(refused)? {
        return read_secret(address, secret);
    }
    let transaction = read_committed(client).await.map_err(refused)?;
    let found = format!(
        "SELECT pg_advisory_xact_lock({FOUNDING_LOCK}); CREATE SCHEMA IF NOT EXISTS {schema}; SET LOCAL synchronous_commit = on; SET LOCAL search_path = {schema}"
    );
    transaction.batch_execute(&found).await.map_err(refused)?;
    let has = stored(transaction.client(), schema).await.map_err(refused)?.map_or(0, |(format, _)| format);
    if has > FORMAT {
        let what = format!("it has format {has} and this semel understands {FORMAT}; update semel");
        return Err(Error::Engine { ledger: address.to_string(), what });
    }
    for migration in MIGRATIONS.iter().skip(has.cast_unsigned() as usize) {
        transaction.batch_execute(migration).await.map_err(refused)?;
    }
    if has == 0 {
        let insert = format!(
            "INSERT INTO meta (one, format, secret, system, timeline, id_base) \
             SELECT 1, $1, $2, {}, {}, 0",
            lineage::SYSTEM,
            lineage::TIMELINE
        );
        let values: &[(&(dyn tokio_postgres::types::ToSql + Sync), Type)] =
            &[(&FORMAT, Type::INT4), (&fresh.as_slice(), Type::BYTEA)];
        transaction.execute_typed(&insert, values).await.map_err(refused)?;
    } else if has < FORMAT {
        let values: &[(&(dyn tokio_postgres::types::ToSql + Sync), Type)] = &[(&FORMAT, Type::INT4)];
        transaction.execute_typed("UPDATE meta SET format = $1", values).await.map_err(refused)?;
    }
    let kept = stored(transaction.client(), schema).await.map_err(refused)?;
    transaction.commit().await.map_err(refused)?;
    read_secret(address, kept.map(|(_, secret)| secret).unwrap_or_default())
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
    let damaged = |_| Error::Engine { ledger: address.to_string(), what: "its secret is damaged".to_owned() };
    secret.try_into().map(Secret::new).map_err(damaged)
}
