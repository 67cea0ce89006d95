//! Tries a policy before it guards anything: on its own examples, on pairs of calls, and on calls that were recorded.

pub mod examples;
pub mod pairs;
pub mod recorded;
pub mod rehearsal;

use crate::judge::Judge;
use recorded::RecordedAction;
use rehearsal::{Rehearsal, Treatment};
use semel_core::class::Class;
use semel_core::time::At;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How many changed calls are named. All are counted.
const CHANGES_NAMED_MAX: usize = 50;

/// Recorded calls under a policy, and under the one before it.
#[derive(Debug, Default, Serialize)]
pub struct RecordedReport {
    pub calls: u64,
    /// By action and rule. Reads are counted in `calls` alone: they always pass.
    pub groups: Vec<CallGroup>,
    pub changed: u64,
    pub changes: Vec<ChangedCall>,
}

/// The calls of one action that one rule takes.
#[derive(Debug, Serialize)]
pub struct CallGroup {
    pub action: String,
    /// `semel.toml:12`, `pack:gh:8`, or `default`.
    pub rule: String,
    pub class: Class,
    #[serde(flatten)]
    pub counts: TreatmentCounts,
    /// The same calls under the other policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<TreatmentCounts>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TreatmentCounts {
    pub let_through: u64,
    pub collapsed: u64,
    pub held: u64,
}

impl TreatmentCounts {
    fn add(&mut self, treatment: Treatment) {
        *match treatment {
            Treatment::LetThrough => &mut self.let_through,
            Treatment::Collapsed => &mut self.collapsed,
            Treatment::Held(_) => &mut self.held,
        } += 1;
    }
}

/// A call that the two policies treat differently.
#[derive(Debug, Serialize)]
pub struct ChangedCall {
    pub file: PathBuf,
    pub line: u64,
    pub action: String,
    pub subject: String,
    pub before: &'static str,
    pub after: &'static str,
}

/// Rehearses recorded calls. `against` is the policy before the change.
pub fn rehearse(
    calls: &[RecordedAction],
    files: &[PathBuf],
    judge: &Judge,
    against: Option<&Judge>,
) -> RecordedReport {
    let mut report = RecordedReport::default();
    let (mut rehearsal, mut before) = (Rehearsal::new(judge), against.map(Rehearsal::new));
    let mut groups: BTreeMap<(String, String, &str), (Class, TreatmentCounts, TreatmentCounts)> =
        BTreeMap::new();
    for call in calls {
        // Calls without a time follow one another at once.
        let at = call.at.unwrap_or(At(0));
        let after = rehearsal.call(&call.call, at, |rule| call.ending(rule));
        let before = before.as_mut().map(|before| before.call(&call.call, at, |rule| call.ending(rule)));
        report.calls += 1;
        let is_read = after.rule.class == Class::Read
            && before.as_ref().is_none_or(|before| before.rule.class == Class::Read);
        if is_read {
            continue;
        }
        let class = after.rule.class;
        let group = (call.call.action.clone(), after.rule.origin.to_string(), class.word());
        let (_, counts, counts_before) =
            groups.entry(group).or_insert((class, TreatmentCounts::default(), TreatmentCounts::default()));
        counts.add(after.treatment);
        let Some(before) = before else { continue };
        counts_before.add(before.treatment);
        if before.treatment != after.treatment {
            report.changed += 1;
            if report.changes.len() < CHANGES_NAMED_MAX {
                report.changes.push(ChangedCall {
                    file: files.get(call.file).cloned().unwrap_or_default(),
                    line: call.line,
                    action: call.call.action.clone(),
                    subject: after.subject,
                    before: before.treatment.word(),
                    after: after.treatment.word(),
                });
            }
        }
    }
    let group = |((action, rule, _), (class, counts, before))| CallGroup {
        action,
        rule,
        class,
        counts,
        before: against.map(|_| before),
    };
    report.groups = groups.into_iter().map(group).collect();
    report
}
