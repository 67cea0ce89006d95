//! Waiting for a change. Callers of this process are woken directly, those of others by `NOTIFY`, which is sent after the
//! commit: inside it, it would take a lock of the whole server. It may get lost; polling is the truth.

use super::address::PostgresAddress;
use super::connect::connect;
use super::statements::Sql;
use crate::server_io::news;
use crate::store::Commit;
use crate::waiters::Waiters;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

/// After the listener's connection has broken.
const RECONNECT: Duration = Duration::from_secs(1);

/// A message of `NOTIFY` has fewer than 8,000 bytes; a key takes 17 of them.
const KEYS_PER_MESSAGE: usize = 400;

/// More news than this is dropped while the listener is away: those who wait poll.
const NEWS_MAX: usize = 10_000;

/// Those who wait in this process, and the news for others. Keys are known by their first bytes.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) waiters: Arc<Waiters>,
    untold: Mutex<BTreeSet<u64>>,
    has_untold: Notify,
}

impl News {
    /// Wakes those of this process at once; the listener tells the others.
    pub(super) fn announce(&self, landed: &Commit) {
        self.waiters.landed(landed);
        let mut untold = lock(&self.untold);
        let room = NEWS_MAX.saturating_sub(untold.len());
        untold.extend(news(landed).take(room));
        if !untold.is_empty() {
            self.has_untold.notify_one();
        }
    }

    /// The next message for others.
    async fn message(&self) -> String {
        loop {
            let keys: Vec<u64> = {
                let mut untold = lock(&self.untold);
                std::iter::from_fn(|| untold.pop_first()).take(KEYS_PER_MESSAGE).collect()
            };
            if !keys.is_empty() {
                let words: Vec<String> = keys.iter().map(|key| format!("{key:016x}")).collect();
                return words.join(" ");
            }
            self.has_untold.notified().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens and tells for as long as the store lives.
pub(super) async fn listen(address: PostgresAddress, sql: Arc<Sql>, news: Arc<News>) {
    loop {
        if let Ok((client, driver)) = connect(&address).await {
            let hear = driver.drive(|message| {
                if let AsyncMessage::Notification(said) = message {
                    let keys =
                        said.payload().split(' ').filter_map(|word| u64::from_str_radix(word, 16).ok());
                    keys.for_each(|key| news.waiters.announced(key));
                }
            });
            let tell = async {
                client.batch_execute(&format!("LISTEN {}", sql.channel)).await?;
                loop {
                    let message = news.message().await;
                    let values: &[_] = &[(&sql.channel as _, Type::TEXT), (&message as _, Type::TEXT)];
                    client.query_typed("SELECT pg_notify($1, $2)", values).await?;
                }
            };
            let tell = async {
                let _broken: Result<(), tokio_postgres::Error> = tell.await;
            };
            tokio::select! { () = hear => {}, () = tell => {} }
        }
        tokio::time::sleep(RECONNECT).await;
    }
}
