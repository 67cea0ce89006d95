//! Collects the calls of many files and finds those that repeat one another.
//!
//! Each file is read by itself ([`tracker`]); its calls are gathered by outline and judged together ([`group`]), across
//! files and agents. Memory is bounded: of more calls than [`CALLS_HELD_MAX`] the outlines that were silent longest are
//! judged early and let go.

pub mod audited_call;
pub mod finding;
pub mod follow;
pub mod group;
pub mod run;
pub mod tracker;

use audited_call::{AuditedCall, LinePlace, ListingCall, RemovalCall};
use finding::{AuditFinding, FindingCall, FindingLevel, prevention};
use group::{GroupVerdict, Repeats};
use semel_core::judgement::superseded;
use semel_core::time::At;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use tracker::{RemarkKind, Tracked};

/// How many calls are remembered in all. Each takes about a kilobyte.
pub const CALLS_HELD_MAX: usize = 100_000;
/// How many calls of one outline are compared; of more the older half is judged early.
const OUTLINE_CALLS_MAX: usize = 4_096;
/// How many findings are kept in full, and how many remarks. All findings are counted.
pub const FINDINGS_MAX: usize = 5_000;
/// How many calls are remembered to recognise copies of them.
const COPIES_KNOWN_MAX: usize = 500_000;
/// How many removals are remembered, newest last.
const REMOVALS_MAX: usize = 2_048;
/// The same of reads after a lost answer, of which each takes up to 50 KB.
const LISTINGS_MAX: usize = 256;
/// How many sessions are counted: telling them apart takes their ids.
const SESSIONS_COUNTED_MAX: usize = 1_000_000;

#[derive(Debug, Default)]
pub struct Audit {
    files: Vec<PathBuf>,
    groups: HashMap<u64, CallGroup>,
    /// In all groups together.
    calls_held: usize,
    removals: Vec<RemovalCall>,
    listings: Vec<ListingCall>,
    sessions: HashSet<u64>,
    /// The file that has a call, by the call's id.
    files_of_calls: HashMap<u64, u32>,
    clock: u64,
    /// The clock when findings were last told. `None`: never.
    told_at: Option<u64>,
    report: AuditReport,
}

#[derive(Debug, Default)]
struct CallGroup {
    calls: Vec<AuditedCall>,
    touched: u64,
    /// How many of its calls were in each finding that was told.
    told: HashMap<Option<u64>, usize>,
}

#[derive(Debug, Default, Serialize)]
pub struct AuditReport {
    pub files: u64,
    pub sessions: u64,
    pub tool_calls: u64,
    /// Calls that change something.
    pub effects: u64,
    /// Calls that change something, and whose arguments nobody recorded: they cannot be compared.
    pub without_arguments: u64,
    pub findings: Vec<AuditFinding>,
    pub counts: BTreeMap<FindingLevel, u64>,
    pub blind_retries: u64,
    pub blind_retries_without_harm: u64,
    pub verified_retries: u64,
    pub remarks: Vec<ReportedRemark>,
    pub skipped: SkippedCounts,
}

#[derive(Debug, Clone, Serialize)]
pub struct ReportedRemark {
    pub kind: RemarkKind,
    pub action: String,
    pub file: String,
    pub line: u64,
}

/// The parts that could not be read, with the first of them named.
#[derive(Debug, Default, Serialize)]
pub struct SkippedCounts {
    pub files: u64,
    pub lines: u64,
    pub named: Vec<String>,
}

/// How many broken lines and files are named.
const NAMED_MAX: usize = 20;

impl SkippedCounts {
    pub fn line(&mut self, file: &str, line: u64, why: &str) {
        self.lines += 1;
        self.name(format!("{file}:{line}: {why}"));
    }

    pub fn file(&mut self, file: &str, why: &str) {
        self.files += 1;
        self.name(format!("{file}: {why}"));
    }

    fn name(&mut self, text: String) {
        if self.named.len() < NAMED_MAX {
            self.named.push(text);
        }
    }
}

impl AuditReport {
    pub fn count(&self, level: FindingLevel) -> u64 {
        self.counts.get(&level).copied().unwrap_or(0)
    }

    /// Whether a finding is at least of this level.
    pub fn reaches(&self, level: FindingLevel) -> bool {
        self.counts.iter().any(|(found, count)| *found >= level && *count > 0)
    }
}

impl Audit {
    pub fn new(files: Vec<PathBuf>) -> Audit {
        Audit { files, ..Audit::default() }
    }

    /// One more file, and its number.
    pub fn add_file(&mut self, path: PathBuf) -> u32 {
        self.files.push(path);
        u32::try_from(self.files.len() - 1).expect("fewer files than that fit on a disk")
    }

    /// The findings that came up, or grew, since they were last asked for. Those of the first time are history.
    pub fn new_findings(&mut self) -> Vec<AuditFinding> {
        let told_at = self.told_at.replace(self.clock);
        let touched = self.groups.iter().filter(|(_, group)| told_at.is_none_or(|at| group.touched > at));
        let touched: Vec<u64> = touched.map(|(key, _)| *key).collect();
        let mut findings = Vec::new();
        for key in touched {
            let Some(mut group) = self.groups.remove(&key) else { continue };
            for repeats in self.verdict(&mut group.calls).repeats {
                let told = group.told.entry(repeats.intent).or_default();
                if repeats.calls.len() > *told {
                    *told = repeats.calls.len();
                    findings.push(self.finding(&group.calls, repeats));
                }
            }
            self.groups.insert(key, group);
        }
        if told_at.is_none() { Vec::new() } else { findings }
    }

    /// Takes over the records of a file, or of a part of it.
    pub fn take(&mut self, tracked: Tracked) {
        self.report.tool_calls += tracked.tool_calls;
        self.report.without_arguments += tracked.without_arguments;
        let uncounted = SESSIONS_COUNTED_MAX - self.sessions.len();
        self.sessions.extend(tracked.sessions.into_iter().take(uncounted));
        let unremarked = FINDINGS_MAX - self.report.remarks.len();
        for remark in tracked.remarks.into_iter().take(unremarked) {
            let (file, line) = (self.name(remark.place), remark.place.line);
            self.report.remarks.push(ReportedRemark { kind: remark.kind, action: remark.action, file, line });
        }
        remember(&mut self.removals, tracked.removals, REMOVALS_MAX);
        remember(&mut self.listings, tracked.listings, LISTINGS_MAX);
        for call in tracked.occurrences {
            if self.is_copy(&call) {
                continue;
            }
            self.report.effects += 1;
            self.clock += 1;
            let group = self.groups.entry(call.judged.group).or_default();
            group.touched = self.clock;
            self.calls_held += 1;
            group.calls.push(call);
            if group.calls.len() > OUTLINE_CALLS_MAX {
                let older: Vec<AuditedCall> = group.calls.drain(..OUTLINE_CALLS_MAX / 2).collect();
                group.told.clear();
                self.calls_held -= older.len();
                self.judge(older);
            }
        }
        if self.calls_held > CALLS_HELD_MAX {
            self.let_go();
        }
    }

    /// Whether the same call stands in another file: sessions are copied when they are forked or resumed.
    fn is_copy(&mut self, call: &AuditedCall) -> bool {
        let Some(id) = call.unique_id else { return false };
        if self.files_of_calls.len() >= COPIES_KNOWN_MAX {
            self.files_of_calls.clear();
        }
        *self.files_of_calls.entry(id).or_insert(call.place.file) != call.place.file
    }

    /// How many calls are remembered now.
    pub fn calls_held(&self) -> usize {
        self.calls_held
    }

    pub fn skipped(&mut self) -> &mut SkippedCounts {
        &mut self.report.skipped
    }

    pub fn finish(mut self) -> AuditReport {
        let groups: Vec<CallGroup> = self.groups.drain().map(|(_, group)| group).collect();
        for group in groups {
            self.judge(group.calls);
        }
        self.report.files = self.files.len() as u64;
        self.report.sessions = self.sessions.len() as u64;
        let first = |finding: &AuditFinding| {
            finding.calls.first().map(|call| (call.at, call.file.clone(), call.line))
        };
        self.report
            .findings
            .sort_by(|one, other| other.level.cmp(&one.level).then_with(|| first(one).cmp(&first(other))));
        self.report.findings.truncate(FINDINGS_MAX);
        self.report
    }

    /// Judges the half of the groups that was silent longest.
    fn let_go(&mut self) {
        let mut touched: Vec<u64> = self.groups.values().map(|group| group.touched).collect();
        let middle = touched.len() / 2;
        let (_, median, _) = touched.select_nth_unstable(middle);
        let median = *median;
        let old: Vec<u64> =
            self.groups.iter().filter(|(_, group)| group.touched < median).map(|(key, _)| *key).collect();
        for key in old {
            if let Some(group) = self.groups.remove(&key) {
                self.calls_held -= group.calls.len();
                self.judge(group.calls);
            }
        }
    }

    fn judge(&mut self, mut calls: Vec<AuditedCall>) {
        if calls.len() < 2 {
            return;
        }
        let GroupVerdict { repeats, harmless_retries, looked, blind } = self.verdict(&mut calls);
        self.report.blind_retries_without_harm += u64::from(harmless_retries);
        self.report.verified_retries += u64::from(looked);
        self.report.blind_retries += u64::from(blind);
        for repeats in repeats {
            *self.report.counts.entry(repeats.level).or_default() += 1;
            // Weaker ones give way at the end; a bound here keeps a flood of them from filling the memory.
            if self.report.findings.len() < FINDINGS_MAX * 2 {
                let finding = self.finding(&calls, repeats);
                self.report.findings.push(finding);
            }
        }
    }

    fn verdict(&self, calls: &mut [AuditedCall]) -> GroupVerdict {
        calls.sort_by_key(|call| (call.at, call.place));
        let calls = &*calls;
        group::judge(
            calls,
            |earlier, later| is_removed_between(&self.removals, earlier, later),
            |earlier, later| lists_both(&self.listings, calls, earlier, later),
        )
    }

    fn finding(&self, calls: &[AuditedCall], repeats: Repeats) -> AuditFinding {
        let first = &calls[repeats.calls[0]];
        let as_call = |call: &AuditedCall| FindingCall {
            file: self.name(call.place),
            line: call.place.line,
            at: call.at,
            ending: call.ending,
        };
        AuditFinding {
            level: repeats.level,
            action: first.judged.action.clone(),
            class: first.judged.class,
            subject: first.judged.subject.clone(),
            calls: repeats.calls.iter().map(|at| as_call(&calls[*at])).collect(),
            gap: repeats.gap,
            layer: repeats.layer,
            why: repeats.why.to_owned(),
            prevention: prevention(&first.judged.action, repeats.level),
        }
    }

    fn name(&self, place: LinePlace) -> String {
        self.files.get(place.file as usize).map_or_else(String::new, |path| path.display().to_string())
    }
}

/// Adds to a memory of this length; the older half of a full one goes.
fn remember<T>(memory: &mut Vec<T>, new: Vec<T>, length: usize) {
    for one in new {
        if memory.len() >= length {
            memory.drain(..length / 2);
        }
        memory.push(one);
    }
}

/// When a call was made, for calls of several files.
fn moment(at: Option<At>, place: LinePlace) -> (At, LinePlace) {
    (at.unwrap_or(At(0)), place)
}

/// Whether a read after `later` lists what each of two calls made, of which `earlier` got no answer: a thing with all that
/// the call names, and a name that no answer has. More such things than calls without a name were there before.
fn lists_both(
    listings: &[ListingCall],
    calls: &[AuditedCall],
    earlier: &AuditedCall,
    later: &AuditedCall,
) -> bool {
    let is_nameless = |call: &&AuditedCall| call.ending.may_have_happened() && call.names.is_empty();
    let nameless = calls.iter().filter(is_nameless).count();
    let needed = 1 + usize::from(later.names.is_empty());
    listings.iter().any(|listing| {
        let is_after = moment(later.at, later.place) < moment(listing.at, listing.place);
        if !is_after || listing.server != later.server || earlier.about.is_empty() {
            return false;
        }
        let about = listing.things.iter().filter(|thing| {
            earlier.about.iter().all(|mark| thing.marks.contains(mark) || listing.asked.contains(mark))
        });
        let listed: BTreeSet<u64> = about.map(|thing| thing.own).collect();
        let unnamed = listed.iter().filter(|own| !calls.iter().any(|call| call.names.has(**own))).count();
        listed.len() > 1 && (needed..=nameless).contains(&unnamed)
    })
}

/// Whether a removal at the same server took back what `earlier` made, before `later` began.
fn is_removed_between(removals: &[RemovalCall], earlier: &AuditedCall, later: &AuditedCall) -> bool {
    let Some(server) = earlier.judged.removals else { return false };
    let (from, to) = (moment(earlier.at, earlier.place), moment(later.at, later.place));
    removals.iter().any(|removal| {
        let removed_at = moment(removal.at, removal.place);
        removal.server == server
            && from < removed_at
            && removed_at < to
            && superseded::is_named(
                &removal.named,
                &earlier.judged.marks,
                earlier.reply_marks.iter().copied(),
            )
    })
}
