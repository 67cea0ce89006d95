//! One client: what it has asked for, and what it should still be told.

use super::heritage::Elders;
use super::limits::{Limits, Place};
use super::message::Id;
use super::news::News;
use super::waiter::{Begun, Waiter};
use crate::caller::Caller;
use semel_core::digest::Digest;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Intents whose repeats on this connection keep the longer window. A client that did more loses the oldest.
const DONE_MAX: usize = 10_000;

#[derive(Debug)]
pub struct Connection {
    pub caller: Caller,
    /// What its model should be told beside answers.
    pub news: Arc<News>,
    /// Answers may get lost on their way and calls go on in another connection. On pipes neither can be.
    pub is_http: bool,
    pub limits: Arc<Limits>,
    /// On pipes: who stood here before.
    pub elders: Elders,
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

impl Connection {
    pub fn new(caller: Caller) -> Connection {
        Connection { is_http: false, ..Connection::within(caller, Arc::default()) }
    }

    /// One of several over HTTP that have these limits together.
    pub fn within(caller: Caller, limits: Arc<Limits>) -> Connection {
        let (elders, state) = (Elders::default(), Mutex::default());
        Connection { caller, news: Arc::default(), is_http: true, limits, elders, state }
    }

    /// A guarded call begins. `None`: too many at once.
    pub fn begins(&self, id: &Id, call: Begun) -> Option<Arc<Waiter>> {
        let place = self.limits.call().ok()?;
        let waiter = Waiter::new(call);
        let call = Call { waiter: Arc::clone(&waiter), _place: place };
        self.lock().calls.entry(id.clone()).or_default().push(call);
        Some(waiter)
    }

    /// It has ended, in these words. Whether its answer is for anybody.
    pub fn ended(&self, id: &Id, waiter: &Arc<Waiter>, words: impl FnOnce() -> String) -> bool {
        let mut state = self.lock();
        if let Some(calls) = state.calls.get_mut(id) {
            calls.retain(|call| !Arc::ptr_eq(&call.waiter, waiter));
            if calls.is_empty() {
                state.calls.remove(id);
            }
        }
        waiter.ended(words)
    }

    /// The client cancels a request. `false`: it is none of the guarded ones.
    pub fn cancelled(&self, id: &Id) -> bool {
        let state = self.lock();
        let Some(calls) = state.calls.get(id) else { return false };
        calls.iter().for_each(|call| call.waiter.gives_up());
        true
    }

    /// Whether progress under this token is for somebody who no longer waits.
    pub fn is_abandoned(&self, progress_token: &str) -> bool {
        let state = self.lock();
        let mut waiters = state.calls.values().flatten().map(|call| &call.waiter);
        let mut of_it =
            waiters.by_ref().filter(|waiter| waiter.has_progress_token(progress_token)).peekable();
        // Some clients use one token for all their calls, and somebody may wait again.
        of_it.peek().is_some() && of_it.all(|waiter| waiter.has_given_up())
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

    fn told(news: &News, answered: &str) -> Vec<String> {
        news.take(answered, None, std::time::Duration::ZERO).lines()
    }

    fn connection() -> Connection {
        Connection::new(Caller {
            tenant: "t".into(),
            principal: "p".into(),
            run: None,
            surrounding_run: None,
            token: None,
        })
    }

    fn begun(tool: &str, news: &Arc<News>) -> Begun {
        Begun { tool: tool.into(), progress_token: Some("7".into()), news: Arc::downgrade(news) }
    }

    #[test]
    fn what_became_of_a_call_is_told_in_its_own_run() {
        let (connection, of_run) = (connection(), Arc::new(News::default()));
        let id = Id::text("1");
        let waiter = connection.begins(&id, begun("charge", &of_run)).unwrap();
        assert!(connection.cancelled(&id) && !connection.ended(&id, &waiter, || "done.".into()));
        assert!(told(&connection.news, "other").is_empty());
        assert_eq!(told(&of_run, "other").len(), 1);
    }

    #[test]
    fn a_call_that_was_given_up_is_told_once_while_it_runs_and_once_it_has_ended() {
        let connection = connection();
        let id = Id::text("1");
        let waiter = connection.begins(&id, begun("charge", &connection.news)).unwrap();
        assert!(!connection.cancelled(&Id::text("2")) && !connection.is_abandoned("7"));
        assert!(connection.cancelled(&id) && connection.is_abandoned("7") && !connection.is_abandoned("8"));
        assert_eq!(
            told(&connection.news, "other"),
            ["Your earlier call of charge, which you stopped waiting for, is still running."]
        );
        assert!(told(&connection.news, "other").is_empty());
        let again = connection.begins(&Id::text("3"), begun("charge", &connection.news)).unwrap();
        assert!(!connection.is_abandoned("7"), "somebody waits for the same token again");
        assert!(connection.ended(&Id::text("3"), &again, String::new));
        assert!(!connection.ended(&id, &waiter, || "done.".into()));
        assert_eq!(
            told(&connection.news, "other"),
            ["Your earlier call of charge, which you stopped waiting for: done."]
        );
        assert!(told(&connection.news, "other").is_empty() && connection.is_idle());
    }

    #[test]
    fn two_calls_of_one_id_are_two() {
        let connection = connection();
        let id = Id::text("1");
        let first = connection.begins(&id, begun("a", &connection.news)).unwrap();
        let second = connection.begins(&id, begun("b", &connection.news)).unwrap();
        assert!(connection.ended(&id, &first, String::new));
        assert!(!connection.is_idle());
        assert!(connection.ended(&id, &second, String::new) && connection.is_idle());
    }
}
