//! One attempt: its turn, its claim, sending, settling.

use crate::call::{GateCall, UnresolvedSend};
use crate::clock::beside;
use crate::events::GateEvent;
use crate::lookalike::OutlineComparison;
use crate::pending_settlement::PendingSettlement;
use crate::reply::{GivenReply, Passed, answer_of_record, answer_ran, held, in_doubt_until_sent};
use crate::settle::SettleError;
use crate::step::{HandedClaim, StepResult};
use crate::survey::Survey;
use crate::upstream::{Recorded, Sending, Sent, upstream_key};
use crate::{Error, Gate};
use semel_core::answer::{Answer, OutcomeWord};
use semel_core::class::Class;
use semel_core::decide::Claiming;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, IN_FLIGHT_MAX, LastSend, NotAppliedWhy, Reply, SEND_WITHIN, State};
use semel_core::lifecycle::Alarm;
use semel_core::outcome::Outcome;
use semel_core::time::At;
use semel_core::wording;
use semel_ledger::Late;
use semel_ledger::claim::{AttemptSender, Claim, ClaimKind, ClaimRequest, ClaimResult, FreeTurn};
use std::sync::Arc;
use std::time::Duration;

/// The longest answers of models take less. What could not be settled is generated again after it, at the latest.
const DEADLINE_GENERATE: Duration = Duration::from_secs(3600);

/// A command acts as long as its process lives. On another host a process that died before it was ever heard of may look
/// alive, and that is not to last for ever.
const DEADLINE_COMMAND: Duration = Duration::from_secs(30 * 24 * 3600);

/// Before a lapse that could not be written is tried again.
const LAPSE_PAUSE: Duration = Duration::from_secs(1);

/// The loudest alarm there is.
pub(crate) const DUPLICATE: &str =
    "duplicate_detected: two attempts of this effect succeeded, so it happened twice";

/// A sender that was paused this close to its last moment does not send.
pub const SEND_MARGIN: Duration = Duration::from_secs(1);

impl Gate {
    /// Takes the claim and sends, unless something speaks against it.
    pub(crate) async fn claim(
        &self,
        call: &mut GateCall<'_>,
        survey: Survey,
        how: ClaimKind,
    ) -> Result<StepResult, Error> {
        let Survey { snapshot, fences, key, .. } = survey;
        let snapshot = &snapshot;
        // Rare parts are boxed: they would have their room in every call.
        let alike = match how {
            ClaimKind::Resend => None,
            ClaimKind::Claim(_) => match Box::pin(self.compare(call, snapshot.key)).await? {
                OutlineComparison::Clear(seen) => seen,
                OutlineComparison::Waited => return Ok(StepResult::LookAgain),
                OutlineComparison::Held(passed) => return Ok(StepResult::Answer(passed)),
            },
        };
        if matches!(how, ClaimKind::Claim(_))
            && let Some(passed) = Box::pin(self.probe_before_claim(call, snapshot)).await
        {
            return Ok(passed.into());
        }
        let turn = match call.intent.turn {
            None => None,
            Some(key) => match Box::pin(self.turn(call, key)).await? {
                TurnResult::Free(free) => Some(free),
                TurnResult::Waited => return Ok(StepResult::LookAgain),
                TurnResult::Taken(passed) => return Ok(StepResult::Answer(passed)),
            },
        };
        if let Err(not_started) = call.upstream.prepare().await {
            // Nothing more is sent, and the earlier attempt is as unclear as it was.
            if matches!(how, ClaimKind::Resend) {
                return Ok(in_doubt_until_sent(call, snapshot).into());
            }
            return Ok(Passed::not_started(snapshot, not_started, call.rule).into());
        }
        let possible_repeat =
            matches!(how, ClaimKind::Claim(Claiming::NextEffect { possible_repeat: true, .. }));
        self.check_clock().await?;
        let now = self.clock.now();
        let claimed_from = self.clock.elapsed();
        let deadline = now.plus(call.rule.timeout.unwrap_or(match call.rule.class {
            Class::Generate => DEADLINE_GENERATE,
            _ if call.upstream.sends_while_alive() => DEADLINE_COMMAND,
            _ => IN_FLIGHT_MAX,
        }));
        let request = ClaimRequest {
            intent: call.intent,
            rule: call.rule,
            snapshot,
            how,
            now,
            uptime: self.clock.uptime(),
            deadline,
            last_send: match call.upstream.sends_while_alive() {
                // A client that took its claim away sends by the deadline.
                _ if matches!(call.sender, AttemptSender::Away(_)) => LastSend::By(deadline),
                true => LastSend::WhileAlive,
                false => LastSend::By(now.plus(SEND_WITHIN)),
            },
            fences,
            turn,
            alias: key.claimed_with(call.intent),
            alike,
            sender: call.sender,
        };
        self.point("gate.before_claim")?;
        let claimed = self.ledger.claim(&request).await?;
        if let ClaimResult::Won(_) = &claimed {
            self.emit(&GateEvent::Claimed { took: self.clock.elapsed().saturating_sub(claimed_from) });
        }
        match claimed {
            ClaimResult::Moved => Ok(StepResult::LookAgain),
            ClaimResult::Family(other) => Box::pin(self.family_open(call, other, now)).await,
            ClaimResult::Won(claim) if call.sender.handed().is_some() => {
                Ok(StepResult::Hand(Box::new(HandedClaim { claim, possible_repeat })))
            }
            ClaimResult::Won(claim) => {
                let mut step = self.attempt(call, claim, claimed_from).await?;
                if let (StepResult::Answer(passed), true) = (&mut step, possible_repeat) {
                    passed.answer.possible_repeat = true;
                }
                Ok(step)
            }
        }
    }

    /// Sends and settles.
    async fn attempt(
        &self,
        call: &mut GateCall<'_>,
        mut claim: Claim,
        claimed_from: Duration,
    ) -> Result<StepResult, Error> {
        self.point("gate.after_claim")?;
        let attempt = claim.attempt();
        let claimed = Arc::clone(claim.stored());
        // Both clocks: others go by the wall clock when they judge that nothing can be sent any more.
        let past = claim.effect().attempt(attempt).is_some_and(|attempt| {
            let now = self.clock.now();
            let last = matches!(attempt.last_send, LastSend::By(last) if now.plus(SEND_MARGIN) > last);
            last || now >= attempt.deadline
        });
        let late = past || self.clock.elapsed().saturating_sub(claimed_from) + SEND_MARGIN > SEND_WITHIN;
        let mut sent = if late {
            let why =
                NotAppliedWhy::NeverSent("this process was paused past its last moment for sending".into());
            Sent::of(Outcome::NotApplied { why, reply: Reply::Unknown })
        } else {
            let effect = claim.effect();
            let (number, refusals) = (effect.occurrence.number, effect.refusals);
            let key = upstream_key(self.ledger.secret(), claim.key(), number, refusals, call.rule);
            let recorded = Recorded { effect, attempt, idempotency_key: &key };
            let look = call.look;
            let sending =
                Sending { recorded: Some(recorded), timeout: call.rule.timeout, progress: look.progress() };
            self.point("gate.before_send")?;
            self.emit(&GateEvent::Sent { intent: call.intent });
            look.sends(&*self.clock);
            // Its answer is waited for all the same.
            let nonce = effect.attempt(attempt).map(|attempt| attempt.nonce);
            let lapses = async {
                look.silence(&*self.clock, Duration::ZERO).await;
                let Some(nonce) = nonce else { return };
                while Box::pin(self.ledger.lapse_silent(claim.key(), nonce, self.clock.now())).await.is_err()
                {
                    self.clock.sleep(LAPSE_PAUSE).await;
                }
            };
            beside(call.upstream.send(sending), lapses).await
        };
        if let Err(error) = self.point("gate.after_send") {
            return Ok(Passed::unrecorded(claim.effect(), sent.data, &error).into());
        }
        let answered_at = self.clock.elapsed();
        if let (Outcome::Applied { .. }, Some(undo)) = (&sent.outcome, call.fill_in_undo()) {
            claim.keep_undo(undo);
        }
        claim.describe(std::mem::take(&mut sent.description));
        // Boxed, since it would have its room while the answer is waited for.
        let settled = Box::pin(self.settle_or_spool(claim, &sent.outcome, sent.reply.as_deref())).await;
        let (changed, settled_in) = match settled {
            Ok(settled) => settled,
            Err(SettleError { claim, error }) => {
                let passed = Passed::unrecorded(claim.effect(), sent.data, &error);
                let (outcome, reply) = (sent.outcome, sent.reply);
                self.pending_settlements.push(PendingSettlement { claim: *claim, outcome, reply });
                return Ok(passed.into());
            }
        };
        if let (Err(error), Some(effect)) = (self.point("gate.after_settle"), changed.snapshot.effect()) {
            return Ok(Passed::unrecorded(effect, sent.data, &error).into());
        }
        let now = self.clock.now();
        let took = self.clock.elapsed().saturating_sub(answered_at);
        let by = Some((&call.intent.metadata, sent.tokens));
        self.emit_settled(&changed, attempt, &sent.outcome, took, by);
        if changed.alarm == Some(Alarm::DuplicateDetected) {
            let mut passed = answer_ran(changed.snapshot, sent, now);
            passed.answer.reason = Some(DUPLICATE.into());
            return Ok(passed.into());
        }
        match (changed.late, changed.snapshot.effect().map(|effect| &effect.state)) {
            (Some(Late::Dropped), Some(State::Applied(_))) => {
                // It is the answer of another attempt that counts as delivered.
                Ok(Passed { delivery: None, ..answer_ran(changed.snapshot, sent, now) }.into())
            }
            (Some(_), _) => Ok(Passed::attempt_lost(&claimed.effect, sent).into()),
            (None, Some(State::InDoubt(_))) => {
                // Its data stays with the call: if a probe clears the doubt, the caller still gets what it printed.
                sent.reply = None;
                let record = changed.snapshot.key;
                let effect = changed.snapshot.effect().cloned();
                call.unresolved = effect.map(|effect| UnresolvedSend { record, effect, sent });
                call.upstream.release();
                call.patience_ends = call.patience_ends.max(self.clock.elapsed() + call.rule.wait);
                Ok(StepResult::LookAgain)
            }
            // Another attempt was first with the answer, and that is the answer.
            (None, Some(State::Applied(applied)))
                if call.rule.class == Class::Generate && applied.by.is_some_and(|by| by != attempt) =>
            {
                let joined = OutcomeWord::Joined;
                Ok(answer_of_record(changed.snapshot, call.intent, call.rule, joined, now).into())
            }
            _ => Ok(answer_ran(changed.snapshot, sent, now).settled_in(settled_in).into()),
        }
    }

    /// This call's own attempt turned out not to have happened. It is not made again here: the caller decides.
    pub(crate) fn own_attempt_failed(&self, sent: Sent, effect: &Effect) -> Passed {
        let mut passed = self.did_not_happen(effect);
        passed.answer.data = sent.data;
        passed
    }

    pub(crate) fn did_not_happen(&self, effect: &Effect) -> Passed {
        let mut passed = held(effect, wording::upstream_refused(effect), OutcomeWord::Ran);
        passed.answer.effect = semel_core::answer::EffectWord::None;
        passed
    }

    /// Rule 11: nothing with the identity of an open effect starts in another scope.
    async fn family_open(
        &self,
        call: &mut GateCall<'_>,
        other: Digest,
        now: At,
    ) -> Result<StepResult, Error> {
        let snapshot = self.ledger.observe(other, now).await?;
        let Some(effect) = snapshot.effect().filter(|effect| effect.is_open()) else {
            return Ok(StepResult::LookAgain);
        };
        let trouble = match effect.state {
            State::InFlight { .. } if self.wait(call, other, snapshot.revision).await => {
                return Ok(StepResult::LookAgain);
            }
            State::InFlight { .. } => wording::in_flight(effect, now, call.rule.wait),
            _ => wording::in_doubt(effect),
        };
        Ok(held(effect, trouble, OutcomeWord::Held).into())
    }

    async fn turn(&self, call: &mut GateCall<'_>, key: Digest) -> Result<TurnResult, Error> {
        let now = self.clock.now();
        match self.ledger.turn(key, now).await? {
            Ok(free) => Ok(TurnResult::Free(free)),
            Err((revision, holder)) => {
                let waited = self.wait(call, key, revision).await;
                let effect = holder.effect();
                Ok(match (waited, effect) {
                    (true, _) | (false, None) => TurnResult::Waited,
                    // Another attempt is none of this caller's business.
                    (false, Some(effect)) if effect.facts.principal != call.intent.principal => {
                        let trouble = wording::turn_taken(None);
                        let answer = Answer::of_trouble(call.rule.tier(), OutcomeWord::Held, trouble);
                        TurnResult::Taken(Box::new(Passed {
                            answer,
                            reply: GivenReply::None,
                            delivery: None,
                        }))
                    }
                    (false, Some(effect)) => TurnResult::Taken(Box::new(held(
                        effect,
                        wording::turn_taken(Some(effect)),
                        OutcomeWord::Held,
                    ))),
                })
            }
        }
    }
}

enum TurnResult {
    Free(FreeTurn),
    Waited,
    Taken(Box<Passed>),
}
