//! Tells the other hosts that this process is there, and knows who has fallen silent. The server's clock alone counts.

use super::read::Reader;
use crate::Error;
use semel_core::ids::OwnerId;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_postgres::types::Type;

const BEAT_EVERY: Duration = Duration::from_secs(5);

/// Three beats may be lost before anybody is called silent.
const SILENT_AFTER: &str = "20 seconds";

/// Nobody asks for one who was silent for so long: its attempts are long past their deadlines.
const FORGOTTEN_AFTER: &str = "7 days";

#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    owners: Mutex<BTreeSet<OwnerId>>,
    added: Notify,
}

impl Heartbeat {
    pub(super) fn announce(&self, owner: OwnerId) {
        // Every claim names its holder; only a new one is worth a beat of its own.
        if self.owners.lock().unwrap_or_else(PoisonError::into_inner).insert(owner) {
            self.added.notify_one();
        }
    }

    fn announced(&self) -> Vec<Vec<u8>> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.iter().map(bytes).collect()
    }

    /// A beat that does not get through is a beat lost: that is what the others then see.
    pub(super) async fn run(self: Arc<Self>, reader: Arc<Reader>) {
        loop {
            let _added_or_time_to_beat = timeout(BEAT_EVERY, self.added.notified()).await;
            let owners = self.announced();
            if !owners.is_empty() {
                let _lost = reader.beat(&owners).await;
            }
        }
    }
}

impl Reader {
    async fn beat(&self, owners: &[Vec<u8>]) -> Result<(), Error> {
        let sql = format!(
            "WITH gone AS (DELETE FROM {schema}.holder WHERE beat < now() - interval '{FORGOTTEN_AFTER}') \
             INSERT INTO {schema}.holder SELECT unnest($1), now() ON CONFLICT (owner) DO UPDATE SET beat = now()",
            schema = self.sql.schema
        );
        self.query(&sql, &[(&owners, Type::BYTEA_ARRAY)]).await.map(drop)
    }

    pub(super) async fn silent(&self, owners: &[OwnerId]) -> Result<Vec<OwnerId>, Error> {
        let asked: Vec<Vec<u8>> = owners.iter().map(bytes).collect();
        let sql = format!(
            "SELECT owner FROM {}.holder WHERE owner = ANY($1) AND beat < now() - interval '{SILENT_AFTER}'",
            self.sql.schema
        );
        let found = self.query(&sql, &[(&asked, Type::BYTEA_ARRAY)]).await?;
        let silent: Vec<Vec<u8>> = found.iter().map(|row| row.get(0)).collect();
        Ok(owners.iter().copied().filter(|owner| silent.contains(&bytes(owner))).collect())
    }
}

fn bytes(owner: &OwnerId) -> Vec<u8> {
    owner.0.to_be_bytes().to_vec()
}
