//! A client that stops waiting: the call is finished, nobody is bothered, and the model learns what became of it.

use super::stage::Stage;
use crate::mcp::line::Line;
use crate::mcp::{receipt, text};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

fn slow() -> Stage {
    Stage::with_calls(
        &["append_note", "create_order"],
        json!({"append_note": {"until": "until", "steps": 1}}),
    )
}

fn note() -> Value {
    json!({"name": "append_note", "arguments": {"note": "n"}, "_meta": {"progressToken": "p"}})
}

fn cancel(line: &mut Line, id: u64) {
    line.notify("notifications/cancelled", json!({"requestId": id, "reason": "SdkError: Request timed out"}));
}

/// An answer to something else shows that everything before it has been handled.
fn pings(line: &mut Line) {
    assert_eq!(line.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn the_call_is_finished_and_settled_and_neither_side_hears_of_it() {
    let stage = slow();
    let mut line = stage.open();
    let id = line.ask("tools/call", note());
    stage.wait_until("the effect is there", || stage.world().len() == 1);
    let progress: Value = serde_json::from_slice(&line.read().expect("progress")).expect("JSON");
    assert_eq!(progress["params"], json!({"progressToken": "p", "progress": 1}), "it passes while it runs");
    cancel(&mut line, id);
    pings(&mut line);
    stage.file("until", "");
    stage.wait_until("it is settled", || stage.recorded()[0]["state"] == "applied");
    // Neither the second progress nor the answer stands between us and this one.
    line.send(&json!({"jsonrpc": "2.0", "id": "after", "method": "ping"}));
    let next: Value = serde_json::from_slice(&line.read().expect("a line")).expect("JSON");
    assert_eq!(next["id"], "after", "{next}");
    assert_eq!(stage.heard_requests("notifications/cancelled").len(), 0, "the server is left to finish");
    assert!(stage.recorded()[0]["delivered_at"].is_null(), "nobody has seen the answer");
}

#[test]
fn the_retry_is_answered_from_the_record_even_where_a_repeat_would_run() {
    let stage = slow();
    let mut line = stage.open();
    let id = line.ask("tools/call", note());
    stage.wait_until("the effect is there", || stage.world().len() == 1);
    line.read();
    cancel(&mut line, id);
    stage.file("until", "");
    stage.wait_until("it is settled", || stage.recorded()[0]["state"] == "applied");
    let retried = line.call_with(json!({"name": "append_note", "arguments": {"note": "n"}}));
    assert!(text(&retried).contains(stage.world()[0]["id"].as_str().expect("an id")), "{retried}");
    assert_eq!(receipt(&retried)["outcome"], "replayed", "{retried}");
    assert_eq!(stage.world().len(), 1);
    // Now it has been seen, so the next one is meant.
    assert_eq!(receipt(&line.call("append_note", json!({"note": "n"})))["outcome"], "ran");
}

#[test]
fn the_next_guarded_call_tells_the_model_what_became_of_it() {
    let stage = slow();
    let mut line = stage.open();
    let id = line.ask("tools/call", note());
    stage.wait_until("the effect is there", || stage.world().len() == 1);
    line.read();
    cancel(&mut line, id);
    let while_it_runs = line.call("create_order", json!({"order": "1"}));
    assert!(
        text(&while_it_runs).contains("append_note, which you stopped waiting for, is still running"),
        "{while_it_runs}"
    );
    stage.file("until", "");
    stage.wait_until("it is settled", || stage.recorded().iter().all(|effect| effect["state"] == "applied"));
    let after = line.call("create_order", json!({"order": "2"}));
    let made = stage.world()[0]["id"].as_str().expect("an id").to_owned();
    assert!(text(&after).contains("append_note, which you stopped waiting for: it was done"), "{after}");
    assert!(text(&after).contains(&made), "{after}");
    assert!(
        !text(&line.call("create_order", json!({"order": "3"}))).contains("append_note"),
        "it is told once"
    );
}

/// The listing is being asked for when the cancel comes: nothing has been sent, and nothing is.
#[test]
fn a_call_that_is_given_up_before_it_was_sent_is_not_sent() {
    let stage = Stage::telling(json!({"listed": "listed"}));
    let mut line = stage.open();
    let given_up = line.ask("tools/call", json!({"name": "append_note", "arguments": {}}));
    let wanted = line.ask("tools/call", json!({"name": "create_order", "arguments": {}}));
    cancel(&mut line, given_up);
    pings(&mut line);
    stage.file("listed", "");
    assert_eq!(line.read_answer().expect("an answer").0["id"], wanted);
    assert!(line.close().success());
    let done: Vec<Value> = stage.world().into_iter().map(|mut effect| effect["tool"].take()).collect();
    assert_eq!(done, ["create_order"]);
}

#[test]
fn a_call_that_is_given_up_while_it_waits_for_its_turn_is_not_sent() {
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"until": "until"}}))
        .rule("create_order", "class = \"consequential\"\nserialize_by = \"args.account\"");
    let mut line = stage.open();
    let order = |n: u64| json!({"name": "create_order", "arguments": {"account": "7", "order": n}});
    let first = line.ask("tools/call", order(1));
    stage.wait_until("the first is with the server", || stage.world().len() == 1);
    let second = line.ask("tools/call", order(2));
    pings(&mut line);
    cancel(&mut line, second);
    pings(&mut line);
    stage.file("until", "");
    assert_eq!(line.read_answer().expect("an answer").0["id"], first);
    assert_eq!(receipt(&line.call_with(order(3)))["outcome"], "ran");
    assert!(line.close().success());
    let done: Vec<Value> =
        stage.world().into_iter().map(|mut effect| effect["arguments"]["order"].take()).collect();
    assert_eq!(done, [1, 3]);
}

#[test]
fn a_cancelled_read_is_cancelled_at_the_server() {
    let stage = Stage::with_calls(&["get_order"], json!({"get_order": {"effect": false, "until": "until"}}));
    let mut line = stage.open();
    line.request("tools/list", json!({}));
    let id = line.ask("tools/call", json!({"name": "get_order"}));
    cancel(&mut line, id);
    pings(&mut line);
    assert_eq!(stage.heard_requests("notifications/cancelled")[0]["params"]["requestId"], id);
}

/// What an agent that dies looks like from here: both its ends of the pipes are gone.
#[test]
fn a_client_that_goes_away_finds_the_answer_when_it_is_back_even_where_a_repeat_would_run() {
    let stage = slow();
    let mut command = stage.guarded(&[]);
    let mut semel = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("semel starts");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "append_note", "arguments": {}}});
    let mut input = semel.stdin.take().expect("a pipe");
    writeln!(input, "{call}").expect("semel reads");
    stage.wait_until("the effect is there", || stage.world().len() == 1);
    drop((input, semel.stdout.take()));
    stage.file("until", "");
    semel.wait().expect("semel ends");
    let back = stage.open().call("append_note", json!({}));
    assert!(text(&back).contains(stage.world()[0]["id"].as_str().expect("an id")), "{back}");
    assert_eq!(stage.world().len(), 1);
}

/// A client dies while its call runs, and semel ends when it has.
fn dies_meanwhile(stage: &Stage, flags: &[&str]) {
    let before = stage.world().len();
    let mut command = stage.guarded(flags);
    let mut semel = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("semel starts");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": note()});
    let mut input = semel.stdin.take().expect("a pipe");
    writeln!(input, "{call}").expect("semel reads");
    stage.wait_until("the effect is there", || stage.world().len() == before + 1);
    drop((input, semel.stdout.take()));
    stage.file("until", "");
    semel.wait().expect("semel ends");
}

#[test]
fn a_client_that_is_started_anew_is_told_once_what_became_of_its_last_call() {
    let stage = slow();
    dies_meanwhile(&stage, &[]);
    let told = stage.open().call("create_order", json!({"order": "1"}));
    assert!(text(&told).contains("mcp:billing/append_note") && text(&told).contains(": done"), "{told}");
    let once = stage.open().call("create_order", json!({"order": "2"}));
    assert!(!text(&once).contains("append_note"), "it is told once: {once}");
    let retried = stage.open().call("append_note", json!({"note": "n"}));
    assert_eq!(receipt(&retried)["outcome"], "replayed", "to be told is not to have the answer: {retried}");
    assert_eq!(stage.world().len(), 3);
}

#[test]
fn a_client_that_is_started_anew_is_told_what_fell_in_doubt_when_semel_was_killed() {
    let stage = slow();
    let mut line = stage.open();
    line.ask("tools/call", note());
    stage.wait_until("the effect is there", || stage.world().len() == 1);
    line.kill();
    let mut anew = stage.open();
    let told = anew.call("create_order", json!({"order": "1"}));
    assert!(text(&told).contains("append_note") && text(&told).contains("IN DOUBT"), "{told}");
    assert!(!text(&anew.call("create_order", json!({"order": "2"}))).contains("append_note"));
    assert_eq!(stage.world().len(), 3);
}

/// Whoever was to tell it died before it could.
#[test]
fn what_was_not_told_is_told_by_the_next() {
    let stage = slow();
    dies_meanwhile(&stage, &[]);
    std::fs::remove_file(stage.work().join("until")).expect("it was there");
    let mut line = stage.open();
    line.ask("tools/call", json!({"name": "append_note", "arguments": {"note": "another"}}));
    stage.wait_until("the effect is there", || stage.world().len() == 2);
    line.kill();
    let told = stage.open().call("create_order", json!({"order": "1"}));
    assert!(text(&told).contains(": done") && text(&told).contains("IN DOUBT"), "{told}");
    let once = stage.open().call("create_order", json!({"order": "2"}));
    assert!(!text(&once).contains("append_note"), "it is told once: {once}");
}

/// The process before still waits for the server when the client is back.
#[test]
fn what_ends_after_the_client_is_back_is_told_with_the_call_after_that() {
    let stage = slow();
    let mut command = stage.guarded(&[]);
    let mut semel = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("semel starts");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": note()});
    let mut input = semel.stdin.take().expect("a pipe");
    writeln!(input, "{call}").expect("semel reads");
    stage.wait_until("the effect is there", || stage.world().len() == 1);
    drop((input, semel.stdout.take()));
    let mut anew = stage.open();
    let early = anew.call("create_order", json!({"order": "1"}));
    assert!(!text(&early).contains("append_note"), "it still runs: {early}");
    stage.file("until", "");
    semel.wait().expect("semel ends");
    let told = anew.call("create_order", json!({"order": "2"}));
    assert!(text(&told).contains("append_note") && text(&told).contains(": done"), "{told}");
    assert_eq!(stage.world().len(), 3);
}

#[test]
fn another_server_another_run_and_another_directory_are_told_nothing() {
    let stage = slow();
    dies_meanwhile(&stage, &["--run", "r1"]);
    let order = |n: &str| json!({"order": n});
    let elsewhere = stage.work().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let told_there = {
        let mut command = stage.guarded(&["--any-directory"]);
        command.current_dir(&elsewhere);
        super::stage::greeted(Line::to(&mut command)).call("create_order", order("1"))
    };
    for told in [
        told_there,
        stage.open_as("other").call("create_order", order("2")),
        stage.open_with(&["--run", "r2"]).call("create_order", order("3")),
        stage.open().call("create_order", order("4")),
    ] {
        assert!(!text(&told).contains("append_note"), "{told}");
    }
    let told = stage.open_with(&["--run", "r1"]).call("create_order", order("5"));
    assert!(text(&told).contains("append_note"), "{told}");
}
