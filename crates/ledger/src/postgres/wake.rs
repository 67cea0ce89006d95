//! Waiting for a change. Callers of this process are woken directly, those of others by `NOTIFY`, which is sent after the
//! commit: inside it, it would take a lock of the whole server. It may get lost; polling is the truth.

use super::address::PostgresAddress;
use super::columns::Sql;
use super::connect::connect;
use crate::precondition::moved;
use crate::store::Commit;
use semel_core::digest::Digest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};

/// Without a message a waiter looks again after so long.
pub(super) const POLL: Duration = Duration::from_millis(250);

/// After the listener's connection has broken.
const RECONNECT: Duration = Duration::from_secs(1);

/// A message of `NOTIFY` has fewer than 8,000 bytes; a key takes 17 of them.
const KEYS_MAX: usize = 400;

/// Who waits in this process, by the first bytes of the key.
#[derive(Debug, Default)]
pub(super) struct Waiters(Mutex<HashMap<u64, Weak<Notify>>>);

impl Waiters {
    /// Told when something under this key, or one that begins alike, may have changed.
    pub(super) fn register(&self, key: Digest) -> Arc<Notify> {
        let mut waiting = self.lock();
        if let Some(notify) = waiting.get(&key.short()).and_then(Weak::upgrade) {
            return notify;
        }
        waiting.retain(|_, notify| notify.strong_count() > 0);
        let notify = Arc::new(Notify::new());
        waiting.insert(key.short(), Arc::downgrade(&notify));
        notify
    }

    fn wake(&self, key: u64) {
        if let Some(notify) = self.lock().get(&key).and_then(Weak::upgrade) {
            notify.notify_waiters();
        }
    }

    /// Wakes those of this process, and tells the others. A first claim is news to nobody.
    pub(super) async fn tell(&self, client: &Client, sql: &Sql, landed: &[&Commit]) {
        let keys: Vec<u64> = landed
            .iter()
            .flat_map(|commit| moved(commit))
            .filter(|(_, revision)| revision.0 != 1)
            .map(|(key, _)| key.short())
            .collect();
        keys.iter().for_each(|key| self.wake(*key));
        for part in keys.chunks(KEYS_MAX) {
            let words: Vec<String> = part.iter().map(|key| format!("{key:016x}")).collect();
            let _lost_if_it_fails = client
                .query_typed(
                    "SELECT pg_notify($1, $2)",
                    &[(&channel(sql), Type::TEXT), (&words.join(" "), Type::TEXT)],
                )
                .await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Weak<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn channel(sql: &Sql) -> String {
    format!("semel_{}", sql.schema)
}

/// Listens for as long as the store lives.
pub(super) async fn listen(address: PostgresAddress, sql: Arc<Sql>, waiters: Arc<Waiters>) {
    loop {
        if let Ok((client, driver)) = connect(&address).await {
            let heard = driver.drive(|message| {
                if let AsyncMessage::Notification(said) = message {
                    let keys = said.payload().split(' ').filter_map(|word| u64::from_str_radix(word, 16).ok());
                    keys.for_each(|key| waiters.wake(key));
                }
            });
            let listens = async {
                let listens = client.batch_execute(&format!("LISTEN {}", channel(&sql))).await;
                if listens.is_ok() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! { () = heard => {}, () = listens => {} }
        }
        tokio::time::sleep(RECONNECT).await;
    }
}
