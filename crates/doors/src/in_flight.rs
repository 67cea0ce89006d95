//! Work in flight that must not be cut off: calls that were sent, answers that are being marked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, watch};

#[derive(Debug)]
pub struct InFlight {
    counter: Arc<InFlightCounter>,
    given_up: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct InFlightCounter {
    count: AtomicUsize,
    /// Notified whenever the last of them has ended.
    ended: Notify,
}

/// Held while something is in flight.
#[derive(Debug)]
pub struct InFlightGuard(Arc<InFlightCounter>);

impl Default for InFlight {
    fn default() -> Self {
        InFlight { counter: Arc::default(), given_up: watch::channel(false).0 }
    }
}

impl InFlight {
    #[must_use]
    pub fn begin(&self) -> InFlightGuard {
        self.counter.count.fetch_add(1, Ordering::SeqCst);
        InFlightGuard(Arc::clone(&self.counter))
    }

    /// How many are in flight.
    pub fn count(&self) -> usize {
        self.counter.count.load(Ordering::SeqCst)
    }

    /// Waits until nothing is in flight.
    pub async fn idle(&self) {
        loop {
            // Registered before the look, so that an end between look and wait is not missed.
            let ended = self.counter.ended.notified();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Work that is still in flight is not waited for any more.
    pub fn give_up(&self) {
        self.given_up.send_replace(true);
    }

    /// Resolves once that is so.
    pub async fn given_up(&self) {
        let mut given_up = self.given_up.subscribe();
        let _open = given_up.wait_for(|given_up| *given_up).await.is_ok();
    }
}

impl Drop for InFlightGuard {
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
    async fn waiting_for_idle_ends_with_the_last_one() {
        let in_flight = InFlight::default();
        in_flight.idle().await;
        let (first, second) = (in_flight.begin(), in_flight.begin());
        let mut idle = std::pin::pin!(in_flight.idle());
        let mut context = Context::from_waker(Waker::noop());
        assert!(idle.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert!(idle.as_mut().poll(&mut context).is_pending());
        assert_eq!(in_flight.count(), 1);
        drop(second);
        idle.await;
    }
}
