//! Who waits in this process. A message that something has moved may get lost; polling is the truth.

use crate::precondition::moved;
use crate::store::Commit;
use semel_core::digest::Digest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// Without a message a waiter looks again after so long.
pub(super) const POLL: Duration = Duration::from_millis(250);

/// After the way to the server has broken, messages are missing for so long.
pub(super) const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// By the first bytes of the key. Two keys that share them wake each other's waiters, who look and wait on.
#[derive(Debug, Default)]
pub(super) struct Waiters(Mutex<HashMap<u64, Weak<Notify>>>);

impl Waiters {
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

    pub(super) fn wake(&self, key: u64) {
        if let Some(notify) = self.lock().get(&key).and_then(Weak::upgrade) {
            notify.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Weak<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys to announce. A first claim is news to nobody.
pub(super) fn news(commit: &Commit) -> impl Iterator<Item = u64> {
    moved(commit).filter(|(_, revision)| revision.0 != 1).map(|(key, _)| key.short())
}
