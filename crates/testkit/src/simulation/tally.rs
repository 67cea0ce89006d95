//! What a simulation has seen. A run in which nothing went wrong proves nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone, Default)]
pub struct EventTally(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl EventTally {
    pub fn count(&self, what: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
    }

    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
