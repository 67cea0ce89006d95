//! Files that are no transcripts, broken ones, and huge lines: counted and named, never fatal.

use flate2::Compression;
use flate2::write::GzEncoder;
use semel_detect::audit::AuditReport;
use semel_detect::audit::finding::FindingLevel;
use semel_detect::audit::run::{AuditOptions, run};
use semel_detect::judge::Judge;
use semel_detect::source::discover;
use std::io::Write;
use std::path::Path;

fn audit(path: &Path) -> AuditReport {
    let judge = Judge::new(Vec::new()).expect("the packs load");
    let files = discover::candidates(path).expect("readable");
    run(files, &judge, &AuditOptions { workers: 2, ..AuditOptions::default() }, |_| {})
}

/// Two charges of one intent, as Claude Code writes them.
fn two_charges() -> Vec<String> {
    let mut lines = Vec::new();
    for n in 1..=2 {
        lines.push(format!(
            r#"{{"type":"assistant","sessionId":"s","timestamp":"2026-03-01T09:00:0{n}Z","message":{{"id":"m{n}","content":[{{"type":"tool_use","id":"t{n}","name":"mcp__billing__create_charge","input":{{"customer":"c","amount":5}}}}]}}}}"#
        ));
        lines.push(format!(
            r#"{{"type":"user","sessionId":"s","timestamp":"2026-03-01T09:00:0{n}Z","message":{{"content":[{{"type":"tool_result","tool_use_id":"t{n}","content":"{{\"id\":\"ch_{n}\"}}"}}]}}}}"#
        ));
    }
    lines
}

#[test]
fn a_broken_line_is_named_and_the_rest_is_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.jsonl");
    let mut lines = two_charges();
    lines.insert(1, "{\"type\":\"assistant\",\"mess".to_owned());
    lines.insert(2, "x".repeat(10 * 1024 * 1024));
    std::fs::write(&path, lines.join("\n")).expect("writable");
    let report = audit(&path);
    assert_eq!((report.count(FindingLevel::Proven), report.skipped.lines), (1, 2));
    assert!(report.skipped.named[0].contains("s.jsonl:2: not JSON"), "{:?}", report.skipped.named);
}

#[test]
fn a_truncated_archive_gives_what_it_holds() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.jsonl.gz");
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(two_charges().join("\n").as_bytes()).expect("memory takes all");
    // Noise that does not shrink, so that the cut falls behind the charges.
    let mut noise = 1u64;
    for _ in 0..20_000 {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        writeln!(packed, "\n{{\"type\":\"note\",\"sessionId\":\"{noise:x}\"}}").expect("memory takes all");
    }
    let packed = packed.finish().expect("memory takes all");
    std::fs::write(&path, &packed[..packed.len() / 2]).expect("writable");
    let report = audit(&path);
    assert_eq!((report.count(FindingLevel::Proven), report.skipped.files), (1, 1), "{:?}", report.skipped);
}

#[test]
fn a_directory_of_pictures_and_other_files_has_no_findings() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("a.png"), [0x89, b'P', b'N', b'G', 0, 1, 2]).expect("writable");
    std::fs::write(directory.path().join("b.json"), [0xff, 0xfe, 0, 1]).expect("writable");
    std::fs::write(directory.path().join("c.log"), "just text\nmore text\n").expect("writable");
    std::fs::write(directory.path().join("d.jsonl"), "").expect("writable");
    std::fs::write(directory.path().join("e.json"), "[1,2,{\"a\":[[[[").expect("writable");
    let report = audit(directory.path());
    assert_eq!((report.tool_calls, report.findings.len()), (0, 0));
    assert_eq!(report.skipped.files, 4, "{:?}", report.skipped);
}

#[test]
fn a_copied_session_is_no_second_worker() {
    let directory = tempfile::tempdir().expect("a directory");
    let lines: Vec<String> = two_charges()
        .iter()
        .take(2)
        .map(|line| line.replace("\"t1\"", "\"toolu_01ABCDEFGHIJKLMN\""))
        .collect();
    std::fs::write(directory.path().join("a.jsonl"), lines.join("\n")).expect("writable");
    let fork = lines.join("\n").replace("\"sessionId\":\"s\"", "\"sessionId\":\"fork\"");
    std::fs::write(directory.path().join("b.jsonl"), fork).expect("writable");
    let report = audit(directory.path());
    assert_eq!((report.tool_calls, report.effects, report.findings.len()), (2, 1, 0));
}

#[test]
fn a_span_that_the_sdk_sent_again_is_found() {
    let span = |id: &str, parent: &str, seconds: u64, end: &str| {
        format!(
            r#"{{"traceId":"t","spanId":"{id}","parentSpanId":"{parent}","name":"x","startTimeUnixNano":"{seconds}000000000","attributes":[{{"key":"gen_ai.operation.name","value":{{"stringValue":"execute_tool"}}}},{{"key":"gen_ai.tool.name","value":{{"stringValue":"create_charge"}}}},{{"key":"gen_ai.tool.call.arguments","value":{{"stringValue":"{{\"amount\":5}}"}}}}{end}"#
        )
    };
    let done = r#",{"key":"gen_ai.tool.call.result","value":{"stringValue":"{\"id\":\"ch_2\"}"}}]}"#;
    let lost = r#",{"key":"error.type","value":{"stringValue":"timeout"}}],"status":{"code":2,"message":"timed out"}}"#;
    let spans = [span("p", "", 1, done), span("a", "p", 1, lost), span("b", "p", 3, done)].join(",");
    let directory = tempfile::tempdir().expect("a directory");
    let text = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#);
    std::fs::write(directory.path().join("traces.json"), text).expect("writable");
    let report = audit(directory.path());
    assert_eq!(report.count(FindingLevel::Likely), 1, "{report:?}");
    assert_eq!(report.findings[0].layer, semel_detect::audit::finding::Layer::Sdk);
}
