//! An action for the moment when a response has left: all of it that matters was written to a connection whose client was
//! still there to read it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type SentAction = Box<dyn FnOnce() + Send>;

/// Stands among the extensions of a response. The action runs once the response has left; if it never does, it is
/// dropped.
#[derive(Clone, Default)]
pub struct OnSent(Arc<Mutex<Option<PendingAction>>>);

struct PendingAction {
    action: SentAction,
    /// All that its client needs is in the part of the body that was given last.
    for_this_part: bool,
}

impl OnSent {
    pub fn new(action: impl FnOnce() + Send + 'static) -> OnSent {
        let on_sent = OnSent::default();
        on_sent.set(action);
        on_sent
    }

    /// For a response whose action is known only at its end.
    pub fn set(&self, action: impl FnOnce() + Send + 'static) {
        *lock(&self.0) = Some(PendingAction { action: Box::new(action), for_this_part: false });
    }

    /// For a stream whose client may close before its end: called by the body as it gives the part that says all.
    pub fn set_for_this_part(&self, action: impl FnOnce() + Send + 'static) {
        *lock(&self.0) = Some(PendingAction { action: Box::new(action), for_this_part: true });
    }

    pub(super) fn is_for_this_part(&self) -> bool {
        lock(&self.0).as_ref().is_some_and(|due| due.for_this_part)
    }

    /// It has left.
    pub fn run(&self) {
        // Taken first: the lock is not held while it is done.
        let due = lock(&self.0).take();
        if let Some(due) = due {
            (due.action)();
        }
    }
}

impl fmt::Debug for OnSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnSent")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
