//! Answers on their way out. The next call of a client may come the moment it has its answer, and before that answer is
//! marked as delivered; it then waits for the mark, so that a legitimate repeat is not taken for a retry.

use semel_core::digest::Digest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A mark takes a few milliseconds on a busy disk. A client that has not read its answer by then has lost it.
const WAIT_MAX: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Default)]
pub struct Leaving(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    keys: Mutex<HashMap<Digest, usize>>,
    changed: Notify,
    wanted: Notify,
}

/// One answer that is leaving; it has left, or is given up, when this is dropped.
#[derive(Debug)]
pub struct Left {
    key: Digest,
    of: Leaving,
}

impl Leaving {
    pub fn begin(&self, key: Digest) -> Left {
        *self.lock().entry(key).or_default() += 1;
        Left { key, of: self.clone() }
    }

    /// Waits until no answer of this intent is on its way out, or until it must be lost.
    pub async fn gone(&self, key: Digest) {
        // As nearly always, and then without a timer.
        if !self.lock().contains_key(&key) {
            return;
        }
        let _lost = tokio::time::timeout(WAIT_MAX, async {
            self.0.wanted.notify_one();
            loop {
                let changed = self.0.changed.notified();
                if !self.lock().contains_key(&key) {
                    return;
                }
                changed.await;
            }
        })
        .await;
    }

    /// Resolves when somebody waits for a mark.
    pub async fn somebody_waits(&self) {
        self.0.wanted.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, usize>> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Left {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_comes_next_waits_for_the_mark() {
        let leaving = Leaving::default();
        let key = Digest::of(&[b"k"]);
        leaving.gone(key).await;
        let left = leaving.begin(key);
        let waiting = tokio::spawn({
            let leaving = leaving.clone();
            async move { leaving.gone(key).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(left);
        waiting.await.unwrap();
    }
}
