//! From what the ledger knows to the answer that goes out.

use crate::call::GateCall;
use crate::settle::SettledIn;
use crate::upstream::{NotStarted, Sent};
use semel_core::answer::{Answer, Code, EffectWord, OutcomeWord, Trouble};
use semel_core::class::{Class, Tier};
use semel_core::decide::Refusal;
use semel_core::effect::{Effect, Evidence, Reply, State};
use semel_core::intent::{Intent, NamedBy};
use semel_core::outcome::Outcome;
use semel_core::policy::rule::Rule;
use semel_core::time::At;
use semel_core::wording;
use semel_ledger::RecordSnapshot;
use semel_ledger::ledger::KeptReply;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The result of a call.
#[derive(Debug, Clone)]
pub struct Passed {
    pub answer: Answer,
    pub reply: GivenReply,
    /// The success to mark once its answer has reached the caller.
    pub delivery: Option<RecordSnapshot>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenReply {
    /// It came from this call's own attempt: the door has it already.
    Live,
    /// It is handed over from the record.
    Recorded(Vec<u8>),
    /// There is none to give: not known, too large, damaged, or no longer kept.
    None,
}

impl Passed {
    pub(crate) fn not_started(snapshot: &RecordSnapshot, not_started: NotStarted, rule: &Rule) -> Passed {
        let mut passed = Passed::not_started_alone(not_started, rule);
        passed.answer.effect_id = snapshot.effect().map(|effect| effect.id);
        passed
    }

    pub(crate) fn not_started_alone(not_started: NotStarted, rule: &Rule) -> Passed {
        let trouble = wording::not_started(&not_started.why);
        refused(None, rule.tier(), trouble, OutcomeWord::Refused, not_started.data)
    }

    pub(crate) fn found_by_probe(snapshot: &RecordSnapshot, reply: Option<Vec<u8>>, rule: &Rule) -> Passed {
        let answer = Answer {
            effect_id: snapshot.effect().map(|effect| effect.id),
            evidence: Some(Evidence::Probed),
            reason: Some("a probe found it there before anything was sent".into()),
            ..Answer::plain(true, EffectWord::Noop, OutcomeWord::Replayed, rule.tier())
        };
        Passed { answer, reply: reply.map_or(GivenReply::None, GivenReply::Recorded), delivery: None }
    }

    /// It was sent, and its answer could not be written down: the truth in the ledger is in doubt.
    pub(crate) fn unrecorded(effect: &Effect, data: Value, error: &semel_ledger::Error) -> Passed {
        let mut trouble = wording::in_doubt(effect);
        trouble.what_happened = format!(
            "It was sent and answered, but the answer could not be recorded: {error}. The ledger holds it in doubt."
        );
        refused(Some(effect), effect.facts.tier, trouble, OutcomeWord::Ran, data)
    }

    /// The answer is kept on this host alone, if so: others who share the ledger see its attempt in flight or in doubt.
    pub(crate) fn settled_in(mut self, place: SettledIn) -> Passed {
        if place == SettledIn::Spool {
            let reason = self.answer.reason.take().map_or_else(String::new, |reason| format!("{reason}; "));
            self.answer.reason = Some(format!("{reason}{}", wording::SPOOLED));
            // A record that the ledger does not have takes no mark.
            self.delivery = None;
        }
        self
    }

    /// It was sent, and the ledger cannot be asked what became of it.
    pub(crate) fn lost_sight(rule: &Rule) -> Passed {
        refused(None, rule.tier(), wording::lost_sight(), OutcomeWord::Ran, Value::Null)
    }

    /// It was sent and answered, and the ledger no longer knows the attempt: a failover has lost its claim.
    pub(crate) fn attempt_lost(effect: &Effect, sent: Sent) -> Passed {
        let mut trouble = wording::in_doubt(effect);
        trouble.what_happened =
            "It was sent and answered, but the ledger has lost this attempt since. The answer \
                                 is kept in the journal, as evidence."
                .into();
        refused(Some(effect), effect.facts.tier, trouble, OutcomeWord::Ran, sent.data)
    }

    /// Nothing was sent, for a reason that concerns this effect.
    pub fn refused(effect: &Effect, trouble: Trouble) -> Passed {
        let outcome = match trouble.code {
            Code::HeldForPerson | Code::Lookalike => OutcomeWord::Held,
            _ => OutcomeWord::Refused,
        };
        refused(Some(effect), effect.facts.tier, trouble, outcome, Value::Null)
    }

    /// A question after the success found it to be true.
    pub(crate) fn with_truth(mut self, snapshot: RecordSnapshot) -> Passed {
        self.answer.evidence = Some(Evidence::Confirmed);
        let pending = [Evidence::Accepted, Evidence::Reported].map(pending);
        self.answer.reason = self.answer.reason.take().and_then(|reason| {
            let without = pending.iter().find_map(|pending| reason.strip_suffix(pending.as_str()));
            let reason = without.map_or(reason.as_str(), |reason| reason.trim_end_matches("; "));
            (!reason.is_empty()).then(|| reason.to_owned())
        });
        Passed { delivery: Some(snapshot), ..self }
    }

    /// A question after the success found it not to be true. What it printed stays: that is what disproved itself.
    pub(crate) fn with_refutation(self, snapshot: &RecordSnapshot) -> Passed {
        let Some(effect) = snapshot.effect() else { return self };
        let mut passed = refused(
            Some(effect),
            effect.facts.tier,
            wording::refuted(effect),
            self.answer.outcome,
            self.answer.data,
        );
        // The recorded reply is no success's any more.
        if self.reply == GivenReply::Live {
            passed.reply = GivenReply::Live;
        }
        passed
    }

    /// A read, or a call in observe mode: nothing was recorded.
    pub(crate) fn passed_through(sent: Sent, rule: &Rule) -> Passed {
        let (ok, effect, reason) = match &sent.outcome {
            Outcome::Applied { .. } if rule.class == Class::Read => (true, EffectWord::None, None),
            Outcome::Applied { word, .. } => (true, *word, None),
            Outcome::NotApplied { why, .. } => (false, EffectWord::None, Some(wording::why_not_applied(why))),
            Outcome::InDoubt { why, .. } => (false, EffectWord::Unknown, Some(why.clone())),
        };
        let answer = Answer {
            evidence: ok.then_some(Evidence::Reported),
            reason,
            data: sent.data,
            ..Answer::plain(ok, effect, OutcomeWord::Ran, rule.tier())
        };
        Passed { answer, reply: GivenReply::Live, delivery: None }
    }
}

/// The words of an answer while a confirm is pending.
pub(crate) fn pending(evidence: Evidence) -> String {
    format!("{}, not confirmed yet", evidence.word())
}

/// The answer of this call's own attempt.
pub(crate) fn answer_ran(mut snapshot: RecordSnapshot, sent: Sent, now: At) -> Passed {
    let stored = Arc::clone(snapshot.newest.as_ref().expect("an attempt was made"));
    let effect = &stored.effect;
    match &effect.state {
        State::Applied(applied) => {
            let reason = match (applied.evidence, &sent.outcome) {
                (Evidence::Probed, Outcome::InDoubt { why, .. }) => {
                    Some(format!("its answer was unclear ({why}); a probe found that it happened"))
                }
                (Evidence::Probed, Outcome::Applied { .. }) => Some(wording::GONE.into()),
                (Evidence::Accepted, _) => Some("accepted, not confirmed".into()),
                _ => None,
            };
            let answer = Answer { data: sent.data, ..answer(effect, applied.word, OutcomeWord::Ran, reason) };
            // This call's own answer is the reply only if it was the success.
            let reply = match &sent.outcome {
                Outcome::Applied { evidence: Evidence::Probed, .. } => GivenReply::None,
                Outcome::Applied { .. } => GivenReply::Live,
                _ => take_reply(&mut snapshot),
            };
            Passed { answer, reply, delivery: Some(snapshot) }
        }
        State::NotApplied(_) => {
            let trouble = match &sent.outcome {
                Outcome::NotApplied { why: semel_core::effect::NotAppliedWhy::NeverSent(why), .. } => {
                    wording::not_started(why)
                }
                _ => wording::upstream_refused(effect),
            };
            let mut passed = refused(Some(effect), effect.facts.tier, trouble, OutcomeWord::Ran, sent.data);
            passed.reply = GivenReply::Live;
            passed
        }
        State::InFlight { .. } => {
            held(effect, wording::in_flight(effect, now, Duration::ZERO), OutcomeWord::Held)
        }
        State::InDoubt(_) => held(effect, wording::in_doubt(effect), OutcomeWord::Ran),
    }
}

/// The answer of the attempt that this call waited for.
pub(crate) fn joined_answer(snapshot: RecordSnapshot, intent: &Intent, rule: &Rule, now: At) -> Passed {
    let effect = snapshot.effect().expect("an attempt was joined");
    match &effect.state {
        State::NotApplied(_) => answer_of_refused(snapshot, OutcomeWord::Joined),
        _ => answer_of_record(snapshot, intent, rule, OutcomeWord::Joined, now),
    }
}

/// Hands over what the upstream refused, to somebody who did not send it.
pub(crate) fn answer_of_refused(mut snapshot: RecordSnapshot, outcome: OutcomeWord) -> Passed {
    let effect = snapshot.effect().expect("only a known effect was refused");
    let trouble = wording::upstream_refused(effect);
    let mut passed = refused(Some(effect), effect.facts.tier, trouble, outcome, Value::Null);
    passed.reply = take_reply(&mut snapshot);
    passed
}

/// Answers a success from the record, without acting.
pub(crate) fn answer_of_record(
    mut snapshot: RecordSnapshot,
    intent: &Intent,
    rule: &Rule,
    outcome: OutcomeWord,
    now: At,
) -> Passed {
    let effect = snapshot.effect().expect("only a known effect answers from the record");
    let mut reason = wording::done_before(effect, now);
    if outcome == OutcomeWord::Replayed {
        if effect.delivered_at.is_none() {
            reason.push_str(" (the first caller may not have got the answer)");
        } else if intent.again.as_ref().is_some_and(|why| effect.occurrence.was_for(why)) {
            reason.push_str(wording::REASON_USED);
        }
    }
    reason.push_str(&wording::worded_otherwise(&effect.marks.differing_content(&intent.marks)));
    if let State::Applied(applied) = &effect.state {
        match (applied.reply, &snapshot.reply) {
            (Reply::TooLarge(bytes), _) => {
                reason.push_str(&format!("; its reply of {bytes} bytes was not kept"))
            }
            (Reply::Kept, None) => reason.push_str("; its reply is no longer kept"),
            (Reply::Kept, Some(KeptReply::Damaged)) => {
                reason.push_str("; its reply is damaged in the ledger")
            }
            _ => {}
        }
    }
    if outcome == OutcomeWord::Replayed {
        let by_itself = intent.named_by != NamedBy::CallerKey
            && !matches!(rule.class, Class::Consequential | Class::Read);
        reason.push_str(&wording::to_do_it_again(effect, rule.again, by_itself));
    }
    let answer = answer(effect, EffectWord::Noop, outcome, Some(reason));
    Passed { answer, reply: take_reply(&mut snapshot), delivery: Some(snapshot) }
}

pub(crate) fn answer_of_refusal(
    snapshot: &RecordSnapshot,
    refusal: Refusal,
    intent: &Intent,
    rule: &Rule,
) -> Passed {
    let effect = snapshot.effect();
    let trouble = match (refusal, effect) {
        (Refusal::Drift { paths }, Some(effect)) => wording::drift(effect, paths, snapshot.key != intent.key),
        (Refusal::Refuted, Some(effect)) => wording::refuted(effect),
        (Refusal::BudgetSpent, Some(effect)) => wording::budget_spent(effect),
        (Refusal::AgainNotAllowed(again), Some(effect)) => wording::again_not_allowed(effect, again),
        (Refusal::Forgotten, Some(effect)) => wording::forgotten(effect),
        _ => wording::cancelled(intent.run.as_ref().map_or("", |run| &run.id), effect),
    };
    let outcome = match trouble.code {
        Code::HeldForPerson => OutcomeWord::Held,
        _ => OutcomeWord::Refused,
    };
    // Callers that waited for it must not hear that nothing happens.
    let may_happen = trouble.code == Code::Cancelled && effect.is_some_and(Effect::is_open);
    let mut passed = refused(effect, rule.tier(), trouble, outcome, Value::Null);
    if may_happen {
        passed.answer.effect = EffectWord::Unknown;
    }
    passed
}

/// An answer about somebody's open effect.
pub(crate) fn held(effect: &Effect, trouble: Trouble, outcome: OutcomeWord) -> Passed {
    refused(Some(effect), effect.facts.tier, trouble, outcome, Value::Null)
}

fn refused(
    effect: Option<&Effect>,
    tier: Tier,
    trouble: Trouble,
    outcome: OutcomeWord,
    data: Value,
) -> Passed {
    let answer = Answer {
        effect_id: effect.map(|effect| effect.id),
        attempt: effect.and_then(Effect::newest_attempt).map(|attempt| attempt.number),
        data,
        ..Answer::of_trouble(tier, outcome, trouble)
    };
    Passed { answer, reply: GivenReply::None, delivery: None }
}

fn answer(effect: &Effect, word: EffectWord, outcome: OutcomeWord, reason: Option<String>) -> Answer {
    let evidence = match &effect.state {
        State::Applied(applied) => Some(applied.evidence),
        _ => None,
    };
    Answer {
        effect_id: Some(effect.id),
        attempt: effect.newest_attempt().map(|attempt| attempt.number),
        evidence,
        reason,
        undone_by: effect.undone.map(|undone| undone.by),
        ..Answer::plain(true, word, outcome, effect.facts.tier)
    }
}

/// The recorded reply, which may be large and has one taker. Only what the state says is kept: a row may still hold
/// what a refusal answered.
fn take_reply(snapshot: &mut RecordSnapshot) -> GivenReply {
    let Some(KeptReply::Whole(reply)) = snapshot.reply.take() else { return GivenReply::None };
    let kept = match snapshot.effect().map(|effect| &effect.state) {
        Some(State::Applied(applied)) => applied.reply == Reply::Kept,
        Some(State::NotApplied(not_applied)) => not_applied.reply == Reply::Kept,
        _ => false,
    };
    if kept { GivenReply::Recorded(reply) } else { GivenReply::None }
}

/// The answer about a doubt: with what this call's own attempt printed, if it made one.
pub(crate) fn in_doubt(call: &GateCall<'_>, snapshot: &RecordSnapshot, why: Option<String>) -> Passed {
    let mut passed = about_doubt(call, snapshot, wording::in_doubt);
    passed.answer.reason = why;
    passed
}

/// The same where only the upstream's absence keeps it from being sent again.
pub(crate) fn in_doubt_until_sent(call: &GateCall<'_>, snapshot: &RecordSnapshot) -> Passed {
    about_doubt(call, snapshot, wording::in_doubt_until_sent)
}

fn about_doubt(call: &GateCall<'_>, snapshot: &RecordSnapshot, wording: fn(&Effect) -> Trouble) -> Passed {
    let own = call.unresolved.as_ref();
    let effect = snapshot.effect().or(own.map(|own| &own.effect)).expect("only a known effect is in doubt");
    let mut passed = held(effect, wording(effect), OutcomeWord::Held);
    if let Some(own) = own {
        passed.answer.outcome = OutcomeWord::Ran;
        passed.answer.data = own.sent.data.clone();
    }
    passed
}
