//! Where a caller's own key leads its call, under `caller_key = "joins"`: to the record of the intent that it came
//! with, and there to the effect that it stands for.

use crate::call::{GateCall, LastDecision};
use crate::{Error, Gate};
use semel_core::answer::{Answer, OutcomeWord};
use semel_core::decide::answers_with_refusal;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, NotApplied, NotAppliedWhy, State};
use semel_core::intent::Intent;
use semel_core::time::At;
use semel_ledger::RecordSnapshot;
use semel_ledger::small_records::{Alias, KeyTarget};
use semel_ledger::store::Revision;
use std::cmp::Ordering;

/// The record of a call, and how its caller's own key leads there.
#[derive(Debug)]
pub(crate) struct ResolvedKey {
    pub(crate) record: Digest,
    /// The caller's own key leads there.
    by_key: bool,
    /// The effect of its record that its caller's own key was last said to stand for.
    stands_for: Option<KeyTarget>,
    /// The cell that said all this. `None`: the key stands for something else than its call by now.
    seen: Option<Revision>,
}

impl Gate {
    /// Finds the record of a call. The key is asked anew each time: of two calls that bring one key to two intents, the
    /// faster has it. Where nothing happened under the key so far, it may stand for something else, which has a record
    /// of its own.
    pub(crate) async fn resolve_key(&self, intent: &Intent, now: At) -> Result<ResolvedKey, Error> {
        let plain = ResolvedKey::plain(intent.key);
        let Some(alias) = intent.alias else { return Ok(plain) };
        let (seen, known) = self.ledger.alias(alias).await?;
        let seen = Some(seen);
        let Some(Alias { key, stands_for }) = known else { return Ok(ResolvedKey { seen, ..plain }) };
        if key != intent.key {
            let snapshot = self.ledger.find(key).await?;
            if !self.is_still(stands_for, &snapshot).await? || is_free(&snapshot, intent, now) {
                return Ok(ResolvedKey { seen, ..plain });
            }
        }
        Ok(ResolvedKey { record: key, by_key: true, stands_for: Some(stands_for), seen })
    }

    /// The same for a call that may have sent: it follows its attempt, whatever its key has come to stand for since.
    pub(crate) async fn resolve_key_of_call(
        &self,
        call: &GateCall<'_>,
        now: At,
    ) -> Result<ResolvedKey, Error> {
        let (key, intent) = (self.resolve_key(call.intent, now).await?, call.intent);
        let sent_in = match (&call.unresolved, call.is_effect_of) {
            (Some(unresolved), _) => unresolved.record,
            (None, Some(record)) => record,
            (None, None) if key.record != intent.key && call.has_sent() => {
                let snapshot = self.ledger.find(key.record).await?;
                let is_another = |effect: &Effect| effect.marks.drifted(&intent.marks);
                if snapshot.effect().is_some_and(is_another) { intent.key } else { key.record }
            }
            (None, None) => key.record,
        };
        Ok(if sent_in == key.record { key } else { ResolvedKey::plain(sent_in) })
    }

    /// The number of the effect that its caller's own key stands for, in the record that it was led to.
    pub(crate) async fn stands_for(
        &self,
        key: &ResolvedKey,
        snapshot: &RecordSnapshot,
    ) -> Result<Option<u32>, Error> {
        match key.stands_for {
            Some(stands_for) if self.is_still(stands_for, snapshot).await? => Ok(Some(stands_for.number)),
            _ => Ok(None),
        }
    }

    /// Whether the record still has that effect. One that retention has dropped begins to count anew.
    async fn is_still(&self, stands_for: KeyTarget, snapshot: &RecordSnapshot) -> Result<bool, Error> {
        let Some(newest) = snapshot.effect() else { return Ok(false) };
        Ok(match stands_for.number.cmp(&newest.occurrence.number) {
            Ordering::Greater => false,
            Ordering::Equal => stands_for.is(newest),
            Ordering::Less => {
                let known = self.ledger.occurrence(snapshot.key, stands_for.number).await?;
                known.is_none_or(|known| stands_for.is(&known.effect))
            }
        })
    }

    /// A caller's own key that was answered by an effect stands for that effect from then on, as the key does that it
    /// was made for: it is the same call after the window too, and cannot come with another intent. A repeat is
    /// answered also by a ledger that cannot be written.
    pub(crate) async fn remember_answered(&self, call: &GateCall<'_>, answer: &Answer) {
        let (Some(alias), Some(last)) = (call.intent.alias, &call.last) else { return };
        let LastDecision { record, newest: Some(known), unbound: Some(seen), earlier, .. } = last else {
            return;
        };
        // A repeat for a reason is told by its reason.
        if !answer.ok || call.intent.again.is_some() || answer.outcome == OutcomeWord::Ran {
            return;
        }
        let newest = &known.effect;
        let is_newest = answer.effect_id == Some(newest.id);
        let number = earlier.or_else(|| is_newest.then_some(newest.occurrence.number));
        if let (Some(number), Some(effect)) = (number, answer.effect_id) {
            let to = Alias { key: *record, stands_for: KeyTarget { number, effect } };
            // Few calls come to it.
            let _unremembered = Box::pin(self.ledger.remember_alias(alias, *seen, &to)).await;
        }
    }
}

impl ResolvedKey {
    /// A record that no key of the caller's leads to.
    pub(crate) fn plain(record: Digest) -> ResolvedKey {
        ResolvedKey { record, by_key: false, stands_for: None, seen: None }
    }

    /// The cell that a claim writes: the key stands for the record. It counts only if the key still leads where
    /// it led when it was looked at, because of what has come to stand under it since, nobody has decided anything. A
    /// repeat for a reason of its own leaves the key with what it stands for.
    pub(crate) fn claimed_with(&self, intent: &Intent) -> Option<(Digest, Revision)> {
        let stays = self.by_key && intent.again.is_some();
        intent.alias.filter(|_| !stays).zip(self.seen)
    }

    /// The key's cell, if the key may come to stand for whatever answers it: so far it stands for nothing that
    /// happened.
    pub(crate) fn unbound(&self, stands_for: Option<u32>, snapshot: &RecordSnapshot) -> Option<Revision> {
        let happened = |number: u32| {
            snapshot
                .effect()
                .is_none_or(|newest| number < newest.occurrence.number || may_have_happened(newest))
        };
        self.seen.filter(|_| !stands_for.is_some_and(happened))
    }
}

/// Whether nothing happened that a caller's key could stand for, and nothing there answers it, if it comes with another
/// identity now: something else, or the same in another run.
fn is_free(snapshot: &RecordSnapshot, intent: &Intent, now: At) -> bool {
    let Some(effect) = snapshot.effect() else { return true };
    let drifted = effect.marks.drifted(&intent.marks);
    !may_have_happened(effect)
        && effect.occurrence.number == 1
        && (drifted || !answers_with_refusal(effect, intent, now))
}

fn may_have_happened(effect: &Effect) -> bool {
    match &effect.state {
        State::NotApplied(NotApplied { why, .. }) => matches!(why, NotAppliedWhy::Refuted(_)),
        _ => true,
    }
}
