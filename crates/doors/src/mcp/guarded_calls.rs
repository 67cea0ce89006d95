//! Guarded calls that are under way, by whose they are and the id that their client gave them. What was sent is finished
//! (rule 12), so a cancel of one of these goes no further.

use super::id::Id;
use super::permit::Permit;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct GuardedCalls(Mutex<HashMap<(String, Id), Vec<GuardedEntry>>>);

#[derive(Debug)]
struct GuardedEntry {
    waiter: Arc<Waiter>,
    _permit: Permit,
}

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
    pub fn begin(
        &self,
        whose: String,
        id: &Id,
        progress_token: Option<String>,
        permit: Permit,
    ) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter { progress_token, gave_up: AtomicBool::new(false) });
        let call = GuardedEntry { waiter: Arc::clone(&waiter), _permit: permit };
        self.lock().entry((whose, id.clone())).or_default().push(call);
        waiter
    }

    pub fn end(&self, whose: String, id: &Id, waiter: &Arc<Waiter>) {
        let mut all = self.lock();
        let name = (whose, id.clone());
        let Some(calls) = all.get_mut(&name) else { return };
        let ended = calls.iter().position(|call| Arc::ptr_eq(&call.waiter, waiter));
        let ended = ended.map(|at| calls.remove(at));
        if calls.is_empty() {
            all.remove(&name);
        }
        drop(all);
        // Its permit may be the last that keeps the limits, and these with them.
        drop(ended);
    }

    /// Its client has cancelled it. `false`: it is none of these.
    pub fn give_up(&self, whose: &str, id: &Id) -> bool {
        let all = self.lock();
        let Some(calls) = all.get(&(whose.to_owned(), id.clone())) else { return false };
        calls.iter().for_each(|call| call.waiter.gave_up.store(true, Ordering::Relaxed));
        true
    }

    pub fn has(&self, whose: &str, id: &Id) -> bool {
        self.lock().contains_key(&(whose.to_owned(), id.clone()))
    }

    /// Whether progress under this token is for a client that no longer waits. Some use one token for all their calls.
    pub fn is_abandoned(&self, progress_token: &str) -> bool {
        let all = self.lock();
        let waiters = all.values().flatten().map(|call| &call.waiter);
        let mut of_it = waiters.filter(|it| it.progress_token.as_deref() == Some(progress_token)).peekable();
        of_it.peek().is_some() && of_it.all(|waiter| waiter.gave_up())
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Id), Vec<GuardedEntry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::*;

    fn begin(limits: &Arc<Limits>, id: &Id, token: Option<&str>) -> Arc<Waiter> {
        let permit = limits.call().unwrap();
        limits.guarded.begin("ann".into(), id, token.map(str::to_owned), permit)
    }

    #[test]
    fn progress_is_for_nobody_once_all_who_use_its_token_gave_up() {
        let limits = Arc::new(Limits::default());
        let (calls, id, third) = (&limits.guarded, Id::text("1"), Id::text("3"));
        let waiter = begin(&limits, &id, Some("7"));
        assert!(
            !calls.give_up("ann", &Id::text("2")) && !calls.give_up("bob", &id) && !calls.is_abandoned("7")
        );
        assert!(calls.give_up("ann", &id) && waiter.gave_up());
        assert!(calls.is_abandoned("7") && !calls.is_abandoned("8"));
        let again = begin(&limits, &third, Some("7"));
        assert!(!calls.is_abandoned("7"), "another waits for the same token");
        calls.end("ann".into(), &third, &again);
        calls.end("ann".into(), &id, &waiter);
        assert!(calls.is_empty());
    }

    #[test]
    fn a_call_is_under_way_until_the_last_of_its_name_has_ended() {
        let limits = Arc::new(Limits::default());
        let (calls, id) = (&limits.guarded, Id::text("1"));
        let [first, second] = [(); 2].map(|()| begin(&limits, &id, None));
        calls.end("ann".into(), &id, &first);
        assert!(calls.has("ann", &id) && !calls.has("bob", &id));
        calls.end("ann".into(), &id, &second);
        assert!(!calls.has("ann", &id) && calls.is_empty());
    }
}
