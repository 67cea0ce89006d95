//! It said that it did it: is it true? Asked until it is, or until the rule's time is over.

use crate::reply::{Passed, pending};
use crate::{Error, Gate};
use async_trait::async_trait;
use semel_core::effect::{Evidence, State};
use semel_core::policy::rule::{Confirm, Rule};
use semel_core::wording;
use semel_ledger::RecordSnapshot;
use std::sync::Arc;
use std::time::Duration;

/// Most truths can be seen at once; others take as long as a replica lags.
const ASK_AGAIN_FIRST: Duration = Duration::from_millis(500);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(15);

/// The last question comes a little after the end, so that it is not asked twice at the same moment.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// A process that was asked to end should not be kept for the whole of a pause.
const LOOK_UP_EVERY: Duration = Duration::from_millis(500);

/// A door brings one of these: it asks, and never decides.
#[async_trait]
pub trait Witness: Send + Sync {
    /// Whether it is true now; an error when nobody can tell.
    async fn ask(&mut self) -> Result<bool, String>;

    /// Whom it asks, in a few words.
    fn name(&self) -> String;

    /// Whether nobody waits for the answer any more.
    fn gives_up(&self) -> bool {
        false
    }
}

/// The result of a confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmed {
    /// It is true.
    Yes,
    /// It is not, and it is on record as not applied.
    Refuted,
    /// It stands as it was reported. Nobody could tell otherwise.
    AsReported,
}

impl Gate {
    /// The success that a call was answered with, if its truth is still to be asked for. The answer then says so.
    pub fn unconfirmed(&self, rule: &Rule, passed: &mut Passed) -> Option<RecordSnapshot> {
        let confirm = rule.confirm.as_ref()?;
        let done = passed.delivery.clone()?;
        if self.left(confirm, &done)?.is_zero() {
            return None;
        }
        let evidence = passed.answer.evidence?;
        let pending = pending(evidence);
        passed.answer.reason = Some(match passed.answer.reason.take() {
            Some(reason) if evidence != Evidence::Accepted => format!("{reason}; {pending}"),
            _ => pending,
        });
        Some(done)
    }

    /// How long a success may still be asked about; `None` if there is nothing to ask.
    fn left(&self, confirm: &Confirm, done: &RecordSnapshot) -> Option<Duration> {
        let State::Applied(applied) = &done.effect()?.state else { return None };
        let asked = matches!(applied.evidence, Evidence::Accepted | Evidence::Reported);
        asked.then(|| confirm.within.saturating_sub(self.clock.now().since(applied.at)))
    }

    /// Asks until it is true, or until the rule's time is over. Only a clear no at the very end refutes: a read may
    /// lag, and one that fails says nothing.
    pub async fn confirm(
        &self,
        confirm: &Confirm,
        done: &RecordSnapshot,
        witness: &mut dyn Witness,
    ) -> Result<Confirmed, Error> {
        let Some(left) = self.left(confirm, done) else { return Ok(Confirmed::AsReported) };
        let until = self.clock.elapsed() + left;
        let mut pause = ASK_AGAIN_FIRST;
        loop {
            // A question that was asked in time is no question at the end, however long its answer takes.
            let over = self.clock.elapsed() >= until;
            let said = witness.ask().await;
            let now = self.clock.now();
            match said {
                Ok(true) => {
                    let changed = self.ledger.confirmed(done, now).await?;
                    return Ok(if changed { Confirmed::Yes } else { Confirmed::AsReported });
                }
                Ok(false) if over => {
                    let what = wording::not_shown(&witness.name(), confirm.within);
                    let changed = self.ledger.refute(done, what, now).await?;
                    return Ok(if changed { Confirmed::Refuted } else { Confirmed::AsReported });
                }
                Err(_) if over => return Ok(Confirmed::AsReported),
                Ok(false) | Err(_) if witness.gives_up() => return Ok(Confirmed::AsReported),
                Ok(false) | Err(_) => {}
            }
            let mut left = pause.min(until.saturating_sub(self.clock.elapsed())).max(PAUSE_MIN);
            while !left.is_zero() && !witness.gives_up() {
                let nap = left.min(LOOK_UP_EVERY);
                self.clock.sleep(nap).await;
                left -= nap;
            }
            pause = (pause * 2).min(ASK_AGAIN_MAX);
        }
    }

    /// The answer to a call whose success was asked about before the answer went out.
    pub async fn confirmed_answer(&self, passed: Passed, confirmed: Confirmed) -> Result<Passed, Error> {
        let Some(done) = &passed.delivery else { return Ok(passed) };
        match confirmed {
            Confirmed::AsReported => Ok(passed),
            Confirmed::Yes => {
                let snapshot = self.ledger.find(done.key).await?;
                Ok(passed.with_truth(snapshot))
            }
            Confirmed::Refuted => {
                let refuted = self.find_refuted(done).await?;
                Ok(passed.with_refutation(&refuted))
            }
        }
    }

    /// The refuted effect, as it is now. Its record may have gone on to another effect.
    pub async fn find_refuted(&self, done: &RecordSnapshot) -> Result<RecordSnapshot, Error> {
        let number = done.effect().map_or(0, |effect| effect.occurrence.number);
        let mut snapshot = self.ledger.at(done.key, number).await?;
        if let Some(stored) = &mut snapshot.newest {
            let effect = self.ledger.with_undone(stored.effect.clone()).await?;
            Arc::make_mut(stored).effect = effect;
        }
        Ok(snapshot)
    }
}
