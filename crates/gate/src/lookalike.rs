//! Looks for other effects that a call may be a repeat of in other words, and for later ones that removed what its own
//! record says was done.

use crate::call::{DELIVERY_TAKES, GateCall};
use crate::clock::Clock;
use crate::reply::{Passed, held};
use crate::{Error, Gate};
use semel_core::answer::OutcomeWord;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, State};
use semel_core::intent::{Alike, Intent, NamedBy};
use semel_core::judgement::lookalike::{Lookalike, compare};
use semel_core::judgement::superseded::supersedes;
use semel_core::policy::rule::{Again, Rule};
use semel_core::time::{At, Clocks};
use semel_core::wording;
use semel_ledger::RecordSnapshot;
use semel_ledger::entropy::Entropy;
use semel_ledger::holders::Holders;
use semel_ledger::store::{SeenAlike, Store};

/// The result of comparing a call with other effects of its outline.
pub(crate) enum OutlineComparison {
    /// It may be claimed, as long as the effects of its outline are as they were seen.
    Clear(Option<(Digest, SeenAlike)>),
    /// It waited for another one: look again.
    Waited,
    Held(Box<Passed>),
}

/// The first effect that a call has to wait for, or is held for.
pub(crate) struct InTheWay {
    pub(crate) other: RecordSnapshot,
    /// `None`: it is running.
    pub(crate) held: Option<(Vec<String>, Again)>,
}

impl<S: Store, H: Holders, E: Entropy, C: Clock> Gate<S, H, E, C> {
    /// Compares a call with the newest effects of its outline, before it is claimed.
    pub(crate) async fn compare<U>(
        &self,
        call: &mut GateCall<'_, U>,
        own: Digest,
    ) -> Result<OutlineComparison, Error> {
        let Alike::Outline { key, .. } = call.intent.alike else { return Ok(OutlineComparison::Clear(None)) };
        let (seen, in_the_way) = self.lookalike(call.intent, call.rule, key, own).await?;
        let Some(InTheWay { other, held: reason }) = in_the_way else {
            return Ok(OutlineComparison::Clear(Some((key, seen))));
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
            None => wording::in_flight(effect, now),
            Some((paths, until)) => wording::lookalike(effect, paths, until),
        };
        Ok(OutlineComparison::Held(Box::new(held(effect, trouble, OutcomeWord::Held))))
    }

    /// The effects of an outline as they were seen, and the first one that is in the way of a call.
    pub(crate) async fn lookalike(
        &self,
        intent: &Intent,
        rule: &Rule,
        outline: Digest,
        own: Digest,
    ) -> Result<(SeenAlike, Option<InTheWay>), Error> {
        let now = self.clock.now();
        let clocks = Clocks { now, uptime: self.clock.uptime() };
        let (seen, alike) = self.ledger.alike(outline).await?;
        let mut last_begun: Option<At> = None;
        for (key, known) in &alike {
            let effect = &known.effect;
            // A permission that came to nothing is not spent.
            let did_nothing = matches!(effect.state, State::NotApplied(_));
            let begun = if did_nothing { last_begun } else { last_begun.max(Some(effect.opened_at)) };
            let spent = effect
                .repeat_permitted
                .as_ref()
                .is_some_and(|repeat_permitted| last_begun > Some(repeat_permitted.at));
            last_begun = begun;
            if *key == own || compare(intent, rule, effect, spent, &clocks) == Lookalike::MayRun {
                continue;
            }
            // It may have lapsed, or come to its end, since it was written.
            let other = self.ledger.observe(*key, now).await?;
            let current = other.effect().filter(|current| current.id == effect.id);
            let held = match current.map(|current| compare(intent, rule, current, spent, &clocks)) {
                None | Some(Lookalike::MayRun) => continue,
                Some(Lookalike::Wait) => None,
                Some(Lookalike::Held { paths, until }) => Some((paths, until)),
            };
            return Ok((seen, Some(InTheWay { other, held })));
        }
        Ok((seen, None))
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
                let (_, later) = self.ledger.alike(removals).await?;
                let secret = self.ledger.secret();
                let removes = |later: &Effect| supersedes(secret, later, success, snapshot.reply.as_deref());
                let mut later = later.into_iter().map(|(_, known)| known.effect);
                later.find(removes).map(|later| (later.id, later.facts.action.clone()))
            }
        };
        Ok(by.map(|(id, action)| {
            let trouble = wording::superseded(success, id, &action, rule.again, intent.again.is_some());
            held(success, trouble, OutcomeWord::Held)
        }))
    }
}
