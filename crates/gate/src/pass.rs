//! The one path of a call through the gate.

use crate::begin::Handed;
use crate::clock::Clock;
use crate::led::key_of_another;
use crate::look::in_doubt;
use crate::observe::{Answered, Told};
use crate::reply::{
    Passed, answer_of_record, answer_of_refusal, answer_of_refused, answer_ran, held, joined_answer,
};
use crate::upstream::{Sending, Sent, Upstream};
use crate::{Error, Gate};
use semel_core::answer::{Answer, OutcomeWord};
use semel_core::class::Class;
use semel_core::decide::{Decision, Refusal, Replay, Situation, decide, wants_something_else};
use semel_core::digest::Digest;
use semel_core::effect::{Attempt, Doubt, Effect, NotApplied, NotAppliedWhy, Reply, State};
use semel_core::ids::{AttemptNo, Nonce, OwnerId};
use semel_core::intent::{Intent, NamedBy};
use semel_core::policy::Mode;
use semel_core::policy::rule::Rule;
use semel_core::repeat::{Became, Met, repeated_by};
use semel_core::time::At;
use semel_core::wording;
use semel_ledger::Found;
use semel_ledger::claim::How;
use semel_ledger::entropy::Entropy;
use semel_ledger::holders::Holders;
use semel_ledger::record::Known;
use semel_ledger::store::{Hint, Revision, Store};
use std::sync::Arc;
use std::time::Duration;

/// A holder's death wakes nobody, so waiters look again: soon at first, for the kill that just happened, then rarely.
pub(crate) const LOOK_AGAIN_FIRST: Duration = Duration::from_millis(25);
pub(crate) const LOOK_AGAIN_MAX: Duration = Duration::from_secs(1);

/// An answer that was not delivered this long after it was recorded was lost.
pub(crate) const DELIVERY_TAKES: Duration = Duration::from_secs(2);

/// How long after it was recorded an answer that another process gives may be unmarked although it has left. Those of
/// its own process are known to a door.
const MARK_TAKES: Duration = Duration::from_millis(100);

/// What failed just now may still be at work upstream, where its key is then answered "in use": sent again at once, the
/// whole budget would be gone within milliseconds. Twice as long each time.
const RESEND_PAUSE: Duration = Duration::from_millis(500);
const RESEND_PAUSE_MAX: Duration = Duration::from_secs(4);

/// A call that loses this many races in a row gives up: something spins.
pub(crate) const ROUNDS_MAX: usize = 10_000;

/// What one call has been through so far.
pub(crate) struct Call<'a, U> {
    pub(crate) intent: &'a Intent,
    pub(crate) rule: &'a Rule,
    pub(crate) upstream: &'a mut U,
    pub(crate) key: Digest,
    /// When waiting ends, on the monotonic clock.
    pub(crate) patience_ends: Duration,
    pub(crate) look_again: Duration,
    pub(crate) prepared: bool,
    pub(crate) asked_before: bool,
    /// The attempt that this call waited for.
    pub(crate) joined: Option<Joined>,
    /// The attempt that this call made itself, if its answer was not final.
    pub(crate) own: Option<Own>,
    /// The attempt after which this call has paused before sending again.
    pub(crate) paused: Option<AttemptNo>,
    /// The sender is a client that takes the claim away; this is its nonce.
    pub(crate) away: Option<Nonce>,
    /// The claim for it, once it is won.
    pub(crate) handed: Option<Box<Handed>>,
    /// The effect as it was last seen.
    pub(crate) seen: Option<Arc<Known>>,
    /// What was there of it before this call did anything.
    pub(crate) met: Option<Met>,
    /// A transport sent the call again.
    pub(crate) reissued: bool,
    /// The cell that comes to say, with the claim, what the caller's own key stands for, as it was when this call
    /// looked.
    pub(crate) claims_key: Option<(Digest, Revision)>,
    /// The cell of the caller's own key, if that stands for nothing so far.
    pub(crate) unbound: Option<Revision>,
    /// The effect before the newest one of its record that answers it.
    pub(crate) earlier: Option<u32>,
    /// This call has given another process the time to mark an answer.
    pub(crate) mark_awaited: bool,
    /// It has sent before its timeout passed, and looks what became of that.
    pub(crate) looks_again: bool,
}

impl<'a, U> Call<'a, U> {
    pub(crate) fn new(intent: &'a Intent, rule: &'a Rule, upstream: &'a mut U, now: Duration) -> Self {
        Call {
            intent,
            rule,
            upstream,
            key: intent.key,
            patience_ends: now + rule.wait,
            look_again: LOOK_AGAIN_FIRST,
            prepared: false,
            asked_before: false,
            joined: None,
            own: None,
            paused: None,
            away: None,
            handed: None,
            seen: None,
            met: None,
            reissued: false,
            claims_key: None,
            unbound: None,
            earlier: None,
            mark_awaited: false,
            looks_again: false,
        }
    }

    /// Whether this call is a deliberate repeat for another reason than this effect.
    fn wants_another(&self, effect: &Effect) -> bool {
        self.intent.again.as_ref().is_some_and(|reason| effect.occurrence.reason.as_ref() != Some(reason))
    }

    /// Whether sending again is the caller's own matter. A generation that failed before this call's eyes is asked for
    /// again by whoever wants it, after a pause of its own, and a part of it may have been given on already. One whose
    /// holder died is nobody's.
    fn leaves_resending(&self, found: &Found) -> bool {
        let newest =
            found.effect().and_then(|effect| effect.newest_attempt().map(|attempt| (effect, attempt)));
        let seen = newest.is_some_and(|(effect, attempt)| {
            let orphaned = matches!(&effect.state, State::InDoubt(doubt) if doubt.why == Doubt::HolderDied);
            self.joined == Some(Joined::to(found.key, effect, attempt.number)) && !orphaned
        });
        self.rule.class == Class::Generate && (self.own.is_some() || seen)
    }

    /// How long to wait before sending again: once after each attempt, whatever the clock does meanwhile.
    fn resend_pause(&mut self, found: &Found, now: At) -> Option<Duration> {
        let effect = found.effect()?;
        let newest = effect.newest_attempt()?.number;
        if self.paused.replace(newest) == Some(newest) {
            return None;
        }
        let doublings = u32::try_from(effect.attempts.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let whole = RESEND_PAUSE.saturating_mul(2_u32.saturating_pow(doublings)).min(RESEND_PAUSE_MAX);
        let left = whole.saturating_sub(now.since(effect.changed_at()));
        (!left.is_zero()).then_some(left)
    }

    /// Whether the success before a repeat is so young that its answer may still be on its way.
    fn waits_for_delivery(&self, found: &Found, now: At) -> bool {
        found.effect().is_some_and(|effect| {
            self.wants_another(effect) && now.since(effect.changed_at()) < DELIVERY_TAKES
        })
    }

    /// How long another process may still need to mark what looks undelivered, where a repeat of what was delivered
    /// would run. Asked once: clocks differ.
    fn waits_for_mark(&mut self, found: &Found, me: Option<OwnerId>, now: At) -> Option<Duration> {
        let effect = found.effect()?;
        let elsewhere = effect.newest_attempt().is_some_and(|attempt| Some(attempt.owner) != me);
        let runs = self.rule.class != Class::Consequential && self.intent.named_by != NamedBy::CallerKey;
        let left = MARK_TAKES.saturating_sub(now.since(effect.changed_at()));
        let waits = elsewhere && runs && !left.is_zero() && !std::mem::replace(&mut self.mark_awaited, true);
        waits.then_some(left)
    }
}

/// An attempt that was waited for. The call's own key may lead to another record meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Joined {
    record: Digest,
    occurrence: u32,
    attempt: AttemptNo,
}

impl Joined {
    fn to(record: Digest, effect: &Effect, attempt: AttemptNo) -> Joined {
        Joined { record, occurrence: effect.occurrence.number, attempt }
    }
}

/// What this call has sent and cannot say the fate of, and the effect that it was sent for.
pub(crate) struct Own {
    pub(crate) record: Digest,
    pub(crate) effect: Effect,
    pub(crate) sent: Sent,
}

impl<U: Upstream> Call<'_, U> {
    /// Whether it would be sent again for nobody. What converges does so as long as nothing else is written in between,
    /// and whoever has gone may have written since. A key says to the upstream that it is the same as before.
    fn is_left_alone(&self) -> bool {
        let converges = self.rule.class == Class::Convergent && self.rule.inject.is_none();
        converges && self.own.is_some() && !self.upstream.is_awaited()
    }
}

impl<S: Store, H: Holders, E: Entropy, C: Clock> Gate<S, H, E, C> {
    /// Passes one call: joins, replays, holds, refuses, or claims, sends and settles.
    pub async fn pass<U: Upstream>(
        &self,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut U,
    ) -> Result<Passed, Error> {
        if rule.class == Class::Read || self.mode == Mode::Observe {
            return Box::pin(self.pass_through(intent, rule, upstream)).await;
        }
        self.guarded(intent, rule, upstream).await
    }

    /// The path of whatever is recorded.
    pub(crate) async fn guarded<U: Upstream>(
        &self,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut U,
    ) -> Result<Passed, Error> {
        let came = self.clock.now();
        let mut call = Call::new(intent, rule, upstream, self.clock.elapsed());
        call.looks_again = call.upstream.has_sent();
        let mut passed = self.come_to_rest(&mut call).await;
        // What it sees may be held; but it was this very call that sent it.
        if let Ok(Passed { answer, .. }) = &mut passed
            && answer.outcome == OutcomeWord::Held
            && (call.looks_again || call.own.is_some())
        {
            answer.outcome = OutcomeWord::Ran;
        }
        match &passed {
            _ if !call.upstream.answers_first() => {}
            Ok(passed) => self.tell_answered(&call, &passed.answer, came),
            Err(_) => self.tell(&Told::Failed { intent }),
        }
        passed
    }

    async fn come_to_rest<U: Upstream>(&self, call: &mut Call<'_, U>) -> Result<Passed, Error> {
        for _ in 0..ROUNDS_MAX {
            match (self.round(call).await, &call.own) {
                (Ok(Some(passed)), _) => {
                    self.remember_answered(call, &passed.answer).await;
                    return Ok(passed);
                }
                (Ok(None), _) => {}
                // Once something was sent, the ledger's trouble must not be told as "nothing was sent".
                (Err(Error::Ledger(error)), Some(Own { effect, sent, .. })) => {
                    return Ok(Passed::unrecorded(effect, sent.data.clone(), &error));
                }
                (Err(error), None) => return Err(error),
            }
        }
        Err(Error::Ledger(semel_ledger::Error::NotWritten {
            what: format!("record {} does not come to rest", call.key),
        }))
    }

    pub(crate) fn tell_answered<U>(&self, call: &Call<'_, U>, answer: &Answer, came: At) {
        let seen = call.seen.as_ref().map(|known| &known.effect);
        let original = seen.filter(|effect| answer.effect_id == Some(effect.id)).and_then(|effect| {
            let by = match &effect.state {
                State::Applied(applied) => applied.by,
                _ => None,
            };
            let attempt = by.and_then(|by| effect.attempt(by)).or(effect.newest_attempt())?;
            Some((effect, attempt))
        });
        let collapsed =
            matches!(answer.outcome, OutcomeWord::Replayed | OutcomeWord::Joined | OutcomeWord::Held)
                || answer.possible_repeat;
        let elsewhere = |attempt: &Attempt| self.ledger.holders().me().is_ok_and(|me| me != attempt.owner);
        let joined_elsewhere =
            answer.outcome == OutcomeWord::Joined && original.is_some_and(|(_, attempt)| elsewhere(attempt));
        let looked_again = call.looks_again;
        let became =
            Became { collapsed: collapsed && !looked_again, reissued: call.reissued, joined_elsewhere };
        let layer = repeated_by(&call.intent.beside, call.met, became);
        let at = self.clock.now();
        let intent = call.intent;
        let answered = Answered { intent, answer, came, at, layer, looked_again, original };
        self.tell(&Told::Answered(&answered));
    }

    /// One look at the ledger and one step. `None`: look again. What few calls come to is boxed: it would have its room
    /// in all of them, and thousands may wait for one.
    pub(crate) async fn round<U: Upstream>(&self, call: &mut Call<'_, U>) -> Result<Option<Passed>, Error> {
        let now = self.clock.now();
        let (fences, fenced) = self.fence(call.intent).await?;
        let led = self.led_on(call, now).await?;
        (call.key, call.claims_key) = (led.key, led.claimed_with(call.intent));
        let found = self.ledger.observe(call.key, now).await?;
        let stands_for = self.stood_for(&led, &found).await?;
        call.unbound = led.unbound(stands_for, &found);
        call.seen = found.newest.clone();
        if call.met.is_none() && call.own.is_none() && !call.upstream.has_sent() {
            let met = |effect| Met::of(effect, call.intent, stands_for.is_some(), now);
            call.met = found.effect().and_then(met);
        }
        let forgotten_before = self.forgotten_before(&found, now).await?;
        let has_sent = call.own.is_some() || call.upstream.has_sent();
        let newest_on_record = self.newest_on_record(&found, call.rule).await?;
        let uptime = self.clock.uptime();
        let situation =
            Situation { now, uptime, newest_on_record, fenced, forgotten_before, has_sent, stands_for };
        if let Some(passed) = self.known_result(call, &found, &situation).await? {
            return Ok(Some(passed));
        }
        if let (Some(refusal), false) = (key_of_another(call.intent, &found, stands_for), fenced) {
            return Ok(Some(answer_of_refusal(&found, refusal, call.intent, call.rule)));
        }
        match decide(found.effect(), call.intent, call.rule, &situation) {
            Decision::Pass => {
                Box::pin(self.pass_through(call.intent, call.rule, call.upstream)).await.map(Some)
            }
            // Its claim was lost and nobody distrusts the store any more; still, this call has sent once.
            Decision::Claim(_) if call.own.is_some() => Ok(Some(in_doubt(call, &found, None))),
            // What this call has sent did not happen, or it happened and somebody else has the answer. It is not made
            // again here: the caller decides.
            Decision::Claim(_) if has_sent && found.effect().is_some() => {
                Ok(Some(self.sent_before(found, call.intent, call.rule, now)))
            }
            Decision::Claim(claiming) => {
                Box::pin(self.claim(call, &found, How::Claim(claiming), fences)).await
            }
            Decision::Resend if call.leaves_resending(&found) => Ok(Some(in_doubt(call, &found, None))),
            // To ask changes nothing, whoever has gone.
            Decision::Resend if call.is_left_alone() => Box::pin(self.look(call, &found)).await,
            Decision::Resend => match call.resend_pause(&found, now) {
                Some(pause) => {
                    self.clock.sleep(pause).await;
                    Ok(None)
                }
                None => match self.fences_of_resend(call, &found).await? {
                    // Nothing more starts in a run that was cancelled, whoever asks for it.
                    (_, true) => Ok(Some(in_doubt(call, &found, None))),
                    (fences, false) => Box::pin(self.claim(call, &found, How::Resend, fences)).await,
                },
            },
            Decision::Join(attempt) => {
                let effect = found.effect().expect("only a known effect is in flight");
                let joined = Some(Joined::to(found.key, effect, attempt));
                if call.joined != joined && !call.wants_another(effect) {
                    call.upstream.joins(effect, attempt);
                }
                call.joined = joined;
                let waited = self.wait(call, found.key, found.revision).await;
                Ok((!waited).then(|| held(effect, wording::in_flight(effect, now), OutcomeWord::Held)))
            }
            Decision::Look => Box::pin(self.look(call, &found)).await,
            Decision::Unremembered => {
                Box::pin(self.ledger.remember_doubt(call.intent, call.rule, &found, now)).await?;
                Ok(None)
            }
            // The one before it was done just now, and its answer is on its way to somebody else.
            Decision::Replay(Replay::Undelivered)
                if call.waits_for_delivery(&found, now)
                    && self.wait(call, found.key, found.revision).await =>
            {
                Ok(None)
            }
            Decision::Replay(replay) => {
                if replay == Replay::Undelivered
                    && let Some(left) = call.waits_for_mark(&found, self.ledger.holders().me().ok(), now)
                {
                    self.ledger.store().changed(found.key, found.revision, left).await;
                    return Ok(None);
                }
                // The same reason again stands for what it made, which may be gone as well.
                let delivered = found.effect().is_some_and(|effect| effect.delivered_at.is_some());
                if delivered
                    && matches!(replay, Replay::Repeat | Replay::SameOccurrence)
                    && let Some(held) = Box::pin(self.superseded(call.intent, call.rule, &found)).await?
                {
                    return Ok(Some(held));
                }
                call.reissued = replay == Replay::Reissue;
                let found = match (replay, &call.intent.again) {
                    // Its retry must get the same, also once this one was delivered.
                    (Replay::Undelivered, Some(reason)) => {
                        match Box::pin(self.ledger.adopt(&found, reason, now)).await {
                            Ok(Some(adopted)) => Found { reply: found.reply, ..adopted },
                            Ok(None) => return Ok(None),
                            // A repeat is answered also by a ledger that cannot be written.
                            Err(_) => found,
                        }
                    }
                    _ => found,
                };
                Ok(Some(answer_of_record(found, call.intent, call.rule, OutcomeWord::Replayed, now)))
            }
            Decision::ReplayRefusal => Ok(Some(answer_of_refused(found, OutcomeWord::Replayed))),
            Decision::ReplayEarlier(number, replay) => {
                call.reissued = replay == Replay::Reissue;
                call.earlier = Some(number);
                Box::pin(self.answer_of_earlier(call.intent, call.rule, found, number, replay))
                    .await
                    .map(Some)
            }
            // It was sent and is in doubt; that it may not be sent again is the smaller news.
            Decision::Refuse(_) if call.own.is_some() => Ok(Some(in_doubt(call, &found, None))),
            Decision::Refuse(refusal) => {
                let unfenced = Situation { fenced: false, ..situation };
                // What is answered from the record, or is happening already, was not kept from anything.
                let would_start = || {
                    let decision = decide(found.effect(), call.intent, call.rule, &unfenced);
                    matches!(decision, Decision::Claim(_) | Decision::Resend)
                };
                if refusal == Refusal::Cancelled && would_start() {
                    let intent = call.intent;
                    let (run, action, subject) = (intent.run_key, &intent.action, &intent.subject);
                    Box::pin(self.ledger.prevented(run, action, subject, now)).await?;
                }
                Ok(Some(answer_of_refusal(&found, refusal, call.intent, call.rule)))
            }
        }
    }

    /// The answer of an effect before the newest one of its record.
    async fn answer_of_earlier(
        &self,
        intent: &Intent,
        rule: &Rule,
        found: Found,
        number: u32,
        replay: Replay,
    ) -> Result<Passed, Error> {
        let now = self.clock.now();
        let reply = self.ledger.reply(found.key, number).await?;
        let Some(mut known) = self.ledger.occurrence(found.key, number).await? else {
            // Retention has dropped its fact; that it is among what came before says enough. Of the newest effect
            // nothing is told, and its answer is not delivered by this.
            let newest = Found { reply: None, ..found };
            let Passed { answer, reply, .. } =
                answer_of_record(newest, intent, rule, OutcomeWord::Replayed, now);
            let reason = Some("done before; its record is no longer kept".into());
            let (effect_id, attempt, evidence) = (None, None, None);
            let answer = Answer { effect_id, attempt, evidence, reason, undone_by: None, ..answer };
            return Ok(Passed { answer, reply, delivery: None });
        };
        if known.effect.marks.fingerprint != intent.marks.fingerprint {
            let paths = known.effect.marks.differing(&intent.marks);
            let earlier = Found { newest: Some(Arc::new(known)), reply: None, ..found };
            return Ok(answer_of_refusal(&earlier, Refusal::Drift { paths }, intent, rule));
        }
        known.effect = self.ledger.as_known_since(known.effect).await?;
        let disproved = !matches!(known.effect.state, State::Applied(_));
        let earlier = Found { newest: Some(Arc::new(known)), reply, ..found };
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

    /// What became of something that this call sent when it last looked.
    fn sent_before(&self, found: Found, intent: &Intent, rule: &Rule, now: At) -> Passed {
        match found.effect() {
            Some(effect) if matches!(effect.state, State::NotApplied(_)) => self.did_not_happen(effect),
            _ => joined_answer(found, intent, rule, now),
        }
    }

    /// Rule 9: whether a claim of this record may have been lost since it was last known to be whole.
    pub(crate) async fn forgotten_before(&self, found: &Found, now: At) -> Result<Option<At>, Error> {
        if found.effect().is_some_and(|effect| effect.is_whole_in(found.epoch.0))
            || found.epoch == Revision::ABSENT
        {
            return Ok(None);
        }
        let (_, epoch) = self.ledger.epoch().await?;
        Ok(epoch.and_then(|epoch| epoch.forgotten_before(now)))
    }

    /// Rule 7: the newest instant on record, where the life of an upstream's key decides. The clock may be behind it.
    pub(crate) async fn newest_on_record(&self, found: &Found, rule: &Rule) -> Result<Option<At>, Error> {
        let in_doubt = found.effect().is_some_and(|effect| matches!(effect.state, State::InDoubt(_)));
        if !in_doubt || rule.inject.as_ref().is_none_or(|inject| inject.valid_for.is_none()) {
            return Ok(None);
        }
        Ok(self.ledger.newest_instant().await?)
    }

    /// The answer of the attempt that this call made or waited for, once it is known. What the class says about
    /// repeats is not asked: this is the same call, not a repeat.
    async fn known_result<U: Upstream>(
        &self,
        call: &mut Call<'_, U>,
        found: &Found,
        situation: &Situation,
    ) -> Result<Option<Passed>, Error> {
        let Situation { now, fenced, .. } = *situation;
        // A generation of a run that was cancelled was ended from here; nobody refused it.
        let ended = fenced && call.rule.class == Class::Generate;
        let made = call.own.as_ref().map(|own| own.effect.occurrence.number);
        let waited_for = call.joined.filter(|joined| joined.record == found.key);
        let Some(occurrence) = made.or(waited_for.map(|joined| joined.occurrence)) else {
            return Ok(None);
        };
        let newest = found.effect().map_or(0, |effect| effect.occurrence.number);
        if newest > occurrence {
            // The record has gone on meanwhile; an older effect takes no more marks.
            let newest = self.ledger.occurrence(found.key, occurrence).await?.map(Arc::new);
            let answers = |effect: &Effect| {
                matches!(effect.state, State::Applied(_))
                    && (call.own.is_some() || !call.wants_another(effect))
            };
            if !newest.as_ref().is_some_and(|known| answers(&known.effect)) {
                return Ok(None);
            }
            let reply = self.ledger.reply(found.key, occurrence).await?;
            let older = Found { newest, reply, ..found.clone() };
            let passed = match call.own.take() {
                Some(own) => answer_ran(older, own.sent, now),
                None => joined_answer(older, call.intent, call.rule, now),
            };
            return Ok(Some(Passed { delivery: None, ..passed }));
        }
        let Some(effect) = found.effect().filter(|_| newest == occurrence) else { return Ok(None) };
        let joined = |effect: &Effect| {
            waited_for
                .is_some_and(|joined| effect.newest_attempt().is_some_and(|a| a.number == joined.attempt))
        };
        Ok(match (&effect.state, call.own.take()) {
            (State::Applied(_), Some(own)) => Some(answer_ran(found.clone(), own.sent, now)),
            (State::NotApplied(_), Some(own)) => Some(self.own_attempt_failed(own.sent, effect)),
            // A repeat for a reason of its own waits for its turn to be one; it is not the effect that it waited for.
            (State::Applied(_), None) if call.wants_another(effect) => None,
            (State::Applied(_), None) => Some(joined_answer(found.clone(), call.intent, call.rule, now)),
            // The upstream's own answer is everybody's; what a probe or a person found lets this call run.
            (State::NotApplied(NotApplied { why, reply, .. }), None)
                if joined(effect)
                    && !ended
                    && !(*reply != Reply::Kept && call.upstream.says_more_than_its_twin())
                    && matches!(
                        why,
                        NotAppliedWhy::Refused(_) | NotAppliedWhy::Reported(_) | NotAppliedWhy::NeverSent(_)
                    )
                    && wants_something_else(effect, call.intent, call.rule, situation).is_none() =>
            {
                Some(joined_answer(found.clone(), call.intent, call.rule, now))
            }
            (_, own) => {
                call.own = own;
                None
            }
        })
    }

    /// Waits for a change of a row or cell. `false`: patience is at its end.
    pub(crate) async fn wait<U>(&self, call: &mut Call<'_, U>, key: Digest, since: Revision) -> bool {
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
    async fn pass_through<U: Upstream>(
        &self,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut U,
    ) -> Result<Passed, Error> {
        if self.mode == Mode::Observe {
            self.observed(intent, rule).await;
        }
        self.tell(&Told::PassedThrough { intent });
        Ok(unrecorded(rule, upstream).await)
    }
}

/// Sends without claiming or recording: reads, also when there is no ledger to ask, and everything in observe mode.
pub async fn unrecorded<U: Upstream>(rule: &Rule, upstream: &mut U) -> Passed {
    match upstream.prepare().await {
        Err(not_started) => Passed::not_started_alone(not_started, rule),
        Ok(()) => {
            let sent = upstream.send(Sending { recorded: None, timeout: rule.timeout }).await;
            Passed::passed_through(sent, rule)
        }
    }
}
