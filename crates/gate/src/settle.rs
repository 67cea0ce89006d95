//! Records the answers of attempts, also when the ledger cannot be written at first.

use crate::Gate;
use crate::events::{GateEvent, SettlementEvent};
use crate::pending_settlement::PendingSettlement;
use semel_core::call_metadata::CallMetadata;
use semel_core::ids::AttemptNo;
use semel_core::lifecycle::Alarm;
use semel_core::outcome::Outcome;
use semel_core::policy::prices::TokenUsage;
use semel_ledger::RecordUpdate;
use semel_ledger::claim::{Claim, SettleError};
use std::time::Duration;

/// How long settling is tried when the ledger cannot be written. Longer would only hide the trouble from the caller.
const SETTLE_PATIENCE: Duration = Duration::from_secs(5);

/// Where an answer is on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettledIn {
    Ledger,
    /// On this host alone, until the ledger takes it.
    Spool,
}

impl Gate {
    /// Records an answer. If the ledger cannot be written for a while, the answer is kept on this host, which is as
    /// durable for its caller.
    pub(crate) async fn settle_or_spool(
        &self,
        claim: Claim,
        outcome: &Outcome,
        reply: Option<&[u8]>,
    ) -> Result<(RecordUpdate, SettledIn), SettleError> {
        let unsettled = match self.settle_patiently(claim, outcome, reply).await {
            Ok(changed) => return Ok((changed, SettledIn::Ledger)),
            Err(unsettled) => unsettled,
        };
        match self.ledger.spool(&unsettled.claim, outcome, reply, self.clock.now()) {
            Ok(snapshot) => Ok((RecordUpdate { snapshot, alarm: None, late: None }, SettledIn::Spool)),
            Err(_) => Err(unsettled),
        }
    }

    /// Tries again for a while if the ledger cannot be written.
    async fn settle_patiently(
        &self,
        mut claim: Claim,
        outcome: &Outcome,
        reply: Option<&[u8]>,
    ) -> Result<RecordUpdate, SettleError> {
        let patience_ends = self.clock.elapsed() + SETTLE_PATIENCE;
        let mut pause = Duration::from_millis(5);
        loop {
            let settled = match self.point("gate.before_settle") {
                Ok(()) => self.ledger.settle(claim, outcome, reply, self.clock.now()).await,
                Err(error) => Err(SettleError { claim: Box::new(claim), error }),
            };
            match settled {
                Err(unsettled) if self.clock.elapsed() < patience_ends => claim = *unsettled.claim,
                settled => return settled,
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    pub(crate) fn emit_settled(
        &self,
        changed: &RecordUpdate,
        attempt: AttemptNo,
        outcome: &Outcome,
        took: Duration,
        by: Option<(&CallMetadata, Option<TokenUsage>)>,
    ) {
        let Some(effect) = changed.snapshot.effect() else { return };
        let Some(attempt) = effect.attempt(attempt) else { return };
        let duplicate = changed.alarm == Some(Alarm::DuplicateDetected);
        let at = self.clock.now();
        let (metadata, used) = (by.map(|(metadata, _)| metadata), by.and_then(|(_, used)| used));
        let settling = SettlementEvent { effect, attempt, outcome, at, duplicate, took, metadata, used };
        self.emit(&GateEvent::Settled(&settling));
    }

    /// Tries once to record each answer that is kept, on this host's disk or in memory. One that the ledger does not
    /// take holds up no other.
    pub async fn settle_pending(&self) {
        // If this fails, the spooled answers stay where they are.
        let _again_later = self.ledger.import_all(self.clock.now()).await;
        for _ in 0..self.pending_settlements.count() {
            let Some(pending) = self.pending_settlements.take_oldest() else { return };
            let PendingSettlement { claim, outcome, reply } = pending;
            let attempt = claim.attempt();
            let began = self.clock.elapsed();
            match self.ledger.settle(claim, &outcome, reply.as_deref(), self.clock.now()).await {
                Ok(changed) => {
                    let took = self.clock.elapsed().saturating_sub(began);
                    self.emit_settled(&changed, attempt, &outcome, took, None);
                }
                Err(SettleError { claim, .. })
                    if self.ledger.spool(&claim, &outcome, reply.as_deref(), self.clock.now()).is_ok() => {}
                Err(SettleError { claim, .. }) => {
                    self.pending_settlements.put_back(PendingSettlement { claim: *claim, outcome, reply });
                }
            }
        }
    }
}
