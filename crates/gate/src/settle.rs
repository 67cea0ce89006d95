//! Records the answers of attempts, also when the ledger cannot be written at first.

use crate::Gate;
use crate::clock::within;
use crate::events::{GateEvent, SettlementEvent};
use crate::pending_settlement::PendingSettlement;
use semel_core::call_metadata::CallMetadata;
use semel_core::ids::AttemptNo;
use semel_core::lifecycle::Alarm;
use semel_core::outcome::Outcome;
use semel_core::policy::prices::TokenUsage;
use semel_ledger::claim::Claim;
use semel_ledger::{Error, RecordUpdate};
use std::time::Duration;

/// How long settling is tried when the ledger cannot be written. Longer would only hide the trouble from the caller.
const SETTLE_PATIENCE: Duration = Duration::from_secs(5);

/// How long answers that wait are settled in one go: a program that ends does this last.
const PENDING_TIME_MAX: Duration = Duration::from_secs(5);

/// Where an answer is on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettledIn {
    Ledger,
    /// On this host alone, until the ledger takes it.
    Spool,
}

/// The answer could be written nowhere. The effect stays in flight, and lapses into doubt if nobody settles it.
#[derive(Debug)]
pub(crate) struct SettleError {
    pub(crate) claim: Box<Claim>,
    pub(crate) error: Error,
}

impl Gate {
    /// Records an answer. If the ledger cannot be written for a while, the answer is kept on this host, which is as
    /// durable for its caller.
    pub(crate) async fn settle_or_spool(
        &self,
        mut claim: Claim,
        outcome: &Outcome,
        reply: Option<&[u8]>,
    ) -> Result<(RecordUpdate, SettledIn), SettleError> {
        let error = match self.settle_patiently(&mut claim, outcome, reply).await {
            Ok(changed) => return Ok((changed, SettledIn::Ledger)),
            Err(error) => error,
        };
        match self.ledger.spool(&claim, outcome, reply, self.clock.now()) {
            Ok(snapshot) => Ok((RecordUpdate { snapshot, alarm: None, late: None }, SettledIn::Spool)),
            Err(_) => Err(SettleError { claim: Box::new(claim), error }),
        }
    }

    /// Tries again for a while if the ledger cannot be written. A store may take far longer than that for one try, so
    /// patience ends in the middle of one, and its commit may land later. That is harmless: the commit requires the
    /// record as it was, and whoever settles with this claim afterwards finds the attempt by its nonce. Of the two, the
    /// first is recorded, and the other finds the same answer there.
    async fn settle_patiently(
        &self,
        claim: &mut Claim,
        outcome: &Outcome,
        reply: Option<&[u8]>,
    ) -> Result<RecordUpdate, Error> {
        let mut error = Error::Undetermined { what: "the store does not answer".into() };
        let tries = async {
            let mut pause = Duration::from_millis(5);
            loop {
                let settled = match self.point("gate.before_settle") {
                    Ok(()) => self.ledger.settle(claim, outcome, reply, self.clock.now()).await,
                    Err(error) => Err(error),
                };
                match settled {
                    Ok(changed) => return changed,
                    Err(failed) => error = failed,
                }
                self.clock.sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(500));
            }
        };
        let settled = within(tries, self.clock.sleep(SETTLE_PATIENCE)).await;
        settled.ok_or(error)
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

    /// Nobody must take a claim that may have landed for one that was sent.
    pub async fn settle_unheld(&self) {
        let settled = self.ledger.settle_unheld(self.clock.now());
        let _again_later = within(settled, self.clock.sleep(PENDING_TIME_MAX)).await;
    }

    /// Tries once to record each answer that is kept, on this host's disk or in memory. One that the ledger does not
    /// take holds up no other.
    pub async fn settle_pending(&self) {
        let ends = self.clock.elapsed() + PENDING_TIME_MAX;
        let end = || self.clock.sleep(ends.saturating_sub(self.clock.elapsed()));
        // If this fails, the spooled answers stay where they are.
        let _again_later = within(self.ledger.import_all(self.clock.now()), end()).await;
        self.settle_unheld().await;
        for _ in 0..self.pending_settlements.count() {
            let Some(pending) = self.pending_settlements.take_oldest() else { return };
            let PendingSettlement { mut claim, outcome, reply } = pending;
            let attempt = claim.attempt();
            let began = self.clock.elapsed();
            let now = self.clock.now();
            let settled = self.ledger.settle(&mut claim, &outcome, reply.as_deref(), now);
            match within(settled, end()).await {
                Some(Ok(changed)) => {
                    let took = self.clock.elapsed().saturating_sub(began);
                    self.emit_settled(&changed, attempt, &outcome, took, None);
                }
                _ if self.ledger.spool(&claim, &outcome, reply.as_deref(), self.clock.now()).is_ok() => {}
                _ => self.pending_settlements.put_back(PendingSettlement { claim, outcome, reply }),
            }
        }
    }
}
