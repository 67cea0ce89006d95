//! An agent's report on a doubt, after it has looked: when it counts, and what it settles.

use crate::Gate;
use semel_core::effect::{Effect, Ruling, State};
use semel_core::ids::Reason;
use semel_ledger::Error;
use semel_ledger::rulings::RulingVerdict;
use std::time::Duration;

/// The fate of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportOutcome {
    Recorded,
    /// Nothing was changed.
    NotInDoubt,
    /// Rule 5: an effect that is not there yet may be there in a moment, so a "no" does not count yet.
    TooSoon,
}

impl Gate {
    /// Settles a doubt by what an agent has seen. "Yes" always counts; "no" only once nothing can be sent any more and
    /// no answer is waited for.
    pub async fn report(
        &self,
        effect: &Effect,
        happened: bool,
        reason: Reason,
    ) -> Result<ReportOutcome, Error> {
        if !matches!(effect.state, State::InDoubt(_)) {
            return Ok(ReportOutcome::NotInDoubt);
        }
        let at = self.clock.now();
        let may_come = !effect.may_believe_no(Duration::ZERO, at)
            || !self.may_count_no(effect, Duration::ZERO).await
            || self.ledger.is_awaited(effect, at).await?;
        if !happened && may_come {
            return Ok(ReportOutcome::TooSoon);
        }
        let verdict =
            if happened { RulingVerdict::Applied { reply: None } } else { RulingVerdict::NotApplied };
        self.ledger.resolve(effect.id, verdict, Ruling { by: "agent".into(), reason, at }).await?;
        Ok(ReportOutcome::Recorded)
    }
}
