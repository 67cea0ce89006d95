//! Answers on their way out. A client may call again the moment it has its answer, before that answer is marked as
//! delivered. The next call waits for the mark, so that a legitimate repeat is not taken for a retry.

use crate::clock::{Clock, within};
use semel_core::digest::Digest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A mark takes a few milliseconds on a busy disk. A client that has not read its answer by then has lost it.
const WAIT_MAX: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Default)]
pub struct PendingDeliveries(Arc<DeliveryTable>);

#[derive(Debug, Default)]
struct DeliveryTable {
    keys: Mutex<HashMap<Digest, usize>>,
    changed: Notify,
    wanted: Notify,
}

/// One answer on its way out. It is marked, or given up, when this is dropped.
#[derive(Debug)]
pub struct PendingDelivery {
    key: Digest,
    of: PendingDeliveries,
}

impl PendingDeliveries {
    pub fn begin(&self, key: Digest) -> PendingDelivery {
        *self.lock().entry(key).or_default() += 1;
        PendingDelivery { key, of: self.clone() }
    }

    /// Waits until no answer of this intent is on its way out, or until it must be lost.
    pub async fn settled(&self, key: Digest, clock: &dyn Clock) {
        // As nearly always, and then without a timer.
        if !self.lock().contains_key(&key) {
            return;
        }
        self.0.wanted.notify_one();
        let settled = async {
            loop {
                let changed = self.0.changed.notified();
                if !self.lock().contains_key(&key) {
                    return;
                }
                changed.await;
            }
        };
        let _lost = within(settled, clock.sleep(WAIT_MAX)).await;
    }

    /// Resolves when a call waits for a mark.
    pub async fn wanted(&self) {
        self.0.wanted.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, usize>> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PendingDelivery {
    fn drop(&mut self) {
        let mut keys = self.of.lock();
        if let Some(count) = keys.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                keys.remove(&self.key);
            }
        }
        drop(keys);
        self.of.0.changed.notify_waiters();
    }
}
