//! Answers that have left and are yet to be marked as delivered. Those of a few milliseconds are marked together, in one
//! write of the ledger: a write for each would stand in the way of the calls that come meanwhile.

use crate::in_flight::InFlightGuard;
use semel_gate::pending_delivery::PendingDelivery;
use semel_ledger::RecordSnapshot;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An answer that is not marked as delivered.
#[derive(Debug)]
pub struct UnmarkedAnswer {
    /// Without its reply, which a mark does not need.
    pub found: RecordSnapshot,
    /// The next call waits for the mark as long as this is there.
    pending: Mutex<Option<PendingDelivery>>,
    /// Later, on the monotonic clock, the caller may have gone, and is not taken to have got it.
    pub late_from: Option<Duration>,
}

impl UnmarkedAnswer {
    pub fn new(
        found: RecordSnapshot,
        pending: Option<PendingDelivery>,
        late_from: Option<Duration>,
    ) -> UnmarkedAnswer {
        UnmarkedAnswer {
            found: RecordSnapshot { reply: None, ..found },
            pending: Mutex::new(pending),
            late_from,
        }
    }

    /// It is marked, or will not be: the next call need not wait for it.
    pub fn release(&self) {
        drop(self.pending.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

#[derive(Debug, Default)]
pub struct DeliveryBatch(Mutex<Vec<BatchedAnswer>>);

#[derive(Debug)]
pub struct BatchedAnswer {
    pub answer: Arc<UnmarkedAnswer>,
    /// Keeps the process from ending before the mark was tried.
    pub in_flight: Option<InFlightGuard>,
}

impl DeliveryBatch {
    /// `true`: it is the first, and somebody has to take the batch.
    pub fn push(&self, answer: BatchedAnswer) -> bool {
        let mut batch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        batch.push(answer);
        batch.len() == 1
    }

    pub fn take(&self) -> Vec<BatchedAnswer> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
