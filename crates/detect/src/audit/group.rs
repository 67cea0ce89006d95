//! Judges the calls of one outline: which of them repeats another, and how sure that is.

use super::audited_call::AuditedCall;
use super::finding::{FindingLevel, Layer};
use crate::ending::Ending;
use semel_core::class::Class;
use std::collections::HashSet;
use std::time::Duration;

/// How long a lost call is held against a later one. A job that runs each day is no retry of yesterday's.
const OPEN_FOR: Duration = Duration::from_secs(20 * 3600);

/// The answer about one group.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GroupVerdict {
    pub repeats: Option<Repeats>,
    /// Retries after a lost answer, without a look in between, that did no harm.
    pub harmless_retries: u32,
    /// Retries after a lost answer with a look in between, and without one.
    pub looked: u32,
    pub blind: u32,
}

/// The calls that repeat one another, as indexes into the group.
#[derive(Debug, PartialEq, Eq)]
pub struct Repeats {
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

/// Judges calls in the order of their time. `removed` holds the calls whose result was removed before the next one.
pub fn judge(
    calls: &[AuditedCall],
    was_removed_between: impl Fn(&AuditedCall, &AuditedCall) -> bool,
) -> GroupVerdict {
    let mut verdict = GroupVerdict::default();
    let mut repeated: Vec<usize> = Vec::new();
    let mut best: Option<(FindingLevel, usize, usize, &'static str)> = None;
    let mut base: Option<usize> = None;
    for (at, call) in calls.iter().enumerate() {
        if let Some(first) = base {
            let earlier = &calls[first];
            let relation =
                if was_removed_between(earlier, call) { Relation::Apart } else { relate(earlier, call) };
            let is_retry = earlier.ending.is_open();
            match relation {
                Relation::Apart => {}
                Relation::Verified => verdict.looked += 1,
                Relation::Harmless => {
                    verdict.harmless_retries += u32::from(is_retry);
                    verdict.blind += u32::from(is_retry);
                }
                Relation::Repeats(level, why) => {
                    verdict.blind += u32::from(is_retry);
                    repeated.extend([first, at]);
                    if best.is_none_or(|(known, ..)| level > known) {
                        best = Some((level, first, at, why));
                    }
                }
            }
        }
        // A success says more about the next call than a doubt before it.
        if call.ending.may_have_happened() {
            base = Some(at);
        }
    }
    let indexes: HashSet<usize> = repeated.into_iter().collect();
    verdict.repeats = best.map(|(level, first, at, why)| {
        let mut calls_of: Vec<usize> = indexes.into_iter().collect();
        calls_of.sort_unstable();
        Repeats {
            level,
            layer: layer(&calls[first], &calls[at]),
            why,
            calls: calls_of,
            gap: gap(&calls[first], &calls[at]),
        }
    });
    verdict
}

fn relate(earlier: &AuditedCall, later: &AuditedCall) -> Relation {
    let is_same = earlier.judged.intent == later.judged.intent;
    let is_consequential = earlier.judged.class == Class::Consequential;
    let same_session = earlier.session == later.session;
    let was_asked = same_session && later.history.user_messages > earlier.history.user_messages;
    let looked = same_session && later.history.reads > earlier.history.reads;
    let age = gap(earlier, later);
    let window = if earlier.ending.is_open() { Some(OPEN_FOR) } else { earlier.judged.window };
    let is_over = age.zip(window).is_some_and(|(age, window)| age >= window);
    if is_over || later.judged.is_deliberate {
        return Relation::Apart;
    }
    // Without times, calls of two sessions may lie a year apart.
    let level = |level: FindingLevel| {
        if was_asked || (!same_session && age.is_none()) { FindingLevel::Possible } else { level }
    };
    if !is_same {
        let difference = earlier.judged.marks.difference(&later.judged.marks);
        let may_be_same = is_consequential && (later.judged.is_specific || difference.stamps_alone);
        return match may_be_same && later.ending.may_have_happened() && !was_asked && !looked {
            true => Relation::Repeats(FindingLevel::Possible, "the same identity in other words"),
            false => Relation::Apart,
        };
    }
    match (earlier.ending, later.ending) {
        (_, Ending::Refused | Ending::Failed) if earlier.ending.is_open() && !looked => Relation::Harmless,
        (_, Ending::Refused | Ending::Failed) => Relation::Apart,
        _ if earlier.ending.is_open() && looked => Relation::Verified,
        _ if earlier.ending.is_open() => Relation::Repeats(
            level(FindingLevel::Likely),
            "it was tried again although nobody knew whether it had happened",
        ),
        (Ending::Applied, Ending::Applied) if !earlier.names.is_empty() && earlier.names == later.names => {
            Relation::Harmless
        }
        _ if !is_consequential && later.resends == 0 => Relation::Apart,
        (Ending::Applied, Ending::Applied) if !earlier.names.is_empty() && !later.names.is_empty() => {
            Relation::Repeats(
                level(FindingLevel::Proven),
                "both succeeded, and their results name two things",
            )
        }
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
