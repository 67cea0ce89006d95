//! One client: what it has asked for, what it no longer waits for, and what it should still be told.

use super::heritage::Elders;
use super::limits::{Limits, Place};
use super::message::Id;
use super::news::{NEWS_MAX, News};
use crate::caller::Caller;
use semel_core::digest::Digest;
use semel_core::ids::EffectId;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Intents whose repeats on this connection keep the longer window. A client that did more loses the oldest.
const DONE_MAX: usize = 10_000;

/// How many of them are told to a model that asks.
const TOLD_MAX: usize = 100;

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
    /// The newest effects that were answered here, in order.
    effects: Vec<EffectId>,
    /// Calls that the client no longer waits for.
    abandoned: Vec<Arc<Waiter>>,
}

/// A guarded call that is under way.
#[derive(Debug)]
struct Call {
    waiter: Arc<Waiter>,
    _place: Place,
}

/// A guarded call, as far as its client is told of it later.
#[derive(Debug, Clone, Default)]
pub struct Begun {
    pub tool: String,
    /// The run that was named for it: what becomes of it concerns nobody else.
    pub run: Option<String>,
    pub progress_token: Option<String>,
}

/// Who waits for the answer of one guarded call.
#[derive(Debug)]
pub struct Waiter {
    call: Begun,
    state: Mutex<Wait>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wait {
    Waiting,
    GivenUp,
    /// The client had given up; this is what became of it.
    Finished(String),
    Told,
}

impl Waiter {
    /// Whether the client has cancelled the call.
    pub fn has_given_up(&self) -> bool {
        *self.lock() == Wait::GivenUp
    }

    fn lock(&self) -> MutexGuard<'_, Wait> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let waiter = Arc::new(Waiter { call, state: Mutex::new(Wait::Waiting) });
        let call = Call { waiter: Arc::clone(&waiter), _place: place };
        self.lock().calls.entry(id.clone()).or_default().push(call);
        Some(waiter)
    }

    /// It has ended, in these words. Whether anybody still waits for its answer.
    pub fn ended(&self, id: &Id, waiter: &Arc<Waiter>, words: impl FnOnce() -> String) -> bool {
        let mut state = self.lock();
        if let Some(calls) = state.calls.get_mut(id) {
            calls.retain(|call| !Arc::ptr_eq(&call.waiter, waiter));
            if calls.is_empty() {
                state.calls.remove(id);
            }
        }
        let mut wait = waiter.lock();
        match *wait {
            Wait::Waiting => true,
            _ => {
                *wait = Wait::Finished(words());
                false
            }
        }
    }

    /// The client cancels a request. `false`: it is none of the guarded ones.
    pub fn cancelled(&self, id: &Id) -> bool {
        let mut state = self.lock();
        let Some(calls) = state.calls.get(id) else { return false };
        let waiters: Vec<_> = calls.iter().map(|call| Arc::clone(&call.waiter)).collect();
        for waiter in waiters {
            let mut wait = waiter.lock();
            if *wait == Wait::Waiting {
                *wait = Wait::GivenUp;
                drop(wait);
                if state.abandoned.len() >= NEWS_MAX {
                    state.abandoned.remove(0);
                }
                state.abandoned.push(waiter);
            }
        }
        true
    }

    /// Whether progress under this token is for somebody who no longer waits.
    pub fn is_abandoned(&self, progress_token: &str) -> bool {
        let is = |waiter: &Arc<Waiter>, wait: Wait| {
            waiter.call.progress_token.as_deref() == Some(progress_token) && *waiter.lock() == wait
        };
        let state = self.lock();
        let given_up = state.abandoned.iter().any(|waiter| is(waiter, Wait::GivenUp));
        // Some clients use one token for all their calls, and somebody may wait again.
        given_up && !state.calls.values().flatten().any(|call| is(&call.waiter, Wait::Waiting))
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

    /// Remembers the effect that an answer spoke of.
    pub fn was_told(&self, effect: Option<EffectId>) {
        let mut state = self.lock();
        if let Some(effect) = effect.filter(|effect| !state.effects.contains(effect)) {
            if state.effects.len() >= TOLD_MAX {
                state.effects.remove(0);
            }
            state.effects.push(effect);
        }
    }

    /// The effects that were answered here, oldest first.
    pub fn effects(&self) -> Vec<EffectId> {
        self.lock().effects.clone()
    }

    pub fn has_done(&self, key: Digest) -> bool {
        self.lock().done.contains(&key)
    }

    /// What became of calls of this run that the client stopped waiting for; each is told once. An answer of the same
    /// tool may be that of the very call, so it does not say that the call is still running.
    pub fn became(&self, answered: &str, run: Option<&str>) -> Vec<String> {
        let mut state = self.lock();
        let mut news = Vec::new();
        for waiter in state.abandoned.iter().filter(|waiter| waiter.call.run.as_deref() == run) {
            let mut wait = waiter.lock();
            match &*wait {
                Wait::Finished(words) => {
                    news.push(format!(
                        "Your earlier call of {}, which you stopped waiting for: {words}",
                        waiter.call.tool
                    ));
                    *wait = Wait::Told;
                }
                Wait::GivenUp if waiter.call.tool == answered => {}
                Wait::GivenUp => news.push(format!(
                    "Your earlier call of {}, which you stopped waiting for, is still running.",
                    waiter.call.tool
                )),
                Wait::Waiting | Wait::Told => {}
            }
        }
        state.abandoned.retain(|waiter| *waiter.lock() != Wait::Told);
        news
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

    fn begun(tool: &str) -> Begun {
        Begun { tool: tool.into(), run: None, progress_token: Some("7".into()) }
    }

    #[test]
    fn what_became_of_a_call_is_told_in_its_own_run() {
        let connection = connection();
        let id = Id::text("1");
        let of_a = Begun { run: Some("a".into()), ..begun("charge") };
        let waiter = connection.begins(&id, of_a).unwrap();
        assert!(connection.cancelled(&id) && !connection.ended(&id, &waiter, || "done.".into()));
        assert!(
            connection.became("other", Some("b")).is_empty() && connection.became("other", None).is_empty()
        );
        assert_eq!(connection.became("other", Some("a")).len(), 1);
    }

    #[test]
    fn a_call_that_was_given_up_is_told_once_it_has_ended() {
        let connection = connection();
        let id = Id::text("1");
        let waiter = connection.begins(&id, begun("charge")).unwrap();
        assert!(!connection.cancelled(&Id::text("2")));
        assert!(connection.cancelled(&id) && connection.is_abandoned("7"));
        assert_eq!(
            connection.became("other", None),
            ["Your earlier call of charge, which you stopped waiting for, is still running."]
        );
        assert!(!connection.ended(&id, &waiter, || "done.".into()));
        assert_eq!(
            connection.became("other", None),
            ["Your earlier call of charge, which you stopped waiting for: done."]
        );
        assert!(connection.became("other", None).is_empty() && connection.is_idle());
    }

    #[test]
    fn two_calls_of_one_id_are_two() {
        let connection = connection();
        let id = Id::text("1");
        let first = connection.begins(&id, begun("a")).unwrap();
        let second = connection.begins(&id, begun("b")).unwrap();
        assert!(connection.ended(&id, &first, String::new));
        assert!(!connection.is_idle());
        assert!(connection.ended(&id, &second, String::new) && connection.is_idle());
    }
}
