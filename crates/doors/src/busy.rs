//! Work that must not be cut off: calls that were sent, answers that are being marked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, watch};

#[derive(Debug)]
pub struct Busy {
    under_way: Arc<UnderWay>,
    given_up: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct UnderWay {
    count: AtomicUsize,
    /// Told whenever the last of them has ended.
    ended: Notify,
}

/// Held while something is under way.
#[derive(Debug)]
pub struct Working(Arc<UnderWay>);

impl Default for Busy {
    fn default() -> Self {
        Busy { under_way: Arc::default(), given_up: watch::channel(false).0 }
    }
}

impl Busy {
    #[must_use]
    pub fn begin(&self) -> Working {
        self.under_way.count.fetch_add(1, Ordering::SeqCst);
        Working(Arc::clone(&self.under_way))
    }

    /// How much is under way.
    pub fn count(&self) -> usize {
        self.under_way.count.load(Ordering::SeqCst)
    }

    /// Waits until nothing is under way.
    pub async fn rest(&self) {
        loop {
            // It hears of what ends after the look, although it only waits behind it.
            let ended = self.under_way.ended.notified();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// What is still under way is not waited for any more.
    pub fn give_up(&self) {
        self.given_up.send_replace(true);
    }

    /// Resolves once that is so.
    pub async fn given_up(&self) {
        let mut given_up = self.given_up.subscribe();
        let _open = given_up.wait_for(|given_up| *given_up).await.is_ok();
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.ended.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    #[tokio::test]
    async fn whoever_waits_for_rest_hears_of_the_last_end() {
        let busy = Busy::default();
        busy.rest().await;
        let (first, second) = (busy.begin(), busy.begin());
        let mut rest = std::pin::pin!(busy.rest());
        let mut context = Context::from_waker(Waker::noop());
        assert!(rest.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert!(rest.as_mut().poll(&mut context).is_pending());
        assert_eq!(busy.count(), 1);
        drop(second);
        rest.await;
    }
}
