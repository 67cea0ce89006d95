//! Guarded calls that are under way, by whoever made them and the id that they gave them. What was sent is finished
//! (rule 12), so a cancel of one of these goes no further; who stands alone, without a session, has no other record.

use super::owner::Owner;
use crate::mcp::connection::Waiter;
use crate::mcp::message::Id;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Calls = HashMap<(Owner, Id), Vec<Arc<Waiter>>>;

#[derive(Debug, Clone, Default)]
pub struct Guarding(Arc<Mutex<Calls>>);

/// One call, until it is dropped.
#[derive(Debug)]
pub struct UnderWay {
    call: (Owner, Id),
    waiter: Arc<Waiter>,
    of: Guarding,
}

impl Guarding {
    pub fn begin(&self, owner: &Owner, id: &Id, waiter: &Arc<Waiter>) -> UnderWay {
        let call = (owner.clone(), id.clone());
        self.lock().entry(call.clone()).or_default().push(Arc::clone(waiter));
        UnderWay { call, waiter: Arc::clone(waiter), of: self.clone() }
    }

    /// A client cancels a request. `false`: it is none of these. Without a session two clients of one principal may
    /// use the same id, so the answer still goes to the one that reads.
    pub fn cancelled(&self, owner: &Owner, id: &Id) -> bool {
        let calls = self.lock();
        let Some(waiters) = calls.get(&(owner.clone(), id.clone())) else { return false };
        if owner.session.is_some() {
            waiters.iter().for_each(|waiter| waiter.give_up());
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut calls = self.of.lock();
        if let Some(waiters) = calls.get_mut(&self.call) {
            waiters.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
            if waiters.is_empty() {
                calls.remove(&self.call);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(principal: &str, session: Option<&str>) -> Owner {
        Owner { principal: principal.into(), session: session.map(str::to_owned) }
    }

    #[test]
    fn a_call_is_under_way_until_the_last_of_its_name_has_ended() {
        let (guarding, id, ann) = (Guarding::default(), Id::text("1"), owner("ann", None));
        let waiter = Arc::<Waiter>::default;
        let (one, two) = (guarding.begin(&ann, &id, &waiter()), guarding.begin(&ann, &id, &waiter()));
        assert!(guarding.cancelled(&ann, &id) && !guarding.cancelled(&ann, &Id::text("2")));
        assert!(!guarding.cancelled(&owner("bob", None), &id));
        drop(one);
        assert!(guarding.cancelled(&ann, &id));
        drop(two);
        assert!(!guarding.cancelled(&ann, &id));
    }

    #[test]
    fn a_cancel_takes_the_answer_of_nobody_else() {
        for (session, keeps_its_answer) in [(None, true), (Some("s"), false)] {
            let (guarding, id, ann) = (Guarding::default(), Id::text("1"), owner("ann", session));
            let waiter = Arc::<Waiter>::default();
            let _under_way = guarding.begin(&ann, &id, &waiter);
            assert!(guarding.cancelled(&ann, &id));
            assert_eq!(!waiter.gave_up(), keeps_its_answer, "{session:?}");
        }
    }
}
