//! One client: the guarded calls that it has under way, and what it has done.

use super::limits::{Limits, Place};
use super::message::Id;
use crate::caller::Caller;
use semel_core::digest::Digest;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Intents whose repeats on this connection keep the longer window. A client that did more loses the oldest.
const DONE_MAX: usize = 10_000;

#[derive(Debug)]
pub struct Connection {
    pub caller: Caller,
    pub limits: Arc<Limits>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: HashMap<Id, Vec<Call>>,
    done: HashSet<Digest>,
}

/// A guarded call that is under way.
#[derive(Debug)]
struct Call {
    waiter: Arc<Waiter>,
    _place: Place,
}

/// The client that waits for the answer of one guarded call.
#[derive(Debug, Default)]
pub struct Waiter {
    progress_token: Option<String>,
    gave_up: AtomicBool,
}

impl Waiter {
    /// The client has cancelled the call, and gets no answer.
    pub fn give_up(&self) {
        self.gave_up.store(true, Ordering::Relaxed);
    }

    pub fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }
}

impl Connection {
    pub fn new(caller: Caller) -> Connection {
        Connection::within(caller, Arc::default())
    }

    /// One of several that have these limits together.
    pub fn within(caller: Caller, limits: Arc<Limits>) -> Connection {
        Connection { caller, limits, state: Mutex::default() }
    }

    /// A guarded call begins. `None`: too many at once.
    pub fn begin(&self, id: &Id, progress_token: Option<String>) -> Option<Arc<Waiter>> {
        let place = self.limits.call().ok()?;
        let waiter = Arc::new(Waiter { progress_token, gave_up: AtomicBool::new(false) });
        let call = Call { waiter: Arc::clone(&waiter), _place: place };
        self.lock().calls.entry(id.clone()).or_default().push(call);
        Some(waiter)
    }

    /// It has ended.
    pub fn end(&self, id: &Id, waiter: &Arc<Waiter>) {
        let mut state = self.lock();
        if let Some(calls) = state.calls.get_mut(id) {
            calls.retain(|call| !Arc::ptr_eq(&call.waiter, waiter));
            if calls.is_empty() {
                state.calls.remove(id);
            }
        }
    }

    /// The client cancels a request. `false`: it is none of the guarded ones.
    pub fn cancelled(&self, id: &Id) -> bool {
        let state = self.lock();
        let Some(calls) = state.calls.get(id) else { return false };
        calls.iter().for_each(|call| call.waiter.give_up());
        true
    }

    /// Whether progress under this token is for somebody who no longer waits.
    pub fn is_abandoned(&self, progress_token: &str) -> bool {
        let state = self.lock();
        let mut waiters = state.calls.values().flatten().map(|call| &call.waiter);
        let mut of_it = waiters
            .by_ref()
            .filter(|waiter| waiter.progress_token.as_deref() == Some(progress_token))
            .peekable();
        // Some clients use one token for all their calls, and somebody may wait again.
        of_it.peek().is_some() && of_it.all(|waiter| waiter.gave_up())
    }

    pub fn is_idle(&self) -> bool {
        self.lock().calls.is_empty()
    }

    /// Remembers that this intent was answered here.
    pub fn did(&self, key: Digest) {
        let mut state = self.lock();
        if state.done.len() >= DONE_MAX {
            state.done.clear();
        }
        state.done.insert(key);
    }

    pub fn has_done(&self, key: Digest) -> bool {
        self.lock().done.contains(&key)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        Connection::new(Caller {
            tenant: "t".into(),
            principal: "p".into(),
            run: None,
            surrounding_run: None,
            token: None,
        })
    }

    #[test]
    fn progress_is_for_nobody_once_all_who_use_its_token_gave_up() {
        let connection = connection();
        let (id, token) = (Id::text("1"), || Some("7".to_owned()));
        let waiter = connection.begin(&id, token()).unwrap();
        assert!(!connection.cancelled(&Id::text("2")) && !connection.is_abandoned("7"));
        assert!(connection.cancelled(&id) && waiter.gave_up());
        assert!(connection.is_abandoned("7") && !connection.is_abandoned("8"));
        let again = connection.begin(&Id::text("3"), token()).unwrap();
        assert!(!connection.is_abandoned("7"), "somebody waits for the same token again");
        connection.end(&Id::text("3"), &again);
        connection.end(&id, &waiter);
        assert!(connection.is_idle());
    }

    #[test]
    fn two_calls_of_one_id_are_two() {
        let connection = connection();
        let id = Id::text("1");
        let [first, second] = [(); 2].map(|()| connection.begin(&id, None).unwrap());
        connection.end(&id, &first);
        assert!(!connection.is_idle());
        connection.end(&id, &second);
        assert!(connection.is_idle());
    }
}
