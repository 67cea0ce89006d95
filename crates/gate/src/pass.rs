//! The one path of a call through the gate.

use crate::call::{GateCall, LOOK_AGAIN_FIRST, LOOK_AGAIN_MAX, UnresolvedSend};
use crate::events::{AnswerEvent, GateEvent};
use crate::fences::RunFences;
use crate::look::{Look, Progress};
use crate::reply::{
    Passed, answer_of_record, answer_of_refusal, answer_of_refused, answer_ran, held, in_doubt, joined_answer,
};
use crate::step::StepResult;
use crate::survey::Survey;
use crate::upstream::{Sending, Upstream};
use crate::{Error, Gate};
use semel_core::answer::{Answer, OutcomeWord};
use semel_core::class::Class;
use semel_core::decide::{Decision, Refusal, Replay, decide, is_repeat_of};
use semel_core::digest::Digest;
use semel_core::effect::{Attempt, State};
use semel_core::ids::AttemptNo;
use semel_core::intent::Intent;
use semel_core::policy::Mode;
use semel_core::policy::rule::Rule;
use semel_core::retry_origin::{RetryOrigin, SeenOfRetry};
use semel_core::subject::in_short;
use semel_core::time::At;
use semel_core::wording;
use semel_ledger::RecordSnapshot;
use semel_ledger::claim::ClaimKind;
use semel_ledger::store::{Hint, Revision};
use std::sync::Arc;

/// A call that loses this many races in a row gives up: something spins.
pub(crate) const STEPS_MAX: usize = 10_000;

impl Gate {
    /// Passes one call: joins, replays, holds, refuses, or claims, sends and settles.
    pub async fn pass(
        &self,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut dyn Upstream,
    ) -> Result<Passed, Error> {
        self.pass_in(&Look::default(), intent, rule, upstream).await
    }

    /// The same in one of several looks of a caller.
    pub async fn pass_in(
        &self,
        look: &Look,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut dyn Upstream,
    ) -> Result<Passed, Error> {
        if rule.class == Class::Read || self.mode == Mode::Observe {
            return Box::pin(self.pass_through(intent, rule, upstream)).await;
        }
        self.guard(look, intent, rule, upstream).await
    }

    /// The path of every recorded call.
    pub(crate) async fn guard(
        &self,
        look: &Look,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut dyn Upstream,
    ) -> Result<Passed, Error> {
        // A client that has read the answer of its last call means another one now.
        self.pending_deliveries.settled(intent.key, &*self.clock).await;
        let came = self.clock.now();
        let looks_again = look.has_sent();
        let mut call = GateCall::new(intent, rule, upstream, look, self.clock.elapsed());
        let mut passed = self.drive(&mut call).await;
        if let Ok(Passed { answer, .. }) = &mut passed {
            answer.best_effort = self.is_best_effort();
        }
        // It may see a hold; but this very call has sent it.
        if let Ok(Passed { answer, .. }) = &mut passed
            && answer.outcome == OutcomeWord::Held
            && (looks_again || call.unresolved.is_some())
        {
            answer.outcome = OutcomeWord::Ran;
        }
        match &passed {
            _ if !look.answers_first() => {}
            Ok(passed) => self.emit_answered(&call, &passed.answer, came, looks_again),
            Err(_) => self.emit(&GateEvent::Failed { intent }),
        }
        passed
    }

    async fn drive(&self, call: &mut GateCall<'_>) -> Result<Passed, Error> {
        for _ in 0..STEPS_MAX {
            match (self.step(call).await, &call.unresolved) {
                (Ok(StepResult::Answer(passed)), _) => {
                    self.remember_answered(call, &passed.answer).await;
                    return Ok(*passed);
                }
                (Ok(StepResult::LookAgain), _) => {}
                (Ok(StepResult::Hand(_)), _) => unreachable!("this call sends by itself"),
                // Once something was sent, the ledger's trouble must not be told as "nothing was sent".
                (Err(Error::Ledger(error)), Some(UnresolvedSend { effect, sent, .. })) => {
                    return Ok(Passed::unrecorded(effect, sent.data.clone(), &error));
                }
                // The same of an earlier look of this call.
                (Err(_), None) if call.has_sent() => return Ok(Passed::lost_sight(call.rule)),
                (Err(error), None) => return Err(error),
            }
        }
        match call.has_sent() {
            true => Ok(Passed::lost_sight(call.rule)),
            false => Err(Error::spinning(call.intent)),
        }
    }

    pub(crate) fn emit_answered(&self, call: &GateCall<'_>, answer: &Answer, came: At, looked_again: bool) {
        let seen = call.last.as_ref().and_then(|last| last.newest.as_ref()).map(|stored| &stored.effect);
        let original = seen.filter(|effect| answer.effect_id == Some(effect.id)).and_then(|effect| {
            let by = match &effect.state {
                State::Applied(applied) => applied.by,
                _ => None,
            };
            let attempt = by.and_then(|by| effect.attempt(by)).or(effect.newest_attempt())?;
            Some((effect, attempt))
        });
        let elsewhere = |attempt: &Attempt| self.ledger.holders().me().is_ok_and(|me| me != attempt.owner);
        let joined_elsewhere =
            answer.outcome == OutcomeWord::Joined && original.is_some_and(|(_, attempt)| elsewhere(attempt));
        let retries = call.intent.metadata.retries;
        let reissued = call.last.as_ref().is_some_and(|last| last.reissued);
        let seen = SeenOfRetry { retries, reissued, joined_elsewhere };
        // A caller that looks again has not repeated anything.
        let repeated_by = RetryOrigin::of(answer, seen).filter(|_| !looked_again || retries > 0);
        let (intent, at) = (call.intent, self.clock.now());
        let answered = AnswerEvent { intent, answer, came, at, repeated_by, looked_again, original };
        self.emit(&GateEvent::Answered(&answered));
    }

    /// One look at the ledger, one decision, one act. Rare acts are boxed: they would have their room in every call, and
    /// thousands may wait at once.
    pub(crate) async fn step(&self, call: &mut GateCall<'_>) -> Result<StepResult, Error> {
        let survey = self.survey(call).await?;
        let situation = survey.situation(call.past(survey.snapshot.key));
        let decision = match (call.is_effect_of, survey.effect()) {
            (Some(_), Some(effect)) => {
                decide(Some(effect), &call.intent.as_effect(effect), call.rule, &situation)
            }
            (_, newest) => decide(newest, call.intent, call.rule, &situation),
        };
        call.remember(&survey.snapshot, survey.unbound_key(), &decision);
        let (intent, rule, now) = (call.intent, call.rule, survey.now());
        match decision {
            Decision::Pass => Ok(Box::pin(self.pass_through(intent, rule, call.upstream)).await?.into()),
            // The record of another name has nothing more to say: the call is claimed under its own.
            Decision::Claim(_) if call.is_effect_of.take().is_some() => Ok(StepResult::LookAgain),
            Decision::Claim(claiming) => Box::pin(self.claim(call, survey, ClaimKind::Claim(claiming))).await,
            Decision::Resend => Box::pin(self.resend(call, survey)).await,
            Decision::Join(attempt) => self.join(call, &survey, attempt).await,
            Decision::AnswerOwn => {
                let is_current = survey.older.is_none();
                // First: if the ledger fails here, the call has still sent.
                let snapshot = Box::pin(self.at_older(survey)).await?;
                let own = call.unresolved.take().expect("only a call that has sent has an answer of its own");
                Ok(match snapshot.effect() {
                    Some(effect) if matches!(effect.state, State::NotApplied(_)) => {
                        self.own_attempt_failed(own.sent, effect)
                    }
                    // An older effect of its record takes no more marks.
                    _ if !is_current => Passed { delivery: None, ..answer_ran(snapshot, own.sent, now) },
                    _ => answer_ran(snapshot, own.sent, now),
                }
                .into())
            }
            Decision::AnswerJoined => {
                let is_current = survey.older.is_none();
                let snapshot = Box::pin(self.at_older(survey)).await?;
                let passed = joined_answer(snapshot, intent, rule, now);
                Ok(if is_current { passed } else { Passed { delivery: None, ..passed } }.into())
            }
            Decision::AnswerSentEarlier => Ok(match survey.effect() {
                Some(effect) if matches!(effect.state, State::NotApplied(_)) => self.did_not_happen(effect),
                _ => joined_answer(survey.snapshot, intent, rule, now),
            }
            .into()),
            Decision::StayInDoubt => Ok(in_doubt(call, &survey.snapshot, None).into()),
            Decision::Look => Box::pin(self.probe(call, &survey.snapshot)).await,
            Decision::Unremembered => {
                Box::pin(self.ledger.remember_doubt(intent, rule, &survey.snapshot, now)).await?;
                Ok(StepResult::LookAgain)
            }
            Decision::Replay(replay) => self.replay(call, survey, replay).await,
            Decision::ReplayRefusal => Ok(answer_of_refused(survey.snapshot, OutcomeWord::Replayed).into()),
            Decision::ReplayEarlier(number, replay) => {
                Ok(Box::pin(self.answer_of_earlier(intent, rule, survey.snapshot, number, replay))
                    .await?
                    .into())
            }
            Decision::Refuse(refusal) => {
                if refusal == (Refusal::Cancelled { prevents: true }) {
                    let (run, action, subject) = (intent.run_key, &intent.action, in_short(&intent.subject));
                    Box::pin(self.ledger.prevented(run, action, &subject, now)).await?;
                }
                Ok(answer_of_refusal(&survey.snapshot, refusal, intent, rule).into())
            }
        }
    }

    /// The effect that the call has sent or waited for, with its reply, where the record has gone on.
    async fn at_older(&self, survey: Survey) -> Result<RecordSnapshot, Error> {
        let Survey { snapshot, older, .. } = survey;
        let Some(older) = older else { return Ok(snapshot) };
        let reply = self.ledger.reply(snapshot.key, older.effect.occurrence.number).await?;
        Ok(RecordSnapshot { newest: Some(older), reply, ..snapshot })
    }

    async fn resend(&self, call: &mut GateCall<'_>, survey: Survey) -> Result<StepResult, Error> {
        let pause = survey.effect().and_then(|effect| call.resend_pause(effect, survey.now()));
        if let Some(pause) = pause {
            self.clock.sleep(pause).await;
            return Ok(StepResult::LookAgain);
        }
        match self.fences_of_resend(call, &survey.snapshot).await? {
            // Nothing more starts in a cancelled run, for any caller.
            RunFences { shut: true, .. } => Ok(in_doubt(call, &survey.snapshot, None).into()),
            RunFences { cells, .. } => self.claim(call, survey.with_fences(cells), ClaimKind::Resend).await,
        }
    }

    async fn join(
        &self,
        call: &mut GateCall<'_>,
        survey: &Survey,
        attempt: AttemptNo,
    ) -> Result<StepResult, Error> {
        let effect = survey.effect().expect("only a known effect is in flight");
        if call.join(survey.snapshot.key, effect, attempt) && !is_repeat_of(call.intent, effect) {
            call.upstream.join(effect, attempt);
        }
        Ok(match self.wait(call, survey.snapshot.key, survey.snapshot.revision).await {
            true => StepResult::LookAgain,
            false => {
                let trouble = wording::in_flight(effect, survey.now(), call.rule.wait);
                held(effect, trouble, OutcomeWord::Held).into()
            }
        })
    }

    async fn replay(
        &self,
        call: &mut GateCall<'_>,
        survey: Survey,
        replay: Replay,
    ) -> Result<StepResult, Error> {
        let now = survey.now();
        let snapshot = survey.snapshot;
        let effect = snapshot.effect().expect("only a known effect is replayed");
        if replay == Replay::Undelivered {
            // The one before it was done just now, and its answer is on its way to another caller.
            if call.waits_for_delivery(effect, now) && self.wait(call, snapshot.key, snapshot.revision).await
            {
                return Ok(StepResult::LookAgain);
            }
            if let Some(left) = call.waits_for_mark(effect, self.ledger.holders().me().ok(), now) {
                self.ledger.store().changed(snapshot.key, snapshot.revision, left).await;
                return Ok(StepResult::LookAgain);
            }
        }
        // The same reason again stands for the effect that it made, which may be gone as well.
        if effect.delivered_at.is_some()
            && matches!(replay, Replay::Repeat | Replay::SameOccurrence)
            && let Some(held) = Box::pin(self.superseded(call.intent, call.rule, &snapshot)).await?
        {
            return Ok(held.into());
        }
        let snapshot = match (replay, &call.intent.again) {
            // Its retry must get the same, also once this one was delivered.
            (Replay::Undelivered, Some(reason)) => {
                match Box::pin(self.ledger.adopt(&snapshot, reason, now)).await {
                    Ok(Some(adopted)) => RecordSnapshot { reply: snapshot.reply, ..adopted },
                    Ok(None) => return Ok(StepResult::LookAgain),
                    // A repeat is answered also by a ledger that cannot be written.
                    Err(_) => snapshot,
                }
            }
            _ => snapshot,
        };
        Ok(answer_of_record(snapshot, call.intent, call.rule, OutcomeWord::Replayed, now).into())
    }

    /// The answer of an effect before the newest one of its record.
    async fn answer_of_earlier(
        &self,
        intent: &Intent,
        rule: &Rule,
        snapshot: RecordSnapshot,
        number: u32,
        replay: Replay,
    ) -> Result<Passed, Error> {
        let now = self.clock.now();
        let reply = self.ledger.reply(snapshot.key, number).await?;
        let Some(mut stored) = self.ledger.occurrence(snapshot.key, number).await? else {
            // Retention has dropped its fact; that it is among what came before says enough. Of the newest effect
            // nothing is told, and its answer is not delivered by this.
            let newest = RecordSnapshot { reply: None, ..snapshot };
            let Passed { answer, reply, .. } =
                answer_of_record(newest, intent, rule, OutcomeWord::Replayed, now);
            let reason = Some("done before; its record is no longer kept".into());
            let (effect_id, attempt, evidence) = (None, None, None);
            let answer = Answer { effect_id, attempt, evidence, reason, undone_by: None, ..answer };
            return Ok(Passed { answer, reply, delivery: None });
        };
        if stored.effect.marks.drifted(&intent.marks) {
            let paths = stored.effect.marks.differing(&intent.marks);
            let earlier = RecordSnapshot { newest: Some(Arc::new(stored)), reply: None, ..snapshot };
            return Ok(answer_of_refusal(&earlier, Refusal::Drift { paths }, intent, rule));
        }
        stored.effect = self.ledger.with_undone(stored.effect).await?;
        let disproved = !matches!(stored.effect.state, State::Applied(_));
        let earlier = RecordSnapshot { newest: Some(Arc::new(stored)), reply, ..snapshot };
        if replay == Replay::Repeat
            && let Some(held) = self.superseded(intent, rule, &earlier).await?
        {
            return Ok(held);
        }
        Ok(match disproved {
            true => answer_of_refusal(&earlier, Refusal::Refuted, intent, rule),
            false => answer_of_record(earlier, intent, rule, OutcomeWord::Replayed, now),
        })
    }

    /// Waits for a change of a row or cell. `false`: patience is at its end.
    pub(crate) async fn wait(&self, call: &mut GateCall<'_>, key: Digest, since: Revision) -> bool {
        let left = call.patience_ends.saturating_sub(self.clock.elapsed());
        if left.is_zero() {
            return false;
        }
        let span = left.min(call.look_again);
        call.look_again = match self.ledger.store().changed(key, since, span).await {
            Hint::Changed => LOOK_AGAIN_FIRST,
            Hint::TimedOut => (call.look_again * 2).min(LOOK_AGAIN_MAX),
        };
        true
    }

    /// Reads, and everything in observe mode: nothing is claimed, nothing is blocked.
    async fn pass_through(
        &self,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut dyn Upstream,
    ) -> Result<Passed, Error> {
        if self.mode == Mode::Observe {
            self.observed(intent, rule).await;
        }
        self.emit(&GateEvent::PassedThrough { intent });
        Ok(unrecorded(rule, upstream).await)
    }
}

/// Sends without claiming or recording: reads, also when there is no ledger to ask, and everything in observe mode.
pub async fn unrecorded(rule: &Rule, upstream: &mut dyn Upstream) -> Passed {
    match upstream.prepare().await {
        Err(not_started) => Passed::not_started_alone(not_started, rule),
        Ok(()) => {
            let progress = Progress::default();
            let sending = Sending { recorded: None, timeout: rule.timeout, progress: &progress };
            let sent = upstream.send(sending).await;
            Passed::passed_through(sent, rule)
        }
    }
}
