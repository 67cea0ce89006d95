//! The one path of a call through the gate.

use crate::clock::Clock;
use crate::reply::{Passed, answer_of_record, answer_of_refusal, answer_ran, held, joined_answer};
use crate::upstream::{ProbeAnswer, Recorded, Sending, Sent, Upstream, upstream_key};
use crate::{Error, Gate};
use semel_core::answer::OutcomeWord;
use semel_core::class::Class;
use semel_core::decide::{Claiming, Decision, Refusal, Situation, decide};
use semel_core::digest::Digest;
use semel_core::effect::{Doubt, Effect, LastSend, NotAppliedWhy, Reply, SEND_WITHIN, State};
use semel_core::ids::AttemptNo;
use semel_core::intent::{Intent, NamedBy};
use semel_core::outcome::Outcome;
use semel_core::policy::Mode;
use semel_core::policy::rule::Rule;
use semel_core::time::At;
use semel_core::wording;
use semel_ledger::claim::{Claim, Claimed, FreeTurn, How, Unsettled, Wanted};
use semel_ledger::entropy::Entropy;
use semel_ledger::holders::Holders;
use semel_ledger::rulings::Probed;
use semel_ledger::store::{By, Durability, Hint, Revision, Store};
use semel_ledger::{Found, Late, journal};
use std::time::Duration;

/// An attempt without a timeout stops being merely slow after a day. Nothing is killed then; its answer still counts.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(24 * 3600);

/// A sender that was paused this close to its last moment does not send.
const SEND_MARGIN: Duration = Duration::from_secs(1);

/// How long settling is tried when the ledger cannot be written. Longer would only hide the trouble from the caller.
const SETTLE_PATIENCE: Duration = Duration::from_secs(5);

/// A holder's death wakes nobody, so waiters look again: soon at first, for the kill that just happened, then rarely.
const LOOK_AGAIN_FIRST: Duration = Duration::from_millis(25);
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(1);

/// A call that loses this many races in a row gives up: something spins.
const ROUNDS_MAX: usize = 10_000;

/// What one call has been through so far.
struct Call<'a, U> {
    intent: &'a Intent,
    rule: &'a Rule,
    upstream: &'a mut U,
    key: Digest,
    /// When waiting ends, on the monotonic clock.
    patience_ends: Duration,
    look_again: Duration,
    prepared: bool,
    asked_before: bool,
    /// The attempt that this call waited for.
    joined: Option<(u32, AttemptNo)>,
    /// The attempt that this call made itself, if its answer was not final.
    own: Option<Own>,
}

/// What this call has sent and cannot say the fate of, and the effect that it was sent for.
struct Own {
    effect: Effect,
    sent: Sent,
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
            return self.pass_through(intent, rule, upstream).await;
        }
        let key = match intent.alias {
            Some(alias) => self.ledger.alias(alias).await?.unwrap_or(intent.key),
            None => intent.key,
        };
        let mut call = Call {
            intent,
            rule,
            upstream,
            key,
            patience_ends: self.clock.elapsed() + rule.wait,
            look_again: LOOK_AGAIN_FIRST,
            prepared: false,
            asked_before: false,
            joined: None,
            own: None,
        };
        for _ in 0..ROUNDS_MAX {
            match (self.round(&mut call).await, &call.own) {
                (Ok(Some(passed)), _) => return Ok(passed),
                (Ok(None), _) => {}
                // Once something was sent, the ledger's trouble must not be told as "nothing was sent".
                (Err(Error::Ledger(error)), Some(Own { effect, sent })) => {
                    return Ok(Passed::unrecorded(effect, sent.clone(), &error));
                }
                (Err(error), None) => return Err(error),
            }
        }
        Err(Error::Ledger(semel_ledger::Error::NotWritten {
            what: format!("record {key} does not come to rest"),
        }))
    }

    /// One look at the ledger and one step. `None`: look again.
    async fn round<U: Upstream>(&self, call: &mut Call<'_, U>) -> Result<Option<Passed>, Error> {
        let now = self.clock.now();
        let (fence, fenced) = self.fence(call.intent).await?;
        let found = self.ledger.observe(call.key, now).await?;
        let situation =
            Situation { now, fenced, forgotten_before: self.forgotten_before(&found, now).await? };
        if let Some(passed) = self.known_result(call, &found, now).await? {
            return Ok(Some(passed));
        }
        match decide(found.effect(), call.intent, call.rule, &situation) {
            Decision::Pass => self.pass_through(call.intent, call.rule, call.upstream).await.map(Some),
            Decision::Claim(claiming) => self.claim(call, &found, How::Claim(claiming), fence).await,
            Decision::Resend => self.claim(call, &found, How::Resend, fence).await,
            Decision::Join(attempt) => {
                let effect = found.effect().expect("only a known effect is in flight");
                call.joined = Some((effect.occurrence.number, attempt));
                let waited = self.wait(call, found.key, found.revision).await;
                Ok((!waited).then(|| held(effect, wording::in_flight(effect, now), OutcomeWord::Held)))
            }
            Decision::Look => self.look(call, &found).await,
            Decision::Unremembered => {
                self.ledger.remember_doubt(call.intent, call.rule, &found, now).await?;
                Ok(None)
            }
            Decision::Replay(_) => Ok(Some(answer_of_record(found, OutcomeWord::Replayed, now))),
            Decision::ReplayEarlier(number) => {
                let reply = self.ledger.reply(found.key, number).await?;
                Ok(Some(match self.ledger.occurrence(found.key, number).await? {
                    Some(known) => {
                        let earlier = Found { newest: Some(known), reply, ..found };
                        answer_of_record(earlier, OutcomeWord::Replayed, now)
                    }
                    // Retention has dropped its fact; that it is in the list of reasons says enough.
                    None => {
                        let newest = Found { reply: None, ..found };
                        let mut passed = answer_of_record(newest, OutcomeWord::Replayed, now);
                        passed.answer.reason =
                            Some("done for this reason before; its record is no longer kept".into());
                        passed
                    }
                }))
            }
            // It was sent and is in doubt; that it may not be sent again is the smaller news.
            Decision::Refuse(_) if call.own.is_some() => Ok(Some(in_doubt(call, &found, None))),
            Decision::Refuse(refusal) => {
                if refusal == Refusal::Cancelled {
                    let intent = call.intent;
                    self.ledger.prevented(intent.run_key, &intent.action, &intent.subject, now).await?;
                }
                Ok(Some(answer_of_refusal(&found, refusal, call.intent, call.rule, now)))
            }
        }
    }

    async fn fence(&self, intent: &Intent) -> Result<(Option<(Digest, Revision)>, bool), Error> {
        let Some(run_key) = intent.run_key else { return Ok((None, false)) };
        let (key, revision, fence) = self.ledger.fence(run_key).await?;
        Ok((Some((key, revision)), fence.is_some_and(|fence| fence.cancelled)))
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

    /// The answer of the attempt that this call made or waited for, once it is known. What the class says about
    /// repeats is not asked: this is the same call, not a repeat.
    async fn known_result<U>(
        &self,
        call: &mut Call<'_, U>,
        found: &Found,
        now: At,
    ) -> Result<Option<Passed>, Error> {
        let made = call.own.as_ref().map(|own| own.effect.occurrence.number);
        let Some(occurrence) = made.or(call.joined.map(|(occurrence, _)| occurrence)) else {
            return Ok(None);
        };
        let newest = found.effect().map_or(0, |effect| effect.occurrence.number);
        if newest > occurrence {
            // The record has gone on meanwhile; an older effect takes no more marks.
            let newest = self.ledger.occurrence(found.key, occurrence).await?;
            if !newest.as_ref().is_some_and(|known| matches!(known.effect.state, State::Applied(_))) {
                return Ok(None);
            }
            let reply = self.ledger.reply(found.key, occurrence).await?;
            let older = Found { newest, reply, ..found.clone() };
            let passed = match call.own.take() {
                Some(own) => answer_ran(older, own.sent, now),
                None => joined_answer(older, now),
            };
            return Ok(Some(Passed { delivery: None, ..passed }));
        }
        let Some(effect) = found.effect().filter(|_| newest == occurrence) else { return Ok(None) };
        let joined = |effect: &Effect| {
            call.joined.is_some_and(|(_, joined)| effect.newest_attempt().is_some_and(|a| a.number == joined))
        };
        Ok(match (&effect.state, call.own.take()) {
            (State::Applied(_), Some(own)) => Some(answer_ran(found.clone(), own.sent, now)),
            (State::NotApplied(_), Some(own)) => Some(self.own_attempt_failed(own.sent, effect)),
            (State::Applied(_), None) => Some(joined_answer(found.clone(), now)),
            (State::NotApplied(_), None) if joined(effect) => Some(joined_answer(found.clone(), now)),
            (_, own) => {
                call.own = own;
                None
            }
        })
    }

    /// Waits for a change of a row or cell. `false`: patience is at its end.
    async fn wait<U>(&self, call: &mut Call<'_, U>, key: Digest, since: Revision) -> bool {
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

    async fn claim<U: Upstream>(
        &self,
        call: &mut Call<'_, U>,
        found: &Found,
        how: How,
        fence: Option<(Digest, Revision)>,
    ) -> Result<Option<Passed>, Error> {
        if matches!(how, How::Claim(_)) {
            if let Some(passed) = self.lookalike(call, found).await? {
                return Ok(Some(passed));
            }
            if let Some(passed) = self.already_there(call, found).await {
                return Ok(Some(passed));
            }
        }
        let turn = match self.turn(call).await? {
            Turn::None => None,
            Turn::Free(free) => Some(free),
            Turn::Waited => return Ok(None),
            Turn::Taken(passed) => return Ok(Some(*passed)),
        };
        if !call.prepared {
            if let Err(not_started) = call.upstream.prepare().await {
                return Ok(Some(Passed::not_started(found, not_started, call.rule)));
            }
            call.prepared = true;
        }
        let possible_repeat = matches!(how, How::Claim(Claiming::NextEffect { possible_repeat: true, .. }));
        let resend = matches!(how, How::Resend);
        let alias = match call.intent.alias {
            Some(alias) if self.ledger.alias(alias).await?.is_none() => Some(alias),
            _ => None,
        };
        let now = self.clock.now();
        let claimed_from = self.clock.elapsed();
        let wanted = Wanted {
            intent: call.intent,
            rule: call.rule,
            found,
            how,
            now,
            deadline: now.plus(call.rule.timeout.unwrap_or(DEADLINE_DEFAULT)),
            last_send: match call.upstream.sends_while_alive() {
                true => LastSend::WhileAlive,
                false => LastSend::By(now.plus(SEND_WITHIN)),
            },
            fence,
            turn,
            alias,
        };
        self.point("gate.before_claim")?;
        match self.ledger.claim(wanted).await? {
            Claimed::Moved => Ok(None),
            Claimed::Family(other) => self.family_open(call, other, now).await,
            Claimed::Won(claim) => {
                let mut passed = self.attempt(call, claim, claimed_from).await?;
                if let (Some(passed), true) = (&mut passed, possible_repeat && !resend) {
                    passed.answer.possible_repeat = true;
                }
                Ok(passed)
            }
        }
    }

    /// Sends and settles. `None`: the outcome is in doubt, look again.
    async fn attempt<U: Upstream>(
        &self,
        call: &mut Call<'_, U>,
        claim: Claim,
        claimed_from: Duration,
    ) -> Result<Option<Passed>, Error> {
        self.point("gate.after_claim")?;
        let attempt = claim.attempt();
        let claimed = claim.effect().clone();
        // Both clocks: others go by the wall clock when they judge that nothing can be sent any more.
        let past = match claim.effect().attempt(attempt).map(|attempt| attempt.last_send) {
            Some(LastSend::By(last)) => self.clock.now().plus(SEND_MARGIN) > last,
            _ => false,
        };
        let late = past || self.clock.elapsed().saturating_sub(claimed_from) + SEND_MARGIN > SEND_WITHIN;
        let mut sent = if late {
            let why =
                NotAppliedWhy::NeverSent("this process was paused past its last moment for sending".into());
            let outcome = Outcome::NotApplied { why, reply: Reply::Unknown };
            Sent { outcome, reply: None, data: serde_json::Value::Null }
        } else {
            let effect = claim.effect();
            let key = upstream_key(self.ledger.secret(), claim.key(), effect.occurrence.number);
            let recorded = Recorded { effect, attempt, idempotency_key: &key };
            let sending = Sending { recorded: Some(recorded), timeout: call.rule.timeout };
            self.point("gate.before_send")?;
            call.upstream.send(sending).await
        };
        if let Err(error) = self.point("gate.after_send") {
            return Ok(Some(Passed::unrecorded(claim.effect(), sent, &error)));
        }
        let mut claim = claim;
        let patience_ends = self.clock.elapsed() + SETTLE_PATIENCE;
        let mut pause = Duration::from_millis(5);
        let changed = loop {
            let settled = match self.point("gate.before_settle") {
                Ok(()) => {
                    self.ledger.settle(claim, &sent.outcome, sent.reply.as_deref(), self.clock.now()).await
                }
                Err(error) => Err(Unsettled { claim: Box::new(claim), error }),
            };
            match settled {
                Ok(changed) => break changed,
                Err(unsettled) if self.clock.elapsed() >= patience_ends => {
                    return Ok(Some(Passed::unrecorded(unsettled.claim.effect(), sent, &unsettled.error)));
                }
                Err(unsettled) => claim = *unsettled.claim,
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        };
        if let (Err(error), Some(effect)) = (self.point("gate.after_settle"), changed.found.effect()) {
            return Ok(Some(Passed::unrecorded(effect, sent, &error)));
        }
        let now = self.clock.now();
        match (changed.late, changed.found.effect().map(|effect| &effect.state)) {
            (Some(Late::MovedOn), Some(State::Applied(_))) => {
                // An older effect of its record takes no more marks.
                Ok(Some(Passed { delivery: None, ..answer_ran(changed.found, sent, now) }))
            }
            (Some(_), _) => Ok(Some(Passed::superseded(&claimed, sent))),
            (None, Some(State::InDoubt(_))) => {
                // Its data stays with the call: if a probe clears the doubt, the caller still gets what it printed.
                sent.reply = None;
                call.own = changed.found.effect().cloned().map(|effect| Own { effect, sent });
                call.upstream.let_go();
                call.patience_ends = call.patience_ends.max(self.clock.elapsed() + call.rule.wait);
                Ok(None)
            }
            _ => Ok(Some(answer_ran(changed.found, sent, now))),
        }
    }

    /// This call's own attempt turned out not to have happened. It is not made again here: the caller decides.
    fn own_attempt_failed(&self, sent: Sent, effect: &Effect) -> Passed {
        let mut passed = held(effect, wording::upstream_refused(effect), OutcomeWord::Ran);
        passed.answer.effect = semel_core::answer::EffectWord::None;
        passed.answer.data = sent.data;
        passed
    }

    /// Rule 11: nothing with the identity of an open effect starts in another scope.
    async fn family_open<U: Upstream>(
        &self,
        call: &mut Call<'_, U>,
        other: Digest,
        now: At,
    ) -> Result<Option<Passed>, Error> {
        let found = self.ledger.observe(other, now).await?;
        let Some(effect) = found.effect().filter(|effect| effect.is_open()) else { return Ok(None) };
        match effect.state {
            State::InFlight { .. } => {
                let waited = self.wait(call, other, found.revision).await;
                Ok((!waited).then(|| held(effect, wording::in_flight(effect, now), OutcomeWord::Held)))
            }
            _ => Ok(Some(held(effect, wording::in_doubt(effect), OutcomeWord::Held))),
        }
    }

    /// A lookalike of an in-doubt consequential effect in its scope is held, with the differing paths named.
    async fn lookalike<U>(&self, call: &Call<'_, U>, found: &Found) -> Result<Option<Passed>, Error> {
        if call.rule.class != Class::Consequential || call.intent.named_by != NamedBy::Arguments {
            return Ok(None);
        }
        let neighbours = By::OpenNeighbours(call.intent.neighbourhood);
        let page = self.ledger.list(neighbours, None, LOOKALIKES_MAX).await?;
        for (key, known) in page.items.into_iter().filter(|(key, _)| *key != found.key) {
            let now = self.clock.now();
            let looks_like = known.effect.marks.looks_like(&call.intent.marks);
            let Some(differing) = looks_like.filter(|_| known.effect.facts.class == Class::Consequential)
            else {
                continue;
            };
            let other = self.ledger.observe(key, now).await?;
            if let Some(effect) = other.effect().filter(|e| matches!(e.state, State::InDoubt(_))) {
                return Ok(Some(held(effect, wording::lookalike(effect, differing), OutcomeWord::Held)));
            }
        }
        Ok(None)
    }

    /// `before = true`: asks first, and skips what is already there.
    async fn already_there<U: Upstream>(&self, call: &mut Call<'_, U>, found: &Found) -> Option<Passed> {
        let probe = call.rule.probe.as_ref().filter(|probe| probe.before && !call.asked_before)?;
        call.asked_before = true;
        match call.upstream.probe(probe, None).await {
            ProbeAnswer::Yes { reply, .. } => Some(Passed::already_there(found, reply, call.rule)),
            ProbeAnswer::No | ProbeAnswer::Unknown { .. } => None,
        }
    }

    async fn turn<U: Upstream>(&self, call: &mut Call<'_, U>) -> Result<Turn, Error> {
        let Some(key) = call.intent.turn else { return Ok(Turn::None) };
        let now = self.clock.now();
        match self.ledger.turn(key, now).await? {
            Ok(free) => Ok(Turn::Free(free)),
            Err((revision, holder)) => {
                let waited = self.wait(call, key, revision).await;
                let effect = holder.effect();
                Ok(match (waited, effect) {
                    (true, _) | (false, None) => Turn::Waited,
                    (false, Some(effect)) => Turn::Taken(Box::new(held(
                        effect,
                        wording::turn_taken(Some(effect)),
                        OutcomeWord::Held,
                    ))),
                })
            }
        }
    }

    /// In doubt: probe if there is a way to, else hold. A "no" that does not count yet is asked again when it would.
    async fn look<U: Upstream>(
        &self,
        call: &mut Call<'_, U>,
        found: &Found,
    ) -> Result<Option<Passed>, Error> {
        let effect = found.effect().expect("only a known effect is in doubt");
        let Some(probe) = &call.rule.probe else { return Ok(Some(in_doubt(call, found, None))) };
        // A "no" speaks for the moment at which it was asked, and for the doubt that was read before.
        let asked_at = self.clock.now();
        // Attempts that are all known to have failed leave no unknown sender: one was refused after its deadline.
        let forgotten = effect.attempts.is_empty()
            || matches!(&effect.state, State::InDoubt(doubt) if doubt.why == Doubt::Epoch);
        let quiet = match forgotten && call.upstream.sends_while_alive() {
            // Nobody knows which process it was; it gets the time after which any is more than merely slow.
            true => probe.quiet.max(DEADLINE_DEFAULT),
            false => probe.quiet,
        };
        match call.upstream.probe(probe, Some(effect)).await {
            ProbeAnswer::Yes { reply, word } => {
                let word = word.unwrap_or(self.word_of(call.rule));
                self.ledger.probed(found, Probed::Yes { word, reply }, self.clock.now()).await?;
                Ok(None)
            }
            ProbeAnswer::No => {
                if self.ledger.probed(found, Probed::No { quiet }, asked_at).await?.is_some() {
                    return Ok(None);
                }
                let again = LOOK_AGAIN_MAX.min(probe.quiet.max(LOOK_AGAIN_FIRST));
                if self.clock.elapsed() + again > call.patience_ends {
                    let why = "a probe did not find it, but it may still be carried out";
                    return Ok(Some(in_doubt(call, found, Some(why.into()))));
                }
                self.clock.sleep(again).await;
                Ok(None)
            }
            ProbeAnswer::Unknown { why } => {
                Ok(Some(in_doubt(call, found, Some(format!("the probe could not tell: {why}")))))
            }
        }
    }

    fn word_of(&self, rule: &Rule) -> semel_core::answer::EffectWord {
        match &rule.effect {
            Some(semel_core::policy::rule::EffectWording::Word(word)) => *word,
            _ => semel_core::answer::EffectWord::Updated,
        }
    }

    /// Reads, and everything in observe mode: nothing is claimed, nothing is blocked.
    async fn pass_through<U: Upstream>(
        &self,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut U,
    ) -> Result<Passed, Error> {
        if self.mode == Mode::Observe && rule.class != Class::Read {
            let now = self.clock.now();
            // Observing must be safe to switch on anywhere: a ledger in trouble does not stop the call.
            if let Ok(would) = self.would(intent, rule).await {
                let data = serde_json::json!({
                    "would": would.would, "action": intent.action, "subject": intent.subject,
                });
                let line = journal::note("observed", None, intent.run_key, data, now);
                let _unrecorded_is_fine = self.ledger.note(line, Durability::Lazy).await;
            }
        }
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

/// The answer about a doubt: with what this call's own attempt printed, if it made one.
fn in_doubt<U>(call: &Call<'_, U>, found: &Found, why: Option<String>) -> Passed {
    let own = call.own.as_ref();
    let effect = found.effect().or(own.map(|own| &own.effect)).expect("only a known effect is in doubt");
    let mut passed = held(effect, wording::in_doubt(effect), OutcomeWord::Held);
    if let Some(own) = own {
        passed.answer.outcome = OutcomeWord::Ran;
        passed.answer.data = own.sent.data.clone();
    }
    passed.answer.reason = why;
    passed
}

/// Neighbours in doubt are few; a scope with more has other troubles.
const LOOKALIKES_MAX: usize = 100;

enum Turn {
    None,
    Free(FreeTurn),
    Waited,
    Taken(Box<Passed>),
}
