//! For code that sends by itself: the claim is handed out, and comes back with the answer.

use crate::attempt::DUPLICATE;
use crate::call::GateCall;
use crate::events::GateEvent;
use crate::look::Look;
use crate::pass::STEPS_MAX;
use crate::reply::{Passed, answer_ran, held};
use crate::step::{HandedClaim, StepResult};
use crate::upstream::{Sent, Upstream, upstream_key};
use crate::{Error, Gate};
use semel_core::answer::OutcomeWord;
use semel_core::class::{Class, Tier};
use semel_core::digest::Digest;
use semel_core::effect::{Attempt, Effect, NotApplied, NotAppliedWhy, Reply, State, Verdict};
use semel_core::ids::{AttemptNo, EffectId, Nonce, OwnerId};
use semel_core::intent::Intent;
use semel_core::lifecycle::{Alarm, duplicates};
use semel_core::outcome::Outcome;
use semel_core::policy::Mode;
use semel_core::policy::rule::Rule;
use semel_core::retry_origin::RetryOrigin;
use semel_core::time::At;
use semel_core::undo::Undo;
use semel_core::wording;
use semel_ledger::claim::AttemptSender;
use semel_ledger::{Late, RecordSnapshot, RecordUpdate};

/// The answer to a request to send.
#[derive(Debug)]
pub enum BeginAnswer {
    /// Send it now, then settle.
    Run(Box<ClaimHandle>),
    /// Send it; nothing is recorded, and there is nothing to settle. A read, or observe mode.
    Unrecorded,
    /// Do not send: this is the answer.
    Answered(Box<Passed>),
}

/// The handle that a client takes away: all that names the attempt when it comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimHandle {
    pub effect: EffectId,
    pub attempt: AttemptNo,
    pub nonce: Nonce,
    pub deadline: At,
    pub class: Class,
    pub tier: Tier,
    /// Which effect of its record it is, from 1.
    pub occurrence: u32,
    /// For the upstream: one per effect, not per attempt.
    pub idempotency_key: String,
    pub possible_repeat: bool,
    pub best_effort: bool,
}

/// The code that sends an attempt by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimHolder {
    /// A client of this process, of which nothing is known. Its claim ends at its deadline.
    Client,
    /// This process. Its claims end with it.
    ThisProcess,
}

/// Who asks for a claim, and the name under which it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandedTo {
    pub holder: ClaimHolder,
    pub nonce: Nonce,
}

impl HandedTo {
    pub fn client(nonce: Nonce) -> HandedTo {
        HandedTo { holder: ClaimHolder::Client, nonce }
    }
}

impl From<HandedTo> for AttemptSender {
    fn from(to: HandedTo) -> AttemptSender {
        match to.holder {
            ClaimHolder::Client => AttemptSender::Away(to.nonce),
            ClaimHolder::ThisProcess => AttemptSender::Caller(to.nonce),
        }
    }
}

/// The report of an attempt's holder.
#[derive(Debug, Clone)]
pub struct Settlement {
    pub effect: EffectId,
    pub attempt: AttemptNo,
    pub nonce: Nonce,
    pub holder: ClaimHolder,
    pub sent: Sent,
    /// How it can be taken back, if it happened.
    pub undo: Option<Undo>,
}

/// The outcome of the report.
#[derive(Debug)]
pub enum SettleAnswer {
    /// It is on record, now or since an earlier time that it was brought.
    Recorded(Box<Passed>),
    /// A success is on record, of which it is not believed any more that it did not happen, or one that was disproved.
    Otherwise(Box<Effect>),
    NoSuchClaim,
}

fn lacks_reply(effect: &Effect, attempt: AttemptNo) -> bool {
    matches!(&effect.state, State::Applied(applied) if applied.by == Some(attempt) && applied.reply == Reply::Unknown)
}

impl Gate {
    /// Claims for a client that sends by itself. Asking again with the same nonce gets the same claim, as long as it is
    /// in flight: so a client whose answer was lost loses nothing (rule 15). Later the nonce is the id of a call: a copy
    /// of the request that was held up on its way gets the outcome, and no claim that nobody waits for.
    pub async fn begin(
        &self,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut dyn Upstream,
        sender: HandedTo,
    ) -> Result<BeginAnswer, Error> {
        let HandedTo { nonce, .. } = sender;
        if rule.class == Class::Read || self.mode == Mode::Observe {
            if self.mode == Mode::Observe {
                self.observed(intent, rule).await;
            }
            self.emit(&GateEvent::PassedThrough { intent });
            return Ok(BeginAnswer::Unrecorded);
        }
        let mut intent = intent.clone();
        intent.call_id.get_or_insert_with(|| format!("{:032x}", nonce.0));
        let intent = &intent;
        // A client that has read the answer of its last call means another one now.
        self.pending_deliveries.settled(intent.key, &*self.clock).await;
        let came = self.clock.now();
        let look = Look::default();
        let mut call =
            GateCall::new(intent, rule, upstream, &look, self.clock.elapsed()).sent_by(sender.into());
        for _ in 0..STEPS_MAX {
            if let Some(handle) = self.find_earlier_claim(intent, rule, sender).await? {
                let repeated_by = Some(RetryOrigin::Transport);
                self.emit(&GateEvent::Begun { intent, again: true, repeated_by });
                return Ok(BeginAnswer::Run(Box::new(handle)));
            }
            match self.step(&mut call).await {
                Ok(StepResult::LookAgain) => {}
                Ok(StepResult::Hand(handed)) => {
                    let HandedClaim { claim, possible_repeat } = *handed;
                    let attempt = claim.effect().attempt(claim.attempt()).cloned();
                    let attempt = attempt.expect("a claimed effect has its attempt");
                    // The claim itself ends here: it lives on in the client's hands, and comes back by its nonce.
                    let handle = self.claim_handle(claim.key(), claim.effect(), &attempt, rule);
                    let repeated_by = match (intent.metadata.retries, possible_repeat) {
                        (0, false) => None,
                        (0, true) => Some(RetryOrigin::Agent),
                        _ => Some(RetryOrigin::Sdk),
                    };
                    self.emit(&GateEvent::Begun { intent, again: false, repeated_by });
                    return Ok(BeginAnswer::Run(Box::new(ClaimHandle { possible_repeat, ..handle })));
                }
                Ok(StepResult::Answer(mut passed)) => {
                    passed.answer.best_effort = self.is_best_effort();
                    self.remember_answered(&call, &passed.answer).await;
                    self.emit_answered(&call, &passed.answer, came, false);
                    return Ok(BeginAnswer::Answered(passed));
                }
                Err(error) => {
                    self.emit(&GateEvent::Failed { intent });
                    return Err(error);
                }
            }
        }
        Err(Error::spinning(intent))
    }

    /// The claim that this very wish has got before.
    async fn find_earlier_claim(
        &self,
        intent: &Intent,
        rule: &Rule,
        sender: HandedTo,
    ) -> Result<Option<ClaimHandle>, Error> {
        let aliased = match intent.alias {
            Some(alias) => self.ledger.alias(alias).await?.1.map(|known| known.key),
            None => None,
        };
        let snapshot = self.ledger.find(aliased.unwrap_or(intent.key)).await?;
        let Some((effect, attempt)) =
            snapshot.effect().and_then(|effect| Some((effect, effect.open_attempt()?)))
        else {
            return Ok(None);
        };
        let mine = attempt.nonce == sender.nonce
            && attempt.owner == self.holder(sender.holder)?
            && effect.marks.fingerprint == intent.marks.fingerprint
            && self.clock.now() < attempt.deadline;
        // Nothing starts in a run that was cancelled, not even what was claimed before.
        if !mine || self.fence(intent).await?.shut {
            return Ok(None);
        }
        Ok(Some(self.claim_handle(snapshot.key, effect, attempt, rule)))
    }

    fn holder(&self, holder: ClaimHolder) -> Result<OwnerId, Error> {
        match holder {
            ClaimHolder::Client => Ok(OwnerId::AWAY),
            ClaimHolder::ThisProcess => Ok(self.ledger.holders().me()?),
        }
    }

    fn claim_handle(&self, key: Digest, effect: &Effect, attempt: &Attempt, rule: &Rule) -> ClaimHandle {
        ClaimHandle {
            effect: effect.id,
            attempt: attempt.number,
            nonce: attempt.nonce,
            deadline: attempt.deadline,
            class: effect.facts.class,
            tier: effect.facts.tier,
            occurrence: effect.occurrence.number,
            // semel has not seen a refusal that a client reports.
            idempotency_key: upstream_key(self.ledger.secret(), key, effect.occurrence.number, 0, rule),
            possible_repeat: false,
            best_effort: self.is_best_effort(),
        }
    }

    /// Records what a holder brings back. Bringing it again is answered alike.
    pub async fn settle(&self, settlement: Settlement) -> Result<SettleAnswer, Error> {
        let Settlement { effect, attempt, nonce, holder, sent, undo } = settlement;
        let Some(mut claim) = self.ledger.claim_again(effect, attempt, nonce, self.holder(holder)?).await?
        else {
            return Ok(SettleAnswer::NoSuchClaim);
        };
        let recorded = claim.effect().attempt(attempt).map(|attempt| attempt.verdict);
        let known = claim.snapshot().clone();
        let refuted = matches!(
            &claim.effect().state,
            State::NotApplied(NotApplied { why: NotAppliedWhy::Refuted(_), .. })
        );
        match (recorded, &sent.outcome) {
            // The same success again proves nothing that was not disproved.
            (_, Outcome::Applied { .. }) if refuted => {
                return Ok(SettleAnswer::Otherwise(Box::new(claim.effect().clone())));
            }
            (Some(Verdict::Applied), Outcome::NotApplied { .. }) => {
                return Ok(SettleAnswer::Otherwise(Box::new(claim.effect().clone())));
            }
            // The end of a command may be known before its output.
            (Some(Verdict::Applied), Outcome::Applied { reply: Reply::Kept, .. })
                if lacks_reply(claim.effect(), attempt) => {}
            (Some(Verdict::Applied), _)
            | (
                Some(Verdict::NotApplied | Verdict::Reported),
                Outcome::NotApplied { .. } | Outcome::InDoubt { .. },
            )
            | (Some(Verdict::Unproven), Outcome::InDoubt { .. }) => {
                return Ok(SettleAnswer::Recorded(Box::new(self.answer_holder(known, sent))));
            }
            (Some(Verdict::Open | Verdict::Unproven | Verdict::NotApplied | Verdict::Reported) | None, _) => {
            }
        }
        if let Some(undo) = undo {
            claim.keep_undo(undo);
        }
        let brought_at = self.clock.elapsed();
        let settled = self.settle_or_spool(claim, &sent.outcome, sent.reply.as_deref()).await;
        let (changed, settled_in) = settled.map_err(|unsettled| Error::Ledger(unsettled.error))?;
        let took = self.clock.elapsed().saturating_sub(brought_at);
        self.emit_settled(&changed, attempt, &sent.outcome, took, None);
        let RecordUpdate { snapshot, alarm, late } = changed;
        let mut passed = match late {
            Some(Late::Lost) => Passed::attempt_lost(known.effect().expect("it was claimed"), sent),
            Some(Late::Dropped) => Passed { delivery: None, ..self.answer_holder(snapshot, sent) },
            None => self.answer_holder(snapshot, sent).settled_in(settled_in),
        };
        if alarm == Some(Alarm::DuplicateDetected) {
            passed.answer.reason = Some(DUPLICATE.into());
        }
        Ok(SettleAnswer::Recorded(Box::new(passed)))
    }

    /// The answer about an effect to the holder of an attempt.
    fn answer_holder(&self, snapshot: RecordSnapshot, sent: Sent) -> Passed {
        let effect = snapshot.effect().expect("it was claimed");
        // Whoever brings an answer hears it, however often it was brought before.
        let alarm = duplicates(effect);
        let mut passed = match &effect.state {
            State::InDoubt(_) => held(effect, wording::in_doubt(effect), OutcomeWord::Ran),
            _ => answer_ran(snapshot, sent, self.clock.now()),
        };
        if alarm.is_some() {
            passed.answer.reason = Some(DUPLICATE.into());
        }
        passed.answer.best_effort = self.is_best_effort();
        passed
    }
}
