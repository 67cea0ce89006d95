//! For code that sends by itself: the claim is handed out, and comes back with the answer.

use crate::attempt::{DUPLICATE, SETTLE_PATIENCE};
use crate::clock::Clock;
use crate::observe::Told;
use crate::pass::{Call, ROUNDS_MAX};
use crate::reply::{Passed, answer_ran, held};
use crate::upstream::{Sent, Upstream, upstream_key};
use crate::{Error, Gate};
use semel_core::answer::OutcomeWord;
use semel_core::beside::Layer;
use semel_core::class::{Class, Tier};
use semel_core::digest::Digest;
use semel_core::effect::{Attempt, Effect, NotApplied, NotAppliedWhy, State, Verdict};
use semel_core::ids::{AttemptNo, EffectId, Nonce, OwnerId};
use semel_core::intent::Intent;
use semel_core::lifecycle::Alarm;
use semel_core::outcome::Outcome;
use semel_core::policy::Mode;
use semel_core::policy::rule::Rule;
use semel_core::repeat::{Became, repeated_by};
use semel_core::time::At;
use semel_core::undo::Undo;
use semel_core::wording;
use semel_ledger::claim::{Claim, Unsettled};
use semel_ledger::entropy::Entropy;
use semel_ledger::holders::Holders;
use semel_ledger::store::Store;
use semel_ledger::{Changed, Found, Late};
use std::time::Duration;

/// A claim on its way to the client that will send.
#[derive(Debug)]
pub(crate) struct Handed {
    pub(crate) claim: Claim,
    pub(crate) possible_repeat: bool,
}

/// What became of a wish to send.
#[derive(Debug)]
pub enum Begun {
    /// Send it now, then settle.
    Run(Box<Taken>),
    /// Send it; nothing is recorded, and there is nothing to settle. A read, or observe mode.
    Unrecorded,
    /// Do not send: this is the answer.
    Answered(Box<Passed>),
}

/// What a client takes away: all that names the attempt when it comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub effect: EffectId,
    pub attempt: AttemptNo,
    pub nonce: Nonce,
    pub deadline: At,
    pub tier: Tier,
    /// For the upstream: one per effect, not per attempt.
    pub idempotency_key: String,
    pub possible_repeat: bool,
}

/// What the holder of an attempt brings back.
#[derive(Debug, Clone)]
pub struct Settlement {
    pub effect: EffectId,
    pub attempt: AttemptNo,
    pub nonce: Nonce,
    /// A client that took its claim away, or this very process, which has heard another answer since.
    pub holder: OwnerId,
    pub sent: Sent,
    /// How it can be taken back, if it happened.
    pub undo: Option<Undo>,
}

/// What became of it.
#[derive(Debug)]
pub enum Settled {
    /// It is on record, now or since an earlier time that it was brought.
    Recorded(Box<Passed>),
    /// A success is on record, of which it is not believed any more that it did not happen, or one that was disproved.
    Otherwise(Box<Effect>),
    NoSuchClaim,
}

impl<S: Store, H: Holders, E: Entropy, C: Clock> Gate<S, H, E, C> {
    /// Claims for a client that sends by itself. Asking again with the same nonce gets the same claim, as long as it is
    /// in flight: so a client whose answer was lost loses nothing (rule 15).
    pub async fn begin<U: Upstream>(
        &self,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut U,
        nonce: Nonce,
    ) -> Result<Begun, Error> {
        if rule.class == Class::Read || self.mode == Mode::Observe {
            if self.mode == Mode::Observe {
                self.observed(intent, rule).await;
            }
            self.tell(&Told::PassedThrough { intent });
            return Ok(Begun::Unrecorded);
        }
        let came = self.clock.now();
        let mut call = Call::new(intent, rule, upstream, self.clock.elapsed());
        call.away = Some(nonce);
        for _ in 0..ROUNDS_MAX {
            if let Some(taken) = self.taken_before(intent, rule, nonce).await? {
                let layer = Some(Layer::Transport);
                self.tell(&Told::Begun { intent, again: true, layer });
                return Ok(Begun::Run(Box::new(taken)));
            }
            let passed = match self.round(&mut call).await {
                Ok(passed) => passed,
                Err(error) => {
                    self.tell(&Told::Failed { intent });
                    return Err(error);
                }
            };
            if let Some(handed) = call.handed.take() {
                let Handed { claim, possible_repeat } = *handed;
                let attempt = claim.effect().attempt(claim.attempt()).cloned();
                let attempt = attempt.expect("a claimed effect has its attempt");
                // The claim itself ends here: it lives on in the client's hands, and comes back by its nonce.
                let taken = self.taken(claim.key(), claim.effect(), &attempt, rule);
                let became = Became { collapsed: possible_repeat, ..Became::default() };
                let layer = repeated_by(&intent.beside, call.met, became);
                self.tell(&Told::Begun { intent, again: false, layer });
                return Ok(Begun::Run(Box::new(Taken { possible_repeat, ..taken })));
            }
            if let Some(passed) = passed {
                self.remember_answered(&call, &passed.answer).await;
                self.tell_answered(&call, &passed.answer, came);
                return Ok(Begun::Answered(Box::new(passed)));
            }
        }
        let what = format!("record {} does not come to rest", intent.key);
        Err(Error::Ledger(semel_ledger::Error::NotWritten { what }))
    }

    /// The claim that this very wish has got before.
    async fn taken_before(&self, intent: &Intent, rule: &Rule, nonce: Nonce) -> Result<Option<Taken>, Error> {
        let aliased = match intent.alias {
            Some(alias) => self.ledger.alias(alias).await?.1.map(|known| known.key),
            None => None,
        };
        let found = self.ledger.find(aliased.unwrap_or(intent.key)).await?;
        let Some((effect, attempt)) =
            found.effect().and_then(|effect| Some((effect, effect.open_attempt()?)))
        else {
            return Ok(None);
        };
        let mine = attempt.nonce == nonce
            && attempt.owner == OwnerId::AWAY
            && effect.marks.fingerprint == intent.marks.fingerprint
            && self.clock.now() < attempt.deadline;
        // Nothing starts in a run that was cancelled, not even what was claimed before.
        if !mine || self.fence(intent).await?.1 {
            return Ok(None);
        }
        Ok(Some(self.taken(found.key, effect, attempt, rule)))
    }

    fn taken(&self, key: Digest, effect: &Effect, attempt: &Attempt, rule: &Rule) -> Taken {
        Taken {
            effect: effect.id,
            attempt: attempt.number,
            nonce: attempt.nonce,
            deadline: attempt.deadline,
            tier: effect.facts.tier,
            // What a client says was refused semel has not seen.
            idempotency_key: upstream_key(self.ledger.secret(), key, effect.occurrence.number, 0, rule),
            possible_repeat: false,
        }
    }

    /// Records what a holder brings back. Bringing it again is answered alike.
    pub async fn settle(&self, settlement: Settlement) -> Result<Settled, Error> {
        let Settlement { effect, attempt, nonce, holder, sent, undo } = settlement;
        let Some(mut claim) = self.ledger.claim_again(effect, attempt, nonce, holder).await? else {
            return Ok(Settled::NoSuchClaim);
        };
        let recorded = claim.effect().attempt(attempt).map(|attempt| attempt.verdict);
        let known = claim.found().clone();
        let refuted = matches!(
            &claim.effect().state,
            State::NotApplied(NotApplied { why: NotAppliedWhy::Refuted(_), .. })
        );
        match (recorded, &sent.outcome) {
            // The same success again proves nothing that was not disproved.
            (_, Outcome::Applied { .. }) if refuted => {
                return Ok(Settled::Otherwise(Box::new(claim.effect().clone())));
            }
            (Some(Verdict::Applied), Outcome::NotApplied { .. }) => {
                return Ok(Settled::Otherwise(Box::new(claim.effect().clone())));
            }
            (Some(Verdict::Applied), _)
            | (
                Some(Verdict::NotApplied | Verdict::Reported),
                Outcome::NotApplied { .. } | Outcome::InDoubt { .. },
            )
            | (Some(Verdict::Unproven), Outcome::InDoubt { .. }) => {
                return Ok(Settled::Recorded(Box::new(self.told(known, sent))));
            }
            (Some(Verdict::Open | Verdict::Unproven | Verdict::NotApplied | Verdict::Reported) | None, _) => {
            }
        }
        if let Some(undo) = undo {
            claim.keep_undo(undo);
        }
        let brought_at = self.clock.elapsed();
        let patience_ends = brought_at + SETTLE_PATIENCE;
        let mut pause = Duration::from_millis(5);
        let changed = loop {
            match self.ledger.settle(claim, &sent.outcome, sent.reply.as_deref(), self.clock.now()).await {
                Ok(changed) => break changed,
                Err(Unsettled { error, .. }) if self.clock.elapsed() >= patience_ends => {
                    return Err(Error::Ledger(error));
                }
                Err(unsettled) => claim = *unsettled.claim,
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        };
        let took = self.clock.elapsed().saturating_sub(brought_at);
        self.tell_settled(&changed, attempt, &sent.outcome, took, None);
        let Changed { found, alarm, late } = changed;
        let mut passed = match late {
            Some(Late::Lost) => Passed::superseded(known.effect().expect("it was claimed"), sent),
            Some(Late::MovedOn) => Passed { delivery: None, ..self.told(found, sent) },
            None => self.told(found, sent),
        };
        if alarm == Some(Alarm::DuplicateDetected) {
            passed.answer.reason = Some(DUPLICATE.into());
        }
        Ok(Settled::Recorded(Box::new(passed)))
    }

    /// The answer about an effect to whoever made an attempt of it.
    fn told(&self, found: Found, sent: Sent) -> Passed {
        let effect = found.effect().expect("it was claimed");
        match &effect.state {
            State::InDoubt(_) => held(effect, wording::in_doubt(effect), OutcomeWord::Ran),
            _ => answer_ran(found, sent, self.clock.now()),
        }
    }
}
