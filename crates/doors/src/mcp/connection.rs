//! One client: within which limits it calls, and what it has done.

use super::guarded_calls::Waiter;
use super::id::Id;
use super::limits::{Limits, Permit};
use crate::caller::Caller;
use semel_core::digest::Digest;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Intents whose repeats on this connection keep the longer window. A client that did more loses the oldest.
const DONE_MAX: usize = 10_000;

#[derive(Debug)]
pub struct ClientConnection {
    pub caller: Caller,
    pub limits: Arc<Limits>,
    done: Mutex<HashSet<Digest>>,
}

impl ClientConnection {
    pub fn new(caller: Caller) -> ClientConnection {
        ClientConnection::within(caller, Arc::default())
    }

    /// One of several that have these limits together.
    pub fn within(caller: Caller, limits: Arc<Limits>) -> ClientConnection {
        ClientConnection { caller, limits, done: Mutex::default() }
    }

    /// A guarded call begins. `None`: too many at once.
    pub fn begin_call(&self, id: &Id, progress_token: Option<String>) -> Option<(Arc<Waiter>, Permit)> {
        let permit = self.limits.call().ok()?;
        Some((self.limits.guarded.begin(self.caller.whose(), id, progress_token), permit))
    }

    pub fn end_call(&self, id: &Id, waiter: &Arc<Waiter>) {
        self.limits.guarded.end(self.caller.whose(), id, waiter);
    }

    /// The client cancels a request. `false`: it is none of the guarded ones.
    pub fn give_up(&self, id: &Id) -> bool {
        self.limits.guarded.give_up(&self.caller.whose(), id)
    }

    /// Whether progress under this token is for a client that no longer waits.
    pub fn is_abandoned(&self, progress_token: &str) -> bool {
        self.limits.guarded.is_abandoned(progress_token)
    }

    pub fn is_idle(&self) -> bool {
        self.limits.guarded.is_empty()
    }

    /// Remembers that this intent was answered here.
    pub fn add_done(&self, key: Digest) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if done.len() >= DONE_MAX {
            done.clear();
        }
        done.insert(key);
    }

    pub fn has_done(&self, key: Digest) -> bool {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }
}
