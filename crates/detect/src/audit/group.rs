//! Judges the calls of one outline: which of them repeats another, and how sure that is.

use super::audited_call::AuditedCall;
use super::finding::{FindingLevel, Layer};
use crate::ending::{Ending, NamedThings};
use semel_core::class::Class;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// The answer about one group.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GroupVerdict {
    /// By intent; those of one identity in several words last.
    pub repeats: Vec<Repeats>,
    /// Retries after a lost answer, without a look in between, that did no harm.
    pub harmless_retries: u32,
    /// Retries after a lost answer with a look in between, and without one.
    pub looked: u32,
    pub blind: u32,
}

/// The calls that repeat one another, as indexes into the group.
#[derive(Debug, PartialEq, Eq)]
pub struct Repeats {
    /// `None`: the calls have one identity in several words.
    pub intent: Option<u64>,
    pub level: FindingLevel,
    pub layer: Layer,
    pub why: &'static str,
    /// Sorted; the first is the call that the others repeat.
    pub calls: Vec<usize>,
    pub gap: Option<Duration>,
}

/// How a call relates to an earlier one.
enum Relation {
    /// Both were meant, or nothing connects them.
    Apart,
    Repeats(FindingLevel, &'static str),
    /// It was tried again blindly, and nothing came of it.
    Harmless,
    /// The agent looked first.
    Verified,
}

/// The earlier calls that a call is compared with.
#[derive(Debug, Clone, Copy, Default)]
struct Bases {
    last: Option<usize>,
    last_applied: Option<usize>,
}

/// Judges calls in the order of their time. Each is compared with the last call of its own intent that may have happened
/// and the last that succeeded, and otherwise with the last of the group, which has other words.
pub fn judge(
    calls: &[AuditedCall],
    was_removed_between: impl Fn(&AuditedCall, &AuditedCall) -> bool,
    are_both_listed: impl Fn(&AuditedCall, &AuditedCall) -> bool,
) -> GroupVerdict {
    let mut verdict = GroupVerdict::default();
    let mut found: BTreeMap<Option<u64>, FoundRepeats> = BTreeMap::new();
    let mut by_intent: HashMap<u64, Bases> = HashMap::new();
    let mut last_of_all: Option<usize> = None;
    // semel answers for the repeats of a call that it holds in doubt.
    for (at, call) in calls.iter().enumerate().filter(|(_, call)| call.ending != Ending::HeldInDoubt) {
        let intent = call.judged.intent;
        let own = by_intent.entry(intent).or_default();
        let bases = match own.last {
            Some(_) => [own.last, own.last_applied.filter(|applied| own.last != Some(*applied))],
            None => [last_of_all, None],
        };
        for (nth, first) in bases.into_iter().flatten().enumerate() {
            let earlier = &calls[first];
            if was_removed_between(earlier, call) {
                continue;
            }
            let retries = u32::from(earlier.ending.is_open() && nth == 0);
            match relate(earlier, call, &are_both_listed) {
                Relation::Apart => {}
                Relation::Verified => verdict.looked += retries,
                Relation::Harmless => {
                    verdict.harmless_retries += retries;
                    verdict.blind += retries;
                }
                Relation::Repeats(level, why) => {
                    verdict.blind += retries;
                    let found = found.entry(own.last.map(|_| intent)).or_default();
                    found.calls.extend([first, at]);
                    if found.best.is_none_or(|(known, ..)| level > known) {
                        found.best = Some((level, first, at, why));
                    }
                }
            }
        }
        if call.ending.may_have_happened() {
            (own.last, last_of_all) = (Some(at), Some(at));
        }
        if call.ending == Ending::Applied {
            own.last_applied = Some(at);
        }
    }
    // Calls that repeat in the same words need no weaker finding about other words.
    if let Some(mut reworded) = found.remove(&None) {
        let is_known = |at: &usize| found.values().any(|repeats| repeats.calls.contains(at));
        reworded.calls.retain(|at| !is_known(at));
        if reworded.calls.len() > 1 {
            found.insert(None, reworded);
        }
    }
    verdict.repeats = found
        .into_iter()
        .filter_map(|(intent, FoundRepeats { calls: repeated, best })| {
            let (level, first, at, why) = best?;
            let (first, at) = (&calls[first], &calls[at]);
            let calls = repeated.into_iter().collect();
            Some(Repeats { intent, level, layer: layer(first, at), why, calls, gap: gap(first, at) })
        })
        .collect();
    verdict
}

#[derive(Debug, Default)]
struct FoundRepeats {
    calls: BTreeSet<usize>,
    /// The surest pair of them.
    best: Option<(FindingLevel, usize, usize, &'static str)>,
}

fn relate(
    earlier: &AuditedCall,
    later: &AuditedCall,
    are_both_listed: impl Fn(&AuditedCall, &AuditedCall) -> bool,
) -> Relation {
    let is_same = earlier.judged.intent == later.judged.intent;
    let is_consequential = earlier.judged.class == Class::Consequential;
    let same_session = earlier.session == later.session;
    let was_asked = same_session && later.history.user_messages > earlier.history.user_messages;
    let looked = same_session && later.history.reads > earlier.history.reads;
    let age = gap(earlier, later);
    if earlier.judged.is_over(earlier.ending, age) || later.judged.is_deliberate {
        return Relation::Apart;
    }
    // Without times, calls of two sessions may lie a year apart.
    let level = |level: FindingLevel| {
        if was_asked || (!same_session && age.is_none()) { FindingLevel::Possible } else { level }
    };
    if !is_same {
        let difference = earlier.judged.marks.difference(&later.judged.marks);
        let may_be_same = is_consequential && (later.judged.is_specific || difference.stamps_alone);
        // After a lost answer other words are a retry all the same.
        if !may_be_same || !earlier.ending.is_open() {
            return match may_be_same && later.ending.may_have_happened() && !was_asked && !looked {
                true => Relation::Repeats(FindingLevel::Possible, "the same identity in other words"),
                false => Relation::Apart,
            };
        }
    }
    let named = earlier.names.compare(&later.names);
    match (earlier.ending, later.ending) {
        (_, Ending::Refused | Ending::Failed) if earlier.ending.is_open() && !looked => Relation::Harmless,
        (_, Ending::Refused | Ending::Failed) => Relation::Apart,
        _ if earlier.ending.is_open() && are_both_listed(earlier, later) => Relation::Repeats(
            level(FindingLevel::Proven),
            "the answer to the first was lost, and a later read lists the results of both",
        ),
        _ if earlier.ending.is_open() && looked => Relation::Verified,
        _ if earlier.ending.is_open() => Relation::Repeats(
            level(FindingLevel::Likely),
            "it was tried again although nobody knew whether it had happened",
        ),
        (Ending::Applied, Ending::Applied) if named == NamedThings::One => Relation::Harmless,
        _ if !is_consequential && later.resends == 0 => Relation::Apart,
        (Ending::Applied, Ending::Applied) if named == NamedThings::Two => Relation::Repeats(
            level(FindingLevel::Proven),
            "both succeeded, and their results name two things",
        ),
        (Ending::Applied, Ending::Applied) => {
            Relation::Repeats(level(FindingLevel::Likely), "both succeeded")
        }
        _ => Relation::Repeats(
            level(FindingLevel::Likely),
            "it had succeeded, and the answer to the repeat was lost",
        ),
    }
}

fn layer(earlier: &AuditedCall, later: &AuditedCall) -> Layer {
    let same_turn = earlier.turn.is_some() && earlier.turn == later.turn;
    match () {
        () if later.resends > 0 => Layer::Sdk,
        () if earlier.session != later.session => Layer::SecondWorker,
        () if later.history.compactions > earlier.history.compactions => Layer::Compaction,
        () if same_turn && later.in_conversation => Layer::ParallelCalls,
        () if same_turn => Layer::Transport,
        () if later.in_conversation => Layer::Model,
        () => Layer::Framework,
    }
}

fn gap(earlier: &AuditedCall, later: &AuditedCall) -> Option<Duration> {
    Some(later.at?.since(earlier.at?))
}
