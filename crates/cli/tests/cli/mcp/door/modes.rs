//! Observing, guarding strictly, and doing without a ledger.

use super::stage::{Stage, greeted};
use crate::mcp::line::Line;
use crate::mcp::{assert_replayed, receipt, text};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn order() -> Value {
    json!({"order": "1001"})
}

/// One session, with all that came back and all that the server heard.
fn session(stage: &Stage, mut command: std::process::Command) -> (Vec<String>, Vec<String>) {
    let mut line = Line::to(&mut command);
    let mut came = Vec::new();
    for sent in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"create_order","arguments":{"n": 1.0},"idempotencyKey":"k","_meta":{"dev.semel/run-id":"r"}}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"create_order","arguments":{"n": 1.0,"semel_again":"why"}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"fail_order","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"create_order","arguments":{"n":1,"n":2},"idempotencyKey":7}}"#,
        r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"semel_ledger"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_order"}}"#,
    ] {
        line.send_raw(sent.as_bytes());
        came.push(String::from_utf8(line.read().expect("an answer")).expect("text"));
    }
    line.close();
    let heard = stage.heard();
    std::fs::remove_file(stage.work().join("heard")).expect("it heard something");
    (came, heard)
}

fn observed() -> Stage {
    let raw = r#"{"content":[ {"type":"text","text":"\u0061"} ], "n":1.10}"#;
    let calls = json!({
        "create_order": {"raw": raw}, "semel_ledger": {"raw": raw}, "get_order": {"raw": raw},
        "fail_order": {"error": {"code": -32000, "message": "bad gateway"}},
    });
    Stage::with_calls(&["create_order", "fail_order", "get_order"], calls).mode("observe")
}

#[test]
fn observing_changes_nothing_that_anybody_sees_and_writes_it_down() {
    let stage = observed();
    let direct = session(&stage, stage.bare());
    assert_eq!(session(&stage, stage.guarded(&[])), direct);
    assert_eq!(session(&stage, stage.guarded(&["--dry-run-argument"])), direct);
    assert_eq!((stage.stderr().as_str(), stage.recorded().len()), ("", 0));
    let journal = stage.semel(["--json", "ledger", "tail", "--no-follow", "-n", "100"]).stdout;
    let observed: Vec<Value> = journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line of the journal"))
        .filter(|line| line["kind"] == "observed")
        .collect();
    assert!(observed.len() >= 6, "{journal}");
    assert!(observed.iter().any(|line| line["data"]["action"] == "mcp:billing/create_order"), "{journal}");
}

#[test]
fn observing_tells_a_repeat_from_a_first_call() {
    let stage = observed();
    let mut line = stage.open();
    for order in ["1", "1", "2"] {
        line.call("create_order", json!({"order": order}));
    }
    assert!(line.close().success());
    let journal = stage.semel(["--json", "ledger", "tail", "--no-follow", "-n", "100"]).stdout;
    let lines =
        journal.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of the journal"));
    let mut told: Vec<_> = lines
        .map(|line| (line["data"]["would"].clone(), line["data"]["repeats"]["seen"].clone()))
        .filter(|(would, _)| !would.is_null())
        .collect();
    // Nobody waits for these lines, so they may be written in any order.
    told.sort_by_key(|(would, _)| would.to_string());
    let run = (json!("run"), Value::Null);
    assert_eq!(told, [(json!("replay"), json!(1)), run.clone(), run], "{journal}");
    assert_eq!(stage.world().len(), 3, "nothing is kept from happening");
}

#[test]
fn observing_without_a_ledger_changes_nothing_either() {
    let stage = observed();
    let direct = session(&stage, stage.bare());
    std::fs::write(stage.state(), "in the way").expect("the state directory is a file");
    assert_eq!(session(&stage, stage.guarded(&[])), direct);
}

/// Who asks for a dry run must not get the effect, whatever the mode.
#[test]
fn a_dry_run_is_one_while_observing_too() {
    let stage = observed();
    let params = json!({"name": "create_order", "arguments": {}, "_meta": {"dev.semel/dry-run": true}});
    assert_eq!(receipt(&stage.open().call_with(params))["outcome"], "dry_run");
    assert_eq!(stage.world().len(), 0);
}

#[test]
fn strictly_a_repeat_of_an_act_tool_is_answered_from_the_record() {
    let stage = Stage::with_tools(&["append_note", "get_order"]).mode("strict");
    let mut line = stage.open();
    let first = line.call("append_note", order());
    assert_replayed(&line.call("append_note", order()), &first);
    assert_eq!(stage.world().len(), 1);
    line.call("get_order", order());
    line.call("get_order", order());
    assert_eq!(stage.world().len(), 3, "reads pass");
}

#[test]
fn without_a_ledger_reads_pass_and_effects_are_refused_before_they_are_sent() {
    let stage = Stage::with_calls(
        &["create_order", "append_note", "get_order"],
        json!({"get_order": {"effect": false}}),
    );
    std::fs::create_dir(stage.state()).expect("a state directory");
    std::fs::set_permissions(stage.state(), std::fs::Permissions::from_mode(0o500))
        .expect("nobody may write it");
    if std::fs::write(stage.state().join("probe"), "").is_ok() {
        // Root may write anywhere; a file in the way stops root too.
        std::fs::remove_dir_all(stage.state()).expect("it was empty");
        std::fs::write(stage.state(), "in the way").expect("the state directory is a file");
    }
    let mut line = greeted(Line::to(&mut stage.guarded(&[])));
    assert!(text(&line.call("get_order", order())).starts_with("done: "));
    for tool in ["create_order", "append_note"] {
        let refused = line.call(tool, order());
        let answer = receipt(&refused);
        assert_eq!(
            (&answer["code"], &refused["isError"]),
            (&"ledger_unavailable".into(), &true.into()),
            "{refused}"
        );
        assert_eq!(answer["is_it_safe_to_retry"], "yes");
    }
    assert!(text(&line.call("get_order", order())).starts_with("done: "));
    assert_eq!(stage.world().len(), 0);
    assert!(stage.stderr().contains("ledger is not available"), "{}", stage.stderr());
}

/// More than there are threads for calls, so that every one of them is stuck.
const STUCK: usize = 4;

#[test]
fn a_read_does_not_wait_for_calls_that_wait_for_the_ledger() {
    let stage = Stage::with_calls(&["create_order", "get_order"], json!({"get_order": {"effect": false}}));
    let mut command = stage.guarded(&[]);
    let mut line = greeted(Line::to(command.env("SEMEL_FAILPOINTS", "gate.before_claim=pause(1000)")));
    // From here on the tools are known, and nothing needs to be asked first.
    line.call("get_order", order());
    let call = |name: &str, order: usize| json!({"name": name, "arguments": {"order": order.to_string()}});
    // At once: the first call of its own would be carried out by the thread that reads.
    let calls = (0..STUCK).map(|n| call("create_order", n)).chain([call("get_order", 0)]);
    let mut effects = line.ask_all("tools/call", calls);
    let read = effects.pop().expect("the read was asked last");
    let came: Vec<Value> = (0..=STUCK).map(|_| line.read_answer().expect("an answer").0).collect();
    assert_eq!(came[0]["id"], read, "{came:?}");
    assert!(effects.iter().all(|id| came.iter().any(|answer| answer["id"] == *id)), "{came:?}");
    assert_eq!(stage.world().len(), STUCK);
}
