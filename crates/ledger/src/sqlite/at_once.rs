//! A lock for callers that have something else to do while it is taken.

use std::sync::{Mutex, MutexGuard, TryLockError};

/// The guarded value, if the lock is free. A panic with it leaves nothing half done: each use begins anew.
pub(super) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
