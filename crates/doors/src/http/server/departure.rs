//! Whether an answer has left: all of it that matters was written to a connection whose client was still there to read it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Action = Box<dyn FnOnce() + Send>;

/// Stands among a response's extensions. What follows is done once the answer has left; if it never does, it is dropped
/// undone.
#[derive(Clone, Default)]
pub struct Departure(Arc<Mutex<Option<Due>>>);

struct Due {
    action: Action,
    /// All that its client needs is in the part of the body that was given last.
    with_this_part: bool,
}

impl Departure {
    pub fn then(action: impl FnOnce() + Send + 'static) -> Departure {
        let departure = Departure::default();
        departure.is_followed_by(action);
        departure
    }

    /// For an answer of which is known only at its end what follows.
    pub fn is_followed_by(&self, action: impl FnOnce() + Send + 'static) {
        *lock(&self.0) = Some(Due { action: Box::new(action), with_this_part: false });
    }

    /// For a stream whose client may close before its end: called by the body as it gives the part that says all.
    pub fn leaves_with_this_part(&self, action: impl FnOnce() + Send + 'static) {
        *lock(&self.0) = Some(Due { action: Box::new(action), with_this_part: true });
    }

    pub(super) fn is_with_this_part(&self) -> bool {
        lock(&self.0).as_ref().is_some_and(|due| due.with_this_part)
    }

    /// It has left.
    pub fn happens(&self) {
        // Taken first: the lock is not held while it is done.
        let due = lock(&self.0).take();
        if let Some(due) = due {
            (due.action)();
        }
    }
}

impl fmt::Debug for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Departure")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
