//! One call on its way through the gate: the things that outlast a single look at the ledger.

use crate::look::Look;
use crate::upstream::{CallView, Sent, Upstream};
use semel_core::class::Class;
use semel_core::decide::{Decision, Joined, Past, Replay, SentBefore, is_repeat_of};
use semel_core::digest::Digest;
use semel_core::effect::Effect;
use semel_core::ids::{AttemptNo, OwnerId};
use semel_core::intent::{Intent, NamedBy};
use semel_core::policy::rule::Rule;
use semel_core::policy::undo::UndoInputs;
use semel_core::time::At;
use semel_core::undo::Undo;
use semel_ledger::RecordSnapshot;
use semel_ledger::claim::AttemptSender;
use semel_ledger::record::StoredEffect;
use semel_ledger::store::Revision;
use std::sync::Arc;
use std::time::Duration;

/// The death of a holder changes no row, so waiters look again: soon at first, for the kill that just happened, then
/// rarely.
pub(crate) const LOOK_AGAIN_FIRST: Duration = Duration::from_millis(25);
pub(crate) const LOOK_AGAIN_MAX: Duration = Duration::from_secs(1);

/// An answer that was not delivered this long after it was recorded was lost.
pub(crate) const DELIVERY_TAKES: Duration = Duration::from_secs(2);

/// How long after it was recorded an answer that another process gives may be unmarked although it has left.
const MARK_TAKES: Duration = Duration::from_millis(100);

/// An attempt that failed just now may still be at work upstream, where its key is then answered "in use": sent again at
/// once, the whole budget would be gone within milliseconds. Twice as long each time.
const RESEND_PAUSE: Duration = Duration::from_millis(500);
const RESEND_PAUSE_MAX: Duration = Duration::from_secs(4);

pub(crate) struct GateCall<'a> {
    pub(crate) intent: &'a Intent,
    pub(crate) rule: &'a Rule,
    pub(crate) upstream: &'a mut dyn Upstream,
    pub(crate) look: &'a Look,
    pub(crate) sender: AttemptSender,
    /// When waiting ends, on the monotonic clock.
    pub(crate) patience_ends: Duration,
    pub(crate) look_again: Duration,
    /// The attempt that this call waited for, and its record. The caller's own key may lead to another one meanwhile.
    joined: Option<(Digest, Joined)>,
    /// The attempt that this call made itself, if its answer was not clear.
    pub(crate) unresolved: Option<UnresolvedSend>,
    /// The record of the effect that this call is, which has another name in the ledger than the policy gives it now.
    pub(crate) is_effect_of: Option<Digest>,
    done: DoneOnce,
    /// The last decision, and the ledger as it was seen then: the answer is counted and remembered by them.
    pub(crate) last: Option<LastDecision>,
}

/// Each of these happens at most once in a call, or once after each attempt.
#[derive(Debug, Default)]
struct DoneOnce {
    probed_first: bool,
    mark_awaited: bool,
    paused_after: Option<AttemptNo>,
}

pub(crate) struct LastDecision {
    pub(crate) record: Digest,
    pub(crate) newest: Option<Arc<StoredEffect>>,
    /// The cell of the caller's own key, if that stands for nothing so far.
    pub(crate) unbound: Option<Revision>,
    /// The effect before the newest one of its record that answers.
    pub(crate) earlier: Option<u32>,
    /// A transport sent the call again.
    pub(crate) reissued: bool,
}

/// An attempt of this call without a clear answer.
pub(crate) struct UnresolvedSend {
    pub(crate) record: Digest,
    pub(crate) effect: Effect,
    pub(crate) sent: Sent,
}

impl<'a> GateCall<'a> {
    pub(crate) fn new(
        intent: &'a Intent,
        rule: &'a Rule,
        upstream: &'a mut dyn Upstream,
        look: &'a Look,
        now: Duration,
    ) -> Self {
        GateCall {
            intent,
            rule,
            upstream,
            look,
            sender: AttemptSender::Here,
            patience_ends: now + rule.wait,
            look_again: LOOK_AGAIN_FIRST,
            joined: None,
            unresolved: None,
            is_effect_of: None,
            done: DoneOnce::default(),
            last: None,
        }
    }

    /// The same for code that sends by itself.
    pub(crate) fn sent_by(self, sender: AttemptSender) -> Self {
        GateCall { sender, ..self }
    }

    /// The actions of this call so far, on the record at hand.
    pub(crate) fn past(&self, record: Digest) -> Past<'static> {
        let sent = match &self.unresolved {
            Some(UnresolvedSend { effect, .. }) => SentBefore::Unresolved {
                occurrence: effect.occurrence.number,
                caller_waits: self.look.caller_waits(),
            },
            None if self.look.has_sent() => SentBefore::ByEarlierLook,
            None => SentBefore::No,
        };
        let joined = self.joined.filter(|(of, _)| *of == record).map(|(_, joined)| joined);
        Past { sent, joined, older: None }
    }

    /// The effect of a record that this call has sent or waited for.
    pub(crate) fn occurrence_in(&self, record: Digest) -> Option<u32> {
        let Past { sent, joined, .. } = self.past(record);
        match sent {
            SentBefore::Unresolved { occurrence, .. } => Some(occurrence),
            _ => joined.map(|joined| joined.occurrence),
        }
    }

    pub(crate) fn has_sent(&self) -> bool {
        self.unresolved.is_some() || self.look.has_sent()
    }

    /// Waits for an attempt from now on. `true`: it did not before.
    pub(crate) fn join(&mut self, record: Digest, effect: &Effect, attempt: AttemptNo) -> bool {
        let joined = Some((record, Joined { occurrence: effect.occurrence.number, attempt }));
        std::mem::replace(&mut self.joined, joined) != joined
    }

    pub(crate) fn remember(
        &mut self,
        snapshot: &RecordSnapshot,
        unbound: Option<Revision>,
        decision: &Decision,
    ) {
        let (earlier, replay) = match decision {
            Decision::ReplayEarlier(number, replay) => (Some(*number), Some(*replay)),
            Decision::Replay(replay) => (None, Some(*replay)),
            _ => (None, None),
        };
        let (record, newest) = (snapshot.key, snapshot.newest.clone());
        let reissued = replay == Some(Replay::Reissue);
        self.last = Some(LastDecision { record, newest, unbound, earlier, reissued });
    }

    /// Whether a `before` probe is still to be asked. It is asked once.
    pub(crate) fn probes_first(&mut self) -> bool {
        !std::mem::replace(&mut self.done.probed_first, true)
    }

    /// How long to wait before sending again: once after each attempt, whatever the clock does meanwhile.
    pub(crate) fn resend_pause(&mut self, effect: &Effect, now: At) -> Option<Duration> {
        let newest = effect.newest_attempt()?.number;
        if self.done.paused_after.replace(newest) == Some(newest) {
            return None;
        }
        let doublings = u32::try_from(effect.attempts.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let whole = RESEND_PAUSE.saturating_mul(2_u32.saturating_pow(doublings)).min(RESEND_PAUSE_MAX);
        let left = whole.saturating_sub(now.since(effect.changed_at()));
        (!left.is_zero()).then_some(left)
    }

    /// Whether the success before a repeat is so young that its answer may still be on its way.
    pub(crate) fn waits_for_delivery(&self, effect: &Effect, now: At) -> bool {
        is_repeat_of(self.intent, effect) && now.since(effect.changed_at()) < DELIVERY_TAKES
    }

    /// How long another process may still need to mark an answer that looks undelivered, where a repeat of a delivered
    /// one would run. Asked once: clocks differ.
    pub(crate) fn waits_for_mark(
        &mut self,
        effect: &Effect,
        me: Option<OwnerId>,
        now: At,
    ) -> Option<Duration> {
        let elsewhere = effect.newest_attempt().is_some_and(|attempt| Some(attempt.owner) != me);
        let runs = self.rule.class != Class::Consequential && self.intent.named_by != NamedBy::CallerKey;
        let left = MARK_TAKES.saturating_sub(now.since(effect.changed_at()));
        let waits =
            elsewhere && runs && !left.is_zero() && !std::mem::replace(&mut self.done.mark_awaited, true);
        waits.then_some(left)
    }
}

impl GateCall<'_> {
    /// How an effect that has just been seen to be there can be taken back, where its rule says how.
    pub(crate) fn fill_in_undo(&self) -> Option<Undo> {
        let undo = self.rule.undo.as_ref()?;
        let Some(CallView { places, cwd }) = self.upstream.view() else {
            return Some(Undo::Not("what it answered is not known".into()));
        };
        let (action, secret) = (&self.intent.action, &self.rule.sorting.secret);
        Some(Undo::fill_in(undo, &UndoInputs { action, places: &places, secret, cwd: &cwd }))
    }
}
