//! The black-box judge: from the world's log, the answers that callers got, and what the ledger says in the end.
//!
//! The checks are those of the specification of the torture test: C1 at most one change, C2 a success is true,
//! C3 an acknowledged success stays, C4 a change without a recorded success is held open, C5 what the ledger calls
//! free did not happen, C6 all answers are the world's own, C7 a denial is true.

use crate::world::{self, WorldLog};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What one call got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saw {
    Success {
        body: String,
    },
    InDoubt,
    InFlight,
    /// It did not happen, up to and with this attempt, where the answer names one.
    NotApplied {
        attempt: Option<u64>,
    },
    /// semel could not do its job, and says that nothing was sent.
    Unavailable {
        why: String,
    },
    /// `semel` died: its caller heard nothing.
    Nothing,
    Other {
        exit: Option<i32>,
        text: String,
    },
}

/// One call in the history. `began` and `ended` are ticks of one counter, so that order is known across callers.
#[derive(Debug, Clone)]
pub struct CallRecord {
    pub key: String,
    pub began: u64,
    pub ended: u64,
    pub saw: Saw,
}

/// What the ledger says about a key, asked without acting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Never seen, or certainly not applied: a call would run.
    Free,
    InFlight,
    InDoubt,
    Applied,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HistoryCheck {
    C1AtMostOnce,
    C2SuccessIsTrue,
    C3SuccessStays,
    C4ChangeIsKnown,
    C5FreeIsTrue,
    C6OneAnswer,
    C7DenialIsTrue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub check: HistoryCheck,
    pub key: String,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}: {}", self.check, self.key, self.what)
    }
}

/// Judges one run. An empty list means that nothing is wrong.
pub fn judge(
    log: &WorldLog,
    history: &[CallRecord],
    standings: &BTreeMap<String, Standing>,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let keys: BTreeSet<&String> =
        log.keys().chain(history.iter().map(|call| &call.key)).chain(standings.keys()).collect();
    let mut calls: BTreeMap<&String, Vec<&CallRecord>> = BTreeMap::new();
    for call in history {
        calls.entry(&call.key).or_default().push(call);
    }
    for key in keys {
        let mut broken = |check, what: String| violations.push(Violation { check, key: key.clone(), what });
        let happened = log.get(key).map_or(&[][..], Vec::as_slice);
        let calls = calls.get(key).map_or(&[][..], Vec::as_slice);
        let bodies = bodies_of(calls);
        if happened.len() > 1 {
            broken(HistoryCheck::C1AtMostOnce, format!("it happened {} times: {happened:?}", happened.len()));
        }
        if !bodies.is_empty() && happened.is_empty() {
            broken(HistoryCheck::C2SuccessIsTrue, "a success was answered and nothing happened".into());
        }
        if let Some((first, later)) = forgotten_success(calls) {
            broken(
                HistoryCheck::C3SuccessStays,
                format!("success at {}, then {:?} at {}", first.ended, later.saw, later.began),
            );
        }
        match standings.get(key) {
            Some(Standing::Free) if !happened.is_empty() => {
                broken(HistoryCheck::C5FreeIsTrue, "the ledger would run it again, and it happened".into());
                if bodies.is_empty() {
                    broken(HistoryCheck::C4ChangeIsKnown, "it happened, and the ledger does not know".into());
                }
            }
            Some(Standing::Applied) if happened.is_empty() => {
                broken(HistoryCheck::C2SuccessIsTrue, "the ledger says applied and nothing happened".into());
            }
            _ => {}
        }
        let truth: BTreeSet<String> = happened.iter().map(|change| world::body(&change.id)).collect();
        if bodies.len() > 1 || !happened.is_empty() && bodies.iter().any(|body| !truth.contains(*body)) {
            broken(HistoryCheck::C6OneAnswer, format!("answers {bodies:?}, the world's {truth:?}"));
        }
        for call in calls {
            let Saw::NotApplied { attempt: Some(denied) } = call.saw else { continue };
            if let Some(change) = happened.iter().find(|change| change.attempt <= denied) {
                broken(
                    HistoryCheck::C7DenialIsTrue,
                    format!("attempt {denied} was denied, and {change:?} happened"),
                );
            }
        }
    }
    violations
}

fn bodies_of<'c>(calls: &[&'c CallRecord]) -> BTreeSet<&'c String> {
    let body = |call: &&'c CallRecord| match &call.saw {
        Saw::Success { body } => Some(body),
        _ => None,
    };
    calls.iter().filter_map(body).collect()
}

/// A call that began after an acknowledged success and got anything but that success. Killed callers heard nothing,
/// and a ledger that was out of reach said so; neither takes the success back.
fn forgotten_success<'c>(calls: &[&'c CallRecord]) -> Option<(&'c CallRecord, &'c CallRecord)> {
    let first =
        calls.iter().filter(|call| matches!(call.saw, Saw::Success { .. })).min_by_key(|call| call.ended)?;
    let silent = |call: &CallRecord| matches!(call.saw, Saw::Nothing | Saw::Unavailable { .. });
    let later =
        calls.iter().find(|call| call.began > first.ended && !silent(call) && call.saw != first.saw)?;
    Some((*first, *later))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Happened;

    fn log(ids: &[(&str, u64)]) -> WorldLog {
        let changes =
            ids.iter().map(|(id, attempt)| Happened { id: (*id).to_owned(), attempt: *attempt }).collect();
        WorldLog::from([("k".to_owned(), changes)])
    }

    fn call(began: u64, saw: Saw) -> CallRecord {
        CallRecord { key: "k".to_owned(), began, ended: began + 1, saw }
    }

    fn success(id: &str) -> Saw {
        Saw::Success { body: world::body(id) }
    }

    fn standing(standing: Standing) -> BTreeMap<String, Standing> {
        BTreeMap::from([("k".to_owned(), standing)])
    }

    fn checks(
        log: &WorldLog,
        history: &[CallRecord],
        standings: &BTreeMap<String, Standing>,
    ) -> Vec<HistoryCheck> {
        judge(log, history, standings).into_iter().map(|violation| violation.check).collect()
    }

    #[test]
    fn a_change_answered_and_replayed_is_in_order() {
        let history =
            [call(1, Saw::Nothing), call(3, success("a")), call(5, Saw::Nothing), call(7, success("a"))];
        assert_eq!(checks(&log(&[("a", 1)]), &history, &standing(Standing::Applied)), []);
    }

    #[test]
    fn each_check_notices_its_own_violation() {
        let nothing = WorldLog::new();
        let once = log(&[("a", 1)]);
        let free = standing(Standing::Free);
        let applied = standing(Standing::Applied);
        let in_doubt = standing(Standing::InDoubt);
        let twice = log(&[("a", 1), ("b", 2)]);
        assert_eq!(checks(&twice, &[], &in_doubt), [HistoryCheck::C1AtMostOnce]);
        assert_eq!(
            checks(&nothing, &[call(1, success("a"))], &applied),
            [HistoryCheck::C2SuccessIsTrue, HistoryCheck::C2SuccessIsTrue]
        );
        let forgotten = [call(1, success("a")), call(3, Saw::InDoubt)];
        assert_eq!(checks(&once, &forgotten, &in_doubt), [HistoryCheck::C3SuccessStays]);
        assert_eq!(
            checks(&once, &[call(1, Saw::Nothing)], &free),
            [HistoryCheck::C5FreeIsTrue, HistoryCheck::C4ChangeIsKnown]
        );
        let other = [call(1, success("b"))];
        assert_eq!(checks(&once, &other, &applied), [HistoryCheck::C6OneAnswer]);
        let denied = [call(1, Saw::NotApplied { attempt: Some(1) })];
        assert_eq!(checks(&once, &denied, &in_doubt), [HistoryCheck::C7DenialIsTrue]);
    }

    #[test]
    fn an_attempt_after_a_denied_one_may_happen() {
        let history = [call(1, Saw::NotApplied { attempt: Some(1) }), call(3, success("a"))];
        assert_eq!(checks(&log(&[("a", 2)]), &history, &standing(Standing::Applied)), []);
    }
}
