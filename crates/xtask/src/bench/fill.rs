//! Fills a ledger in minutes instead of hours: one effect is made by the gate, the others are copies of its row, with
//! the reply that stands in it, under keys of their own, inserted in the order and into the trees that the gate would
//! have used. The journal is left short: it is only ever appended to, and no call reads it.

use super::house::{House, KeySource, TENANT, caller_key};
use super::measure::now;
use crate::project::Result;
use rusqlite::Connection;
use rusqlite::types::Value;
use semel_core::digest::{Digest, Secret};
use semel_core::identity::{IntentDigest, IntentParts, family_key, intent_key};
use std::fs::File;
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// Rows in one transaction: few enough to stay in memory.
const BATCH: u64 = 100_000;

#[derive(Debug)]
pub struct Filled {
    file: PathBuf,
    secret: Secret,
    effects: u64,
}

impl Filled {
    /// The series of caller keys that its effects answer to, from 0 on.
    pub const SERIES: &str = "filled";

    /// A new ledger with its first effect.
    pub fn found(file: &Path, runtime: &Runtime) -> Result<Filled> {
        let house = House::open(file)?;
        let intent = house.intent(KeySource::Key, Self::SERIES, 0);
        let passed = runtime.block_on(house.fresh(&intent));
        runtime.block_on(house.gate.delivered(&passed.delivery.expect("a success can be delivered")))?;
        let secret = house.gate.ledger.secret().clone();
        assert_eq!(
            keys(&secret, 0),
            (intent.key, intent.family),
            "the copies get the keys that calls will have"
        );
        Ok(Filled { file: file.to_owned(), secret, effects: 1 })
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    pub fn effects(&self) -> u64 {
        self.effects
    }

    /// Adds copies until there are so many effects.
    pub fn fill(&mut self, effects: u64) -> Result<()> {
        let started = now();
        let connection = Connection::open(&self.file)?;
        // A ledger that is lost here is filled again, so nothing is flushed before the end.
        connection.execute_batch(
            "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-1500000;",
        )?;
        let effect = RowTemplate::read(&connection, "effect", "id = 1")?;
        let first: Vec<u8> = effect.value("effect")?;
        let first = u128::from_be_bytes(first.try_into().map_err(|_| "an effect id has 16 bytes")?);
        while self.effects < effects {
            connection.execute_batch("BEGIN")?;
            let end = effects.min(self.effects + BATCH);
            for n in self.effects..end {
                let (key, family) = keys(&self.secret, n);
                let id = first + u128::from(n);
                let id = Value::Blob(id.to_be_bytes().to_vec());
                let (key, family) = (Value::Blob(key.0.to_vec()), Value::Blob(family.0.to_vec()));
                effect.insert(
                    &connection,
                    &[("id", Value::Null), ("key", key), ("effect", id), ("family", family)],
                )?;
            }
            connection.execute_batch("COMMIT")?;
            self.effects = end;
        }
        connection.execute_batch("PRAGMA journal_mode=WAL;")?;
        drop(connection);
        File::open(&self.file)?.sync_all()?;
        let bytes = std::fs::metadata(&self.file)?.len();
        eprintln!("bench size: {effects} effects, {} MB, filled in {:.0?}", bytes >> 20, started.elapsed());
        Ok(())
    }
}

fn keys(secret: &Secret, n: u64) -> (Digest, Digest) {
    let digest = IntentDigest::of_caller_key(&caller_key(Filled::SERIES, n));
    let parts = IntentParts { tenant: TENANT, principal: TENANT, authority: "", scope: "global" };
    (intent_key(secret, &parts, &digest), family_key(secret, &parts, &digest))
}

/// One row, whatever its columns are, to be inserted again with some of them changed.
#[derive(Debug)]
struct RowTemplate {
    columns: Vec<String>,
    values: Vec<Value>,
    insert: String,
}

impl RowTemplate {
    fn read(connection: &Connection, table: &str, condition: &str) -> Result<RowTemplate> {
        let mut query = connection.prepare(&format!("SELECT * FROM {table} WHERE {condition}"))?;
        let columns: Vec<String> = query.column_names().map(str::to_owned).collect();
        let values = query.query_row([], |row| (0..columns.len()).map(|column| row.get(column)).collect())?;
        let places = vec!["?"; columns.len()].join(", ");
        let insert = format!("INSERT INTO {table}({}) VALUES({places})", columns.join(", "));
        Ok(RowTemplate { columns, values, insert })
    }

    fn value(&self, column: &str) -> Result<Vec<u8>> {
        let place = self.columns.iter().position(|name| name == column);
        match place.map(|place| &self.values[place]) {
            Some(Value::Blob(bytes)) => Ok(bytes.clone()),
            _ => Err(format!("there are no bytes in column {column}").into()),
        }
    }

    fn insert(&self, connection: &Connection, changes: &[(&str, Value)]) -> Result<()> {
        let changed =
            |name: &String| changes.iter().find(|(column, _)| column == name).map(|(_, value)| value);
        let values =
            self.columns.iter().zip(&self.values).map(|(name, value)| changed(name).unwrap_or(value));
        connection.prepare_cached(&self.insert)?.execute(rusqlite::params_from_iter(values))?;
        Ok(())
    }
}
