//! Answers that could not be recorded when they came. They are kept until the ledger can be written again; without that,
//! their effects would stay in flight for as long as this process lives.

use crate::Gate;
use crate::clock::Clock;
use semel_core::outcome::Outcome;
use semel_ledger::claim::{Claim, SettleError};
use semel_ledger::entropy::Entropy;
use semel_ledger::holders::Holders;
use semel_ledger::store::Store;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// With more of them the ledger is not coming back soon, and memory is worth more. The others are in doubt when the
/// process ends.
const KEPT_MAX: usize = 1_000;

#[derive(Debug)]
struct PendingSettlement {
    claim: Claim,
    outcome: Outcome,
    reply: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(crate) struct PendingSettlements(Mutex<Vec<PendingSettlement>>);

impl PendingSettlements {
    fn lock(&self) -> MutexGuard<'_, Vec<PendingSettlement>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store, H: Holders, E: Entropy, C: Clock> Gate<S, H, E, C> {
    pub(crate) fn keep_unsettled(&self, claim: Claim, outcome: Outcome, reply: Option<Vec<u8>>) {
        let mut kept = self.pending_settlements.lock();
        if kept.len() < KEPT_MAX {
            kept.push(PendingSettlement { claim, outcome, reply });
        }
    }

    /// Records the answers that are kept, up to the first that the ledger does not take. For processes that go on.
    pub async fn settle_pending(&self) {
        loop {
            let Some(PendingSettlement { claim, outcome, reply }) = self.pending_settlements.lock().pop()
            else {
                return;
            };
            let attempt = claim.attempt();
            let began = self.clock.elapsed();
            match self.ledger.settle(claim, &outcome, reply.as_deref(), self.clock.now()).await {
                Ok(changed) => {
                    let took = self.clock.elapsed().saturating_sub(began);
                    self.emit_settled(&changed, attempt, &outcome, took, None);
                }
                Err(SettleError { claim, .. }) => {
                    self.pending_settlements.lock().push(PendingSettlement { claim: *claim, outcome, reply });
                    return;
                }
            }
        }
    }
}
