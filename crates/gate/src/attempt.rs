//! One attempt: its turn, its claim, sending, settling.

use crate::begin::Handed;
use crate::clock::Clock;
use crate::look::in_doubt_until_sent;
use crate::lookalike::Compared;
use crate::observe::{Settling, Told};
use crate::pass::{Call, Own};
use crate::reply::{GivenReply, Passed, answer_of_record, answer_ran, held};
use crate::upstream::{Recorded, Seen, Sending, Sent, Upstream, upstream_key};
use crate::{Error, Gate};
use semel_core::answer::{Answer, OutcomeWord};
use semel_core::beside::Beside;
use semel_core::class::Class;
use semel_core::decide::Claiming;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, LastSend, NotAppliedWhy, Reply, SEND_WITHIN, State};
use semel_core::ids::AttemptNo;
use semel_core::lifecycle::Alarm;
use semel_core::outcome::Outcome;
use semel_core::policy::prices::Tokens;
use semel_core::time::At;
use semel_core::undo::{Filling, Undo};
use semel_core::wording;
use semel_ledger::claim::{Claim, Claimed, FreeTurn, How, Sender, Unsettled, Wanted};
use semel_ledger::entropy::Entropy;
use semel_ledger::holders::Holders;
use semel_ledger::store::{Revision, Store};
use semel_ledger::{Changed, Found, Late};
use std::sync::Arc;
use std::time::Duration;

/// An attempt without a timeout stops being merely slow after a day. Nothing is killed then; its answer still counts.
pub(crate) const DEADLINE_DEFAULT: Duration = Duration::from_secs(24 * 3600);

/// The longest answers of models take less. What could not be settled is generated again after it, at the latest.
const DEADLINE_GENERATE: Duration = Duration::from_secs(3600);

/// The loudest alarm there is.
pub(crate) const DUPLICATE: &str =
    "duplicate_detected: two attempts of this effect succeeded, so it happened twice";

/// A sender that was paused this close to its last moment does not send.
const SEND_MARGIN: Duration = Duration::from_secs(1);

/// How long settling is tried when the ledger cannot be written. Longer would only hide the trouble from the caller.
pub(crate) const SETTLE_PATIENCE: Duration = Duration::from_secs(5);

impl<S: Store, H: Holders, E: Entropy, C: Clock> Gate<S, H, E, C> {
    /// Takes the claim and sends, unless something speaks against it. `None`: something moved, look again.
    pub(crate) async fn claim<U: Upstream>(
        &self,
        call: &mut Call<'_, U>,
        found: &Found,
        how: How,
        fences: Vec<(Digest, Revision)>,
    ) -> Result<Option<Passed>, Error> {
        // What most calls do not need is boxed: it would have its room in all of them.
        let alike = match how {
            How::Resend => None,
            How::Claim(_) => match Box::pin(self.compare(call, found.key)).await? {
                Compared::Clear(seen) => seen,
                Compared::Waited => return Ok(None),
                Compared::Held(passed) => return Ok(Some(*passed)),
            },
        };
        if matches!(how, How::Claim(_))
            && let Some(passed) = Box::pin(self.already_there(call, found)).await
        {
            return Ok(Some(passed));
        }
        let turn = match call.intent.turn {
            None => None,
            Some(key) => match Box::pin(self.turn(call, key)).await? {
                Turn::Free(free) => Some(free),
                Turn::Waited => return Ok(None),
                Turn::Taken(passed) => return Ok(Some(*passed)),
            },
        };
        let mut ready = Ok(());
        if !call.prepared {
            ready = call.upstream.prepare().await;
            call.prepared = ready.is_ok();
        }
        if ready.is_ok() {
            ready = call.upstream.may_still_send().await;
        }
        if let Err(not_started) = ready {
            // Nothing more is sent, and what was sent before is as unclear as it was.
            if matches!(how, How::Resend) {
                return Ok(Some(in_doubt_until_sent(call, found)));
            }
            return Ok(Some(Passed::not_started(found, not_started, call.rule)));
        }
        let possible_repeat = matches!(how, How::Claim(Claiming::NextEffect { possible_repeat: true, .. }));
        let resend = matches!(how, How::Resend);
        let now = self.clock.now();
        let claimed_from = self.clock.elapsed();
        let deadline = now.plus(call.rule.timeout.unwrap_or(match call.rule.class {
            Class::Generate => DEADLINE_GENERATE,
            _ => DEADLINE_DEFAULT,
        }));
        let wanted = Wanted {
            intent: call.intent,
            rule: call.rule,
            found,
            how,
            now,
            uptime: self.clock.uptime(),
            deadline,
            last_send: match call.upstream.sends_while_alive() {
                // What a client does with a claim that it took away, it does by the deadline.
                _ if call.away.is_some() => LastSend::By(deadline),
                true => LastSend::WhileAlive,
                false => LastSend::By(now.plus(SEND_WITHIN)),
            },
            fences,
            turn,
            alias: call.claims_key,
            alike,
            sender: call.away.map_or(Sender::Here, Sender::Away),
        };
        self.point("gate.before_claim")?;
        let claimed = self.ledger.claim(&wanted).await?;
        if let Claimed::Won(_) = &claimed {
            self.tell(&Told::Claimed { took: self.clock.elapsed().saturating_sub(claimed_from) });
        }
        match claimed {
            Claimed::Moved => Ok(None),
            Claimed::Family(other) => Box::pin(self.family_open(call, other, now)).await,
            Claimed::Won(claim) if call.away.is_some() => {
                call.handed = Some(Box::new(Handed { claim, possible_repeat }));
                Ok(None)
            }
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
        mut claim: Claim,
        claimed_from: Duration,
    ) -> Result<Option<Passed>, Error> {
        self.point("gate.after_claim")?;
        let attempt = claim.attempt();
        let claimed = Arc::clone(claim.known());
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
            let outcome = Outcome::NotApplied { why, reply: Reply::Unknown };
            Sent { outcome, reply: None, data: serde_json::Value::Null }
        } else {
            let effect = claim.effect();
            let (number, refusals) = (effect.occurrence.number, effect.refusals);
            let key = upstream_key(self.ledger.secret(), claim.key(), number, refusals, call.rule);
            let recorded = Recorded { effect, attempt, idempotency_key: &key };
            let sending = Sending { recorded: Some(recorded), timeout: call.rule.timeout };
            self.point("gate.before_send")?;
            self.tell(&Told::Sent { intent: call.intent });
            // Whether it can be reached once more is asked anew.
            call.prepared = false;
            call.upstream.send(sending).await
        };
        if let Err(error) = self.point("gate.after_send") {
            return Ok(Some(Passed::unrecorded(claim.effect(), sent.data, &error)));
        }
        let answered_at = self.clock.elapsed();
        if let (Outcome::Applied { .. }, Some(undo)) = (&sent.outcome, fill_in_undo(call)) {
            claim.keep_undo(undo);
        }
        claim.describe(call.upstream.described());
        let patience_ends = answered_at + SETTLE_PATIENCE;
        let mut pause = Duration::from_millis(5);
        let changed = loop {
            let settled = match self.point("gate.before_settle") {
                // Boxed, since it would have its room while the answer is waited for.
                Ok(()) => {
                    let (outcome, reply) = (&sent.outcome, sent.reply.as_deref());
                    Box::pin(self.ledger.settle(claim, outcome, reply, self.clock.now())).await
                }
                Err(error) => Err(Unsettled { claim: Box::new(claim), error }),
            };
            match settled {
                Ok(changed) => break changed,
                Err(unsettled) if self.clock.elapsed() >= patience_ends => {
                    let Unsettled { claim, error } = unsettled;
                    let passed = Passed::unrecorded(claim.effect(), sent.data, &error);
                    self.owes(*claim, sent.outcome, sent.reply);
                    return Ok(Some(passed));
                }
                Err(unsettled) => claim = *unsettled.claim,
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        };
        if let (Err(error), Some(effect)) = (self.point("gate.after_settle"), changed.found.effect()) {
            return Ok(Some(Passed::unrecorded(effect, sent.data, &error)));
        }
        let now = self.clock.now();
        let took = self.clock.elapsed().saturating_sub(answered_at);
        let by = Some((&call.intent.beside, call.upstream.used()));
        self.tell_settled(&changed, attempt, &sent.outcome, took, by);
        if changed.alarm == Some(Alarm::DuplicateDetected) {
            let mut passed = answer_ran(changed.found, sent, now);
            passed.answer.reason = Some(DUPLICATE.into());
            return Ok(Some(passed));
        }
        match (changed.late, changed.found.effect().map(|effect| &effect.state)) {
            (Some(Late::MovedOn), Some(State::Applied(_))) => {
                // An older effect of its record takes no more marks.
                Ok(Some(Passed { delivery: None, ..answer_ran(changed.found, sent, now) }))
            }
            (Some(_), _) => Ok(Some(Passed::superseded(&claimed.effect, sent))),
            (None, Some(State::InDoubt(_))) => {
                // Its data stays with the call: if a probe clears the doubt, the caller still gets what it printed.
                sent.reply = None;
                call.own = changed.found.effect().cloned().map(|effect| Own {
                    record: changed.found.key,
                    effect,
                    sent,
                });
                call.upstream.let_go();
                call.patience_ends = call.patience_ends.max(self.clock.elapsed() + call.rule.wait);
                Ok(None)
            }
            // Another attempt was first with the answer, and that is the answer.
            (None, Some(State::Applied(applied)))
                if call.rule.class == Class::Generate && applied.by.is_some_and(|by| by != attempt) =>
            {
                Ok(Some(answer_of_record(changed.found, call.intent, call.rule, OutcomeWord::Joined, now)))
            }
            _ => Ok(Some(answer_ran(changed.found, sent, now))),
        }
    }

    pub(crate) fn tell_settled(
        &self,
        changed: &Changed,
        attempt: AttemptNo,
        outcome: &Outcome,
        took: Duration,
        by: Option<(&Beside, Option<Tokens>)>,
    ) {
        let Some(effect) = changed.found.effect() else { return };
        let Some(attempt) = effect.attempt(attempt) else { return };
        let duplicate = changed.alarm == Some(Alarm::DuplicateDetected);
        let at = self.clock.now();
        let (beside, used) = (by.map(|(beside, _)| beside), by.and_then(|(_, used)| used));
        let settling = Settling { effect, attempt, outcome, at, duplicate, took, beside, used };
        self.tell(&Told::Settled(&settling));
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

    async fn turn<U: Upstream>(&self, call: &mut Call<'_, U>, key: Digest) -> Result<Turn, Error> {
        let now = self.clock.now();
        match self.ledger.turn(key, now).await? {
            Ok(free) => Ok(Turn::Free(free)),
            Err((revision, holder)) => {
                let waited = self.wait(call, key, revision).await;
                let effect = holder.effect();
                Ok(match (waited, effect) {
                    (true, _) | (false, None) => Turn::Waited,
                    // What another does is none of this caller's business.
                    (false, Some(effect)) if effect.facts.principal != call.intent.principal => {
                        let trouble = wording::turn_taken(None);
                        let answer = Answer::of_trouble(call.rule.tier(), OutcomeWord::Held, trouble);
                        Turn::Taken(Box::new(Passed { answer, reply: GivenReply::None, delivery: None }))
                    }
                    (false, Some(effect)) => Turn::Taken(Box::new(held(
                        effect,
                        wording::turn_taken(Some(effect)),
                        OutcomeWord::Held,
                    ))),
                })
            }
        }
    }
}

/// How an effect that has just been seen to be there can be taken back, where its rule says how.
pub(crate) fn fill_in_undo<U: Upstream>(call: &Call<'_, U>) -> Option<Undo> {
    let undo = call.rule.undo.as_ref()?;
    let Some(seen) = call.upstream.seen() else {
        return Some(Undo::Not("what it answered is not known".into()));
    };
    let Seen { places, cwd } = &seen;
    let (action, secret) = (&call.intent.action, &call.rule.sorting.secret);
    Some(Undo::fill_in(undo, &Filling { action, places, secret, cwd }))
}

enum Turn {
    Free(FreeTurn),
    Waited,
    Taken(Box<Passed>),
}
