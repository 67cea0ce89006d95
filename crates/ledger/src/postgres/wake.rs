//! Waiting for a change. Callers of this process are woken directly, those of others by `NOTIFY`, which is sent after the
//! commit: inside it, it would take a lock of the whole server. It may get lost; polling is the truth.

use super::address::PostgresAddress;
use super::connect::connect;
use super::statements::Sql;
use crate::precondition::moved;
use crate::store::{Commit, Revision};
use semel_core::digest::Digest;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

/// Without a message a waiter looks again after so long.
pub(super) const POLL: Duration = Duration::from_millis(250);

/// After the listener's connection has broken.
const RECONNECT: Duration = Duration::from_secs(1);

/// A message of `NOTIFY` has fewer than 8,000 bytes; a key takes 17 of them.
const KEYS_PER_MESSAGE: usize = 400;

/// More news than this is dropped while the listener is away: those who wait poll.
const NEWS_MAX: usize = 10_000;

/// Who waits in this process, and the news for others. Keys are known by their first bytes.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    waiting: Mutex<HashMap<u64, Weak<Notify>>>,
    news: Mutex<BTreeSet<u64>>,
    has_news: Notify,
}

impl Waiters {
    /// Told when something under this key, or one that begins alike, may have changed.
    pub(super) fn register(&self, key: Digest) -> Arc<Notify> {
        let mut waiting = lock(&self.waiting);
        if let Some(notify) = waiting.get(&key.short()).and_then(Weak::upgrade) {
            return notify;
        }
        waiting.retain(|_, notify| notify.strong_count() > 0);
        let notify = Arc::new(Notify::new());
        waiting.insert(key.short(), Arc::downgrade(&notify));
        notify
    }

    fn wake(&self, key: u64) {
        if let Some(notify) = lock(&self.waiting).get(&key).and_then(Weak::upgrade) {
            notify.notify_waiters();
        }
    }

    /// Wakes those of this process at once; the listener tells the others. A first claim is news to none of them.
    pub(super) fn announce(&self, landed: &Commit) {
        for (key, revision) in moved(landed) {
            self.wake(key.short());
            let mut news = lock(&self.news);
            if revision != Revision(1) && news.len() < NEWS_MAX {
                news.insert(key.short());
                self.has_news.notify_one();
            }
        }
    }

    /// The next message for others.
    async fn message(&self) -> String {
        loop {
            let keys: Vec<u64> = {
                let mut news = lock(&self.news);
                std::iter::from_fn(|| news.pop_first()).take(KEYS_PER_MESSAGE).collect()
            };
            if !keys.is_empty() {
                let words: Vec<String> = keys.iter().map(|key| format!("{key:016x}")).collect();
                return words.join(" ");
            }
            self.has_news.notified().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens and tells for as long as the store lives.
pub(super) async fn listen(address: PostgresAddress, sql: Arc<Sql>, waiters: Arc<Waiters>) {
    loop {
        if let Ok((client, driver)) = connect(&address).await {
            let hear = driver.drive(|message| {
                if let AsyncMessage::Notification(said) = message {
                    let keys =
                        said.payload().split(' ').filter_map(|word| u64::from_str_radix(word, 16).ok());
                    keys.for_each(|key| waiters.wake(key));
                }
            });
            let tell = async {
                client.batch_execute(&format!("LISTEN {}", sql.channel)).await?;
                loop {
                    let message = waiters.message().await;
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
