//! Nobody takes all the room: whoever opens streams without end leaves some to the others.

use super::credential::Holder;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tenant and subject.
type RequestCounts = HashMap<(String, String), usize>;

/// Requests under way of whoever was given a token, streams included. The operator's own is not counted.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    taken: Arc<Mutex<RequestCounts>>,
    each_max: usize,
}

/// One request's part of what its holder may have, until it is dropped.
#[derive(Debug)]
pub struct Share {
    taken: Arc<Mutex<RequestCounts>>,
    whose: (String, String),
}

impl Shares {
    /// Of so many requests one holder has at most three quarters.
    pub(super) fn of(requests: usize) -> Shares {
        Shares { taken: Arc::default(), each_max: requests - requests / 4 }
    }

    /// `None`: the holder has all that it may.
    pub(super) fn take(&self, holder: &Holder) -> Option<Share> {
        let whose = (holder.tenant.clone(), holder.subject.clone());
        let mut taken = lock(&self.taken);
        let count = taken.entry(whose.clone()).or_default();
        (*count < self.each_max).then(|| {
            *count += 1;
            Share { taken: Arc::clone(&self.taken), whose }
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Entry::Occupied(mut count) = taken.entry(std::mem::take(&mut self.whose)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// A count is whole after each step, whoever panicked in between.
fn lock(taken: &Mutex<RequestCounts>) -> MutexGuard<'_, RequestCounts> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_ledger::tokens::AccessScope;

    fn holder(subject: &str) -> Holder {
        Holder { tenant: "acme".into(), subject: subject.into(), scope: AccessScope::Agent }
    }

    #[test]
    fn one_holder_leaves_room_for_others_and_gets_its_own_back() {
        let shares = Shares::of(8);
        let mut held: Vec<Share> = (0..6).map_while(|_| shares.take(&holder("greedy"))).collect();
        assert_eq!(held.len(), 6);
        assert!(shares.take(&holder("greedy")).is_none(), "three quarters are all that it gets");
        assert!(shares.take(&holder("modest")).is_some());
        held.pop();
        assert!(shares.take(&holder("greedy")).is_some());
        drop(held);
        assert!(lock(&shares.taken).is_empty(), "what nobody holds is not remembered");
    }

    #[test]
    fn however_little_room_there_is_somebody_gets_in() {
        assert!(Shares::of(1).take(&holder("one")).is_some());
    }
}
