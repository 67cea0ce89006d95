//! Probes, and the answers about a doubt.

use crate::call::{GateCall, LOOK_AGAIN_FIRST, LOOK_AGAIN_MAX};
use crate::reply::{Passed, in_doubt};
use crate::step::StepResult;
use crate::upstream::ProbeAnswer;
use crate::{Error, Gate};
use semel_core::answer::EffectWord;
use semel_core::effect::{Doubt, Effect, IN_FLIGHT_MAX, State};
use semel_ledger::RecordSnapshot;
use semel_ledger::probe_notes::ProbeTrouble;
use semel_ledger::rulings::Probed;

impl Gate {
    /// In doubt: probe if there is a way to, else hold. A "no" that does not count yet is asked again when it would.
    pub(crate) async fn probe(
        &self,
        call: &mut GateCall<'_>,
        snapshot: &RecordSnapshot,
    ) -> Result<StepResult, Error> {
        let effect = snapshot.effect().expect("only a known effect is in doubt");
        let Some(probe) = &call.rule.probe else { return Ok(in_doubt(call, snapshot, None).into()) };
        // A "no" speaks for the moment at which it was asked, and for the doubt that was read before.
        let asked_at = self.clock.now();
        // Attempts that are all known to have failed leave no unknown sender: one was refused after its deadline.
        let forgotten = effect.attempts.is_empty()
            || matches!(&effect.state, State::InDoubt(doubt) if doubt.why == Doubt::Epoch);
        let quiet = match forgotten && call.upstream.sends_while_alive() {
            // Nobody knows which process it was; it gets the time after which any is more than merely slow.
            true => probe.quiet.max(IN_FLIGHT_MAX),
            false => probe.quiet,
        };
        match call.upstream.probe(probe, Some(effect)).await {
            ProbeAnswer::Yes { .. } if !probe.tells_apart(effect.occurrence.number) => {
                let why = "a probe found it, but that may be one that was done before: it does not ask when";
                Ok(self.still_in_doubt(call, snapshot, why.into()).await.into())
            }
            ProbeAnswer::Yes { reply, word, reply_failed } => {
                if let Some(why) = reply_failed {
                    self.note_in_vain(snapshot, ProbeTrouble::Reply, &why).await;
                }
                let word = word.or(call.rule.effect_word()).unwrap_or(EffectWord::Updated);
                let probed = Probed::Yes { word, reply, undo: call.fill_in_undo() };
                self.ledger.probed(snapshot, probed, self.clock.now()).await?;
                Ok(StepResult::LookAgain)
            }
            ProbeAnswer::No => {
                if self.may_count_no(effect, quiet).await
                    && self.ledger.probed(snapshot, Probed::No { quiet }, asked_at).await?.is_some()
                {
                    return Ok(StepResult::LookAgain);
                }
                let again = LOOK_AGAIN_MAX.min(probe.quiet.max(LOOK_AGAIN_FIRST));
                if self.clock.elapsed() + again > call.patience_ends {
                    let why = "a probe did not find it, but it may still be carried out";
                    return Ok(self.still_in_doubt(call, snapshot, why.into()).await.into());
                }
                self.clock.sleep(again).await;
                Ok(StepResult::LookAgain)
            }
            ProbeAnswer::Unknown { why } => {
                let why = format!("the probe could not tell: {why}");
                Ok(self.still_in_doubt(call, snapshot, why).await.into())
            }
        }
    }

    /// The probe was asked and the doubt stays: said to the caller, and in the ledger.
    async fn still_in_doubt(&self, call: &GateCall<'_>, snapshot: &RecordSnapshot, why: String) -> Passed {
        self.note_in_vain(snapshot, ProbeTrouble::Probe, &why).await;
        in_doubt(call, snapshot, Some(why))
    }

    async fn note_in_vain(&self, snapshot: &RecordSnapshot, what: ProbeTrouble, why: &str) {
        // Nothing rests on the line, and the answer says the same.
        let _only_a_note = self.ledger.note_probe_trouble(snapshot, what, why, self.clock.now()).await;
    }

    /// `before = true`: asks first, and skips what is already there.
    pub(crate) async fn probe_before_claim(
        &self,
        call: &mut GateCall<'_>,
        snapshot: &RecordSnapshot,
    ) -> Option<Passed> {
        let probe = call.rule.probe.as_ref().filter(|probe| probe.before)?;
        // A caller that repeats it on purpose knows that it is there.
        let is_known =
            |effect: &Effect| effect.occurrence.number > 1 || matches!(effect.state, State::Applied(_));
        if call.intent.again.is_some() && snapshot.effect().is_some_and(is_known) {
            return None;
        }
        if !call.probes_first() {
            return None;
        }
        match call.upstream.probe(probe, None).await {
            ProbeAnswer::Yes { reply, .. } => Some(Passed::found_by_probe(snapshot, reply, call.rule)),
            ProbeAnswer::No | ProbeAnswer::Unknown { .. } => None,
        }
    }
}
