//! A lock for whoever has something else to do while it is taken.

use std::sync::{Mutex, MutexGuard, TryLockError};

/// What the lock guards, if nobody has it. Whoever panicked with it has left nothing half done: each use begins anew.
pub(super) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
