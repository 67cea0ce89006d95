//! Answers that could not be written down when they came. They are owed to the ledger until it is well again; without
//! that, their effects would stay in flight for as long as this process lives.

use crate::Gate;
use crate::clock::Clock;
use semel_core::outcome::Outcome;
use semel_ledger::claim::{Claim, Unsettled};
use semel_ledger::entropy::Entropy;
use semel_ledger::holders::Holders;
use semel_ledger::store::Store;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// With more of them the ledger is not coming back soon, and memory is worth more. What is not owed is in doubt when
/// the process ends.
const OWED_MAX: usize = 1_000;

#[derive(Debug)]
struct Owed {
    claim: Claim,
    outcome: Outcome,
    reply: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(crate) struct Debts(Mutex<Vec<Owed>>);

impl Debts {
    fn lock(&self) -> MutexGuard<'_, Vec<Owed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store, H: Holders, E: Entropy, C: Clock> Gate<S, H, E, C> {
    pub(crate) fn owes(&self, claim: Claim, outcome: Outcome, reply: Option<Vec<u8>>) {
        let mut owed = self.debts.lock();
        if owed.len() < OWED_MAX {
            owed.push(Owed { claim, outcome, reply });
        }
    }

    /// Writes down what is owed, up to the first that the ledger does not take. For whoever has a process that goes on.
    pub async fn settle_owed(&self) {
        loop {
            let Some(Owed { claim, outcome, reply }) = self.debts.lock().pop() else { return };
            let attempt = claim.attempt();
            let began = self.clock.elapsed();
            match self.ledger.settle(claim, &outcome, reply.as_deref(), self.clock.now()).await {
                Ok(changed) => {
                    let took = self.clock.elapsed().saturating_sub(began);
                    self.tell_settled(&changed, attempt, &outcome, took, None);
                }
                Err(Unsettled { claim, .. }) => {
                    self.debts.lock().push(Owed { claim: *claim, outcome, reply });
                    return;
                }
            }
        }
    }
}
