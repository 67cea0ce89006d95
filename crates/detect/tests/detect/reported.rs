//! Wrong results that readers reported, each as small as it could be made.

use semel_core::json::Json;
use semel_detect::audit::finding::FindingLevel;
use semel_detect::audit::run::{AuditOptions, run};
use semel_detect::audit::tracker::{Tracked, Tracker};
use semel_detect::audit::{Audit, AuditReport, CALLS_HELD_MAX};
use semel_detect::formats::mapped::Mapping;
use semel_detect::judge::Judge;
use semel_detect::source::discover;
use semel_detect::transcript::{ActionCall, RecordedCall, TranscriptEntry, TranscriptEvent};
use serde_json::{Value, json};

/// An audit of these lines, as JSON lines or by a mapping.
fn audit(lines: &[Value], mapping: Option<&str>) -> AuditReport {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lines.jsonl");
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(&path, text.join("\n")).expect("writable");
    let judge = Judge::new(Vec::new()).expect("the packs load");
    let mapping = mapping.map(|mapping| Mapping::parse(mapping).expect("a mapping"));
    let files = discover::candidates(&path).expect("readable");
    run(files, &judge, &AuditOptions { mapping, workers: 1, since: None }, |_| {})
}

const MAPPING: &str = "tool=tool,args=args,result=out,time=at";

fn charge(second: u32, out: &str) -> Value {
    json!({"at": format!("2026-03-01T09:00:{second:02}Z"), "tool": "create_charge", "args": {"customer": "c", "amount": 5}, "out": out})
}

#[test]
fn a_lost_answer_between_two_successes_leaves_them_proven() {
    let lines =
        [charge(1, r#"{"id":"ch_1"}"#), charge(5, r#"{"error":"timed out"}"#), charge(9, r#"{"id":"ch_2"}"#)];
    let report = audit(&lines, Some(MAPPING));
    assert_eq!(report.count(FindingLevel::Proven), 1, "{:?}", report.counts);
    assert_eq!((report.findings[0].calls.len(), report.blind_retries), (3, 1));
}

#[test]
fn each_effect_of_a_repeated_batch_is_a_finding_of_its_own() {
    let memos = ["January rent", "February rent", "March rent"];
    let batch = memos.iter().chain(&memos).zip(1..).map(|(memo, n)| {
        let mut line = charge(n, &json!({"id": format!("ch_{n}")}).to_string());
        line["args"]["description"] = json!(memo);
        line
    });
    let report = audit(&batch.collect::<Vec<_>>(), Some(MAPPING));
    assert_eq!((report.count(FindingLevel::Proven), report.counts.len()), (3, 1), "{:?}", report.findings);
}

#[test]
fn many_calls_of_one_outline_hide_no_repeat() {
    let call = |n: usize, memo: &str| json!({"tool": "create_charge", "args": {"customer": "c", "amount": 5, "description": memo}, "out": json!({"id": format!("ch_{n}")}).to_string()});
    let others = (2..600).map(|n| call(n, &format!("rent of flat {n}")));
    let lines: Vec<Value> = [call(0, "first"), call(1, "first")].into_iter().chain(others).collect();
    assert_eq!(audit(&lines, Some(MAPPING)).count(FindingLevel::Proven), 1);
}

fn journal(records: &[(&str, &str, u32)]) -> Vec<Value> {
    let lines = records.iter().enumerate().map(|(second, (kind, state, attempt))| {
        json!({"at": format!("2026-03-01T09:00:{second:02}Z"), "kind": kind, "effect_id": "ef_01M7QGRVBAE29TTKM5FQ0TQX9W",
               "data": {"action": "mcp:billing/create_charge", "subject": "INV-1", "attempt": attempt, "occurrence": 1, "state": state}})
    });
    lines.collect()
}

#[test]
fn the_journal_is_read_by_the_state_that_each_record_leaves() {
    let decided = |by: &'static str| {
        journal(&[
            ("claimed", "in_flight", 1),
            ("settled_in_doubt", "in_doubt", 1),
            (by, "not_applied", 0),
            ("claimed", "in_flight", 2),
            ("settled_applied", "applied", 2),
        ])
    };
    for by in ["probed_no", "ruled_not_applied"] {
        let report = audit(&decided(by), None);
        assert_eq!((report.effects, report.counts.len()), (2, 0), "{by}: {:?}", report.findings);
    }
    // A refusal of the second attempt says nothing about the first.
    let blind = journal(&[
        ("claimed", "in_flight", 1),
        ("lapsed", "in_doubt", 1),
        ("claimed", "in_flight", 2),
        ("settled_not_applied", "in_doubt", 2),
        ("claimed", "in_flight", 3),
        ("settled_applied", "applied", 3),
    ]);
    assert_eq!(audit(&blind, None).count(FindingLevel::Likely), 1);
}

#[test]
fn calls_without_recorded_arguments_are_counted_as_such() {
    let mut lines = [charge(1, r#"{"id":"ch_1"}"#), charge(5, r#"{"id":"ch_2"}"#)];
    lines.iter_mut().for_each(|line| drop(line.as_object_mut().expect("an object").remove("args")));
    let report = audit(&lines, Some(MAPPING));
    assert_eq!((report.tool_calls, report.effects, report.without_arguments), (2, 0, 2));
}

#[test]
fn a_mapping_that_fits_no_line_is_named() {
    let report = audit(&[charge(1, "ok")], Some("tool=tol,args=args"));
    assert_eq!((report.tool_calls, report.skipped.files), (0, 1));
}

#[test]
fn calls_are_held_up_to_a_bound() {
    let judge = Judge::new(Vec::new()).expect("the packs load");
    let mut tracker = Tracker::new(&judge, 0, "f", false);
    let arguments = Json::object([("customer", Json::str("c"))]);
    let actions = vec![ActionCall::of_tool("create_charge", arguments)];
    let call = RecordedCall { id: "1".into(), turn: None, actions, resends: 0 };
    tracker.take(1, TranscriptEntry::new(TranscriptEvent::RecordedCall(call)));
    let one = tracker.finish().occurrences.remove(0);
    let mut audit = Audit::new(Vec::new());
    for outline in 0..CALLS_HELD_MAX as u64 {
        let mut call = one.clone();
        call.judged.group = outline / 3;
        audit.take(Tracked { occurrences: vec![call.clone(), call], ..Tracked::default() });
        assert!(audit.calls_held() <= CALLS_HELD_MAX, "{}", audit.calls_held());
    }
    assert_eq!(audit.finish().count(FindingLevel::Likely), CALLS_HELD_MAX.div_ceil(3) as u64, "none is lost");
}
