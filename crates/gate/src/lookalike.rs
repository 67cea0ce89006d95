//! Looks for other effects that a call is under another name, or may be a repeat of in other words, and for later ones
//! that removed what its own record says was done.

use crate::call::{DELIVERY_TAKES, GateCall};
use crate::caller_key::ResolvedKey;
use crate::reply::{Passed, held};
use crate::{Error, Gate};
use semel_core::answer::OutcomeWord;
use semel_core::class::Class;
use semel_core::decide::{Decision, Past, decide};
use semel_core::digest::Digest;
use semel_core::effect::{Effect, State};
use semel_core::intent::{Alike, Intent, NamedBy};
use semel_core::judgement::lookalike::{Lookalike, compare, is_the_same};
use semel_core::judgement::superseded::supersedes;
use semel_core::policy::rule::{Again, Rule};
use semel_core::time::{At, Clocks};
use semel_core::wording;
use semel_ledger::RecordSnapshot;
use semel_ledger::ledger::{KeptReply, sound};
use semel_ledger::record::StoredEffect;
use semel_ledger::store::{Card, SeenAlike};

/// The result of comparing a call with other effects of its outline.
pub(crate) enum OutlineComparison {
    /// It may be claimed, as long as the effects of its outline are as they were seen.
    Clear(Option<(Digest, SeenAlike)>),
    /// It waited for another one: look again.
    Waited,
    Held(Box<Passed>),
}

/// The first effect that speaks against a claim.
pub(crate) enum InTheWay {
    /// The call is that effect, which had another identity under another policy: its record decides.
    Same(RecordSnapshot),
    Running(RecordSnapshot),
    /// The call looks like it; with the paths that differ, and whether nothing else does.
    Alike(RecordSnapshot, (Vec<String>, bool), Again),
}

impl Gate {
    /// Compares a call with the newest effects of its outline, before it is claimed.
    pub(crate) async fn compare(
        &self,
        call: &mut GateCall<'_>,
        own: Digest,
    ) -> Result<OutlineComparison, Error> {
        let Some(key) = call.intent.alike.key() else { return Ok(OutlineComparison::Clear(None)) };
        let (seen, in_the_way) = self.lookalike(call.intent, call.rule, key, own).await?;
        let (other, reason) = match in_the_way {
            // Removals at one server are many, and so are calls that may run again: each would be in the way of the
            // others. Two that begin in the same moment under different policies are not kept apart.
            None => {
                let guards = matches!(call.intent.alike, Alike::Outline { .. })
                    && call.rule.class == Class::Consequential;
                return Ok(OutlineComparison::Clear(guards.then_some((key, seen))));
            }
            Some(InTheWay::Same(other)) => {
                call.is_effect_of = Some(other.key);
                return Ok(OutlineComparison::Waited);
            }
            Some(InTheWay::Running(other)) => (other, None),
            Some(InTheWay::Alike(other, paths, until)) => (other, Some((paths, until))),
        };
        let now = self.clock.now();
        let effect = other.effect().expect("only a known effect is in the way");
        // The end of an answer that is on its way is told by its mark.
        let is_leaving = matches!(effect.state, State::Applied(_))
            && effect.delivered_at.is_none()
            && now.since(effect.changed_at()) < DELIVERY_TAKES;
        if (reason.is_none() || is_leaving) && self.wait(call, other.key, other.revision).await {
            return Ok(OutlineComparison::Waited);
        }
        if matches!(effect.state, State::Applied(_))
            && let Some(held) = self.superseded(call.intent, call.rule, &other).await?
        {
            return Ok(OutlineComparison::Held(Box::new(held)));
        }
        let trouble = match reason {
            None => wording::in_flight(effect, now, call.rule.wait),
            Some(((paths, is_all), until)) => wording::lookalike(effect, paths, is_all, until),
        };
        Ok(OutlineComparison::Held(Box::new(held(effect, trouble, OutcomeWord::Held))))
    }

    /// The effects of an outline as they were seen, and the first one that is in the way of a call that may be claimed
    /// as far as its own record goes.
    pub(crate) async fn lookalike(
        &self,
        intent: &Intent,
        rule: &Rule,
        outline: Digest,
        own: Digest,
    ) -> Result<(SeenAlike, Option<InTheWay>), Error> {
        let now = self.clock.now();
        let clocks = Clocks { now, uptime: self.clock.uptime() };
        let (seen, cards) = self.ledger.cards(outline).await?;
        for (at, card) in cards.iter().enumerate() {
            if card.key == own || !may_be_in_the_way(intent, rule, card) {
                continue;
            }
            // It may have lapsed, or come to its end, since it was written.
            let other = self.ledger.observe(card.key, now).await?;
            let Some(stored) = other.newest.as_deref() else { continue };
            let effect = &sound(stored)?.effect;
            if effect.occurrence.number != card.ordinal {
                continue;
            }
            if is_the_same(intent, rule, effect) {
                if self.speaks_for(intent, rule, &other, now).await? {
                    return Ok((seen, Some(InTheWay::Same(other))));
                }
                continue;
            }
            let spent = match &effect.repeat_permitted {
                Some(permitted) => self.began_since(permitted.at, &cards[..at]).await?,
                None => false,
            };
            let in_the_way = match compare(intent, rule, effect, spent, &clocks) {
                Lookalike::MayRun => continue,
                Lookalike::Wait => InTheWay::Running(other),
                Lookalike::Held { paths, is_all, until } => InTheWay::Alike(other, (paths, is_all), until),
            };
            return Ok((seen, Some(in_the_way)));
        }
        Ok((seen, None))
    }

    /// Whether one of these was begun after an instant, and came to something.
    async fn began_since(&self, at: At, cards: &[Card]) -> Result<bool, Error> {
        for card in cards {
            let known = self.ledger.occurrence(card.key, card.ordinal).await?;
            let began = known.is_some_and(|StoredEffect { effect, .. }| {
                effect.opened_at > at && !matches!(effect.state, State::NotApplied(_))
            });
            if began {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the record of an effect that a call is decides it otherwise than by another claim.
    async fn speaks_for(
        &self,
        intent: &Intent,
        rule: &Rule,
        record: &RecordSnapshot,
        now: At,
    ) -> Result<bool, Error> {
        let survey =
            self.survey_of(intent, rule, ResolvedKey::plain(record.key), record.clone(), now).await?;
        let Some(effect) = survey.effect() else { return Ok(false) };
        let intent = intent.as_effect(effect);
        let decision = decide(Some(effect), &intent, rule, &survey.situation(Past::default()));
        Ok(!matches!(decision, Decision::Claim(_)))
    }

    /// The answer to a repeat whose success is no longer so, because a later effect removed it or took it back.
    pub(crate) async fn superseded(
        &self,
        intent: &Intent,
        rule: &Rule,
        snapshot: &RecordSnapshot,
    ) -> Result<Option<Passed>, Error> {
        let Alike::Outline { removals: Some(removals), .. } = intent.alike else { return Ok(None) };
        let Some(success) = snapshot.effect().filter(|_| intent.named_by != NamedBy::CallerKey) else {
            return Ok(None);
        };
        let by = match success.undone {
            Some(undone) => Some((undone.by, "its undo".to_owned())),
            None => {
                let later = self.ledger.alike(removals).await?;
                let secret = self.ledger.secret();
                let reply = snapshot.reply.as_ref().and_then(KeptReply::bytes);
                let removes = |later: &Effect| supersedes(secret, later, success, reply);
                let mut later = later.into_iter().map(|known| known.effect);
                later.find(removes).map(|later| (later.id, later.facts.action.clone()))
            }
        };
        Ok(by.map(|(id, action)| {
            let trouble = wording::superseded(success, id, &action, rule.again, intent.again.is_some());
            held(success, trouble, OutcomeWord::Held)
        }))
    }
}

/// Whether the card of an effect leaves it open that it is in the way of a call: nobody knows of its end, or its answer may
/// not have arrived. One that is over and answered is in the way only of a consequential call that names nothing: as that
/// very effect under another policy, where the two differ in stamps alone, or where two of their outline are seldom meant.
fn may_be_in_the_way(intent: &Intent, rule: &Rule, card: &Card) -> bool {
    let seldom_twice = matches!(intent.alike, Alike::Outline { is_specific: true, is_answer: false, .. });
    let answers_repeats = rule.class == Class::Consequential && intent.named_by != NamedBy::CallerKey;
    card.open
        || !card.delivered
        || (answers_repeats && (seldom_twice || card.content == intent.alike.content()))
}
