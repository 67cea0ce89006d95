//! Guarded calls that are under way, by their caller and the id that it gave them. A call that was sent is finished
//! (rule 12), so a cancel of one of these goes no further.

use super::id::Id;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct GuardedCalls(Mutex<WaitersByCall>);

type WaitersByCall = HashMap<(String, Id), Vec<Arc<Waiter>>>;

/// The client that waits for the answer of one guarded call.
#[derive(Debug, Default)]
pub struct Waiter {
    progress_token: Option<String>,
    gave_up: AtomicBool,
}

impl Waiter {
    /// Whether the client has cancelled the call: then it gets no answer.
    pub fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }
}

impl GuardedCalls {
    pub fn begin(&self, whose: String, id: &Id, progress_token: Option<String>) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter { progress_token, gave_up: AtomicBool::new(false) });
        self.lock().entry((whose, id.clone())).or_default().push(Arc::clone(&waiter));
        waiter
    }

    pub fn end(&self, whose: String, id: &Id, waiter: &Arc<Waiter>) {
        let mut all = self.lock();
        let name = (whose, id.clone());
        let Some(waiters) = all.get_mut(&name) else { return };
        waiters.retain(|other| !Arc::ptr_eq(other, waiter));
        if waiters.is_empty() {
            all.remove(&name);
        }
    }

    /// Its client has cancelled it. `false`: it is none of these.
    pub fn give_up(&self, whose: &str, id: &Id) -> bool {
        let all = self.lock();
        let Some(waiters) = all.get(&(whose.to_owned(), id.clone())) else { return false };
        waiters.iter().for_each(|waiter| waiter.gave_up.store(true, Ordering::Relaxed));
        true
    }

    pub fn has(&self, whose: &str, id: &Id) -> bool {
        self.lock().contains_key(&(whose.to_owned(), id.clone()))
    }

    /// Whether progress under this token is for a client that no longer waits. Some use one token for all their calls.
    pub fn is_abandoned(&self, progress_token: &str) -> bool {
        let all = self.lock();
        let mut of_it = all
            .values()
            .flatten()
            .filter(|it| it.progress_token.as_deref() == Some(progress_token))
            .peekable();
        of_it.peek().is_some() && of_it.all(|waiter| waiter.gave_up())
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, WaitersByCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(calls: &GuardedCalls, id: &Id, token: Option<&str>) -> Arc<Waiter> {
        calls.begin("ann".into(), id, token.map(str::to_owned))
    }

    #[test]
    fn progress_is_for_nobody_once_all_who_use_its_token_gave_up() {
        let (calls, id, third) = (GuardedCalls::default(), Id::text("1"), Id::text("3"));
        let waiter = begin(&calls, &id, Some("7"));
        assert!(
            !calls.give_up("ann", &Id::text("2")) && !calls.give_up("bob", &id) && !calls.is_abandoned("7")
        );
        assert!(calls.give_up("ann", &id) && waiter.gave_up());
        assert!(calls.is_abandoned("7") && !calls.is_abandoned("8"));
        let again = begin(&calls, &third, Some("7"));
        assert!(!calls.is_abandoned("7"), "another waits for the same token");
        calls.end("ann".into(), &third, &again);
        calls.end("ann".into(), &id, &waiter);
        assert!(calls.is_empty());
    }

    #[test]
    fn a_call_is_under_way_until_the_last_of_its_name_has_ended() {
        let (calls, id) = (GuardedCalls::default(), Id::text("1"));
        let [first, second] = [(); 2].map(|()| begin(&calls, &id, None));
        calls.end("ann".into(), &id, &first);
        assert!(calls.has("ann", &id) && !calls.has("bob", &id));
        calls.end("ann".into(), &id, &second);
        assert!(!calls.has("ann", &id) && calls.is_empty());
    }
}
