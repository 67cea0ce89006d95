//! The tables: migrations in order, each in a transaction of its own.

use super::address::PostgresAddress;
use super::connect::explain;
use super::lineage;
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
    let refused = |error: tokio_postgres::Error| Error::Engine { ledger: address.to_string(), what: explain(&error) };
    let schema = &address.schema;
    let transaction = client.transaction().await.map_err(refused)?;
    let found = format!(
        "SELECT pg_advisory_xact_lock({FOUNDING_LOCK}); CREATE SCHEMA IF NOT EXISTS {schema}; SET LOCAL search_path = {schema}"
    );
    transaction.batch_execute(&found).await.map_err(refused)?;
    let has_meta = transaction
        .query_typed_one("SELECT to_regclass($1) IS NOT NULL", &[(&format!("{schema}.meta"), Type::TEXT)])
        .await
        .map_err(refused)?
        .get::<_, bool>(0);
    let has = match has_meta {
        false => 0,
        true => transaction.query_typed_one("SELECT format FROM meta", &[]).await.map_err(refused)?.get(0),
    };
    if has > FORMAT {
        let what = format!("it has the format {has} of a newer semel; this one writes {FORMAT}. Update semel");
        return Err(Error::Engine { ledger: address.to_string(), what });
    }
    for migration in &MIGRATIONS[has as usize..] {
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
    let row = transaction.query_typed_one("SELECT secret FROM meta", &[]).await.map_err(refused)?;
    let secret: Vec<u8> = row.get(0);
    transaction.commit().await.map_err(refused)?;
    let secret: [u8; 32] = secret.try_into().map_err(|_| Error::Engine {
        ledger: address.to_string(),
        what: "its secret is damaged".to_owned(),
    })?;
    Ok(Secret::new(secret))
}
