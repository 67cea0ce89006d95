//! Answers that could not be recorded when they came. They are kept until the ledger can be written again; without that,
//! their effects would stay in flight for as long as this process lives.

use semel_core::outcome::Outcome;
use semel_ledger::claim::Claim;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// With more of them the ledger is not coming back soon, and memory is worth more. The others are in doubt when the
/// process ends.
const KEPT_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct PendingSettlement {
    pub(crate) claim: Claim,
    pub(crate) outcome: Outcome,
    pub(crate) reply: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(crate) struct PendingSettlements(Mutex<VecDeque<PendingSettlement>>);

impl PendingSettlements {
    pub(crate) fn push(&self, settlement: PendingSettlement) {
        let mut kept = self.lock();
        if kept.len() < KEPT_MAX {
            kept.push_back(settlement);
        }
    }

    /// Keeps one that was taken and could not be recorded, however many have come meanwhile. The others come first.
    pub(crate) fn put_back(&self, settlement: PendingSettlement) {
        self.lock().push_back(settlement);
    }

    pub(crate) fn take_oldest(&self) -> Option<PendingSettlement> {
        self.lock().pop_front()
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<PendingSettlement>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
