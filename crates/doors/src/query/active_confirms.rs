//! Effects that are being confirmed: a replay need not ask beside the call that it repeats.

use semel_core::ids::EffectId;
use semel_ledger::RecordSnapshot;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone, Default)]
pub struct ActiveConfirms(Arc<Mutex<HashSet<EffectId>>>);

/// One effect is being confirmed, until this is dropped.
#[derive(Debug)]
pub struct ActiveConfirm {
    id: EffectId,
    all: ActiveConfirms,
}

impl ActiveConfirms {
    /// `None`: this process asks about it already.
    pub fn begin(&self, done: &RecordSnapshot) -> Option<ActiveConfirm> {
        let id = done.effect()?.id;
        let new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        new.then(|| ActiveConfirm { id, all: self.clone() })
    }
}

impl Drop for ActiveConfirm {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
