//! Permits for large bodies: a few at once for all, and fewer for each caller, so that none keeps the others out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a large body waits for a permit, and how long it may take until it is whole: a client that trickles keeps
/// others from theirs.
pub const WAIT_MAX: Duration = Duration::from_secs(5);
pub const TIME_MAX: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub struct LargeBodyPermits {
    all: Arc<Semaphore>,
    of_one: usize,
    /// By [`Caller::whose`](crate::caller::Caller::whose), as long as somebody has a turn or waits for one.
    of_each: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// Free again when it is dropped.
#[derive(Debug)]
pub struct LargeBodyPermit {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl LargeBodyPermits {
    pub fn new(for_all: usize, of_one: usize) -> LargeBodyPermits {
        LargeBodyPermits { all: Arc::new(Semaphore::new(for_all)), of_one, of_each: Mutex::default() }
    }

    /// Waits for one. The caller's own comes first: a caller that waits for that is in nobody's way.
    pub async fn take(&self, whose: &str) -> Option<LargeBodyPermit> {
        let own = self.of(whose).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(LargeBodyPermit { _own: own, _of_all: of_all })
    }

    fn of(&self, whose: &str) -> Arc<Semaphore> {
        let mut of_each = self.of_each.lock().unwrap_or_else(PoisonError::into_inner);
        of_each.retain(|_, turns| turns.strong_count() > 0);
        if let Some(turns) = of_each.get(whose).and_then(Weak::upgrade) {
            return turns;
        }
        let turns = Arc::new(Semaphore::new(self.of_one));
        of_each.insert(whose.to_owned(), Arc::downgrade(&turns));
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn one_that_takes_all_it_can_get_leaves_turns_for_others() {
        let turns = LargeBodyPermits::new(3, 2);
        let soon = |whose: &'static str| tokio::time::timeout(Duration::from_secs(1), turns.take(whose));
        let mine = [soon("ann").await, soon("ann").await];
        assert!(soon("ann").await.is_err(), "she has hers");
        let other = soon("bob").await.expect("there is one for him");
        assert!(soon("carl").await.is_err(), "there are no more");
        drop(other);
        assert!(soon("carl").await.is_ok());
        drop(mine);
        assert!(soon("ann").await.is_ok());
        assert_eq!(turns.of_each.lock().unwrap().len(), 1, "who has left is forgotten");
    }
}
