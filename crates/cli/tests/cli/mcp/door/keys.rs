//! SEP-3182: a key that the client brings itself, before servers that know the proposal and those that do not.

use super::stage::{Stage, stateless};
use crate::mcp::line::Line;
use crate::mcp::{assert_replayed, receipt, text};
use serde_json::{Value, json};

fn call(key: &str, order: &str) -> Value {
    json!({"name": "append_note", "arguments": {"order": order}, "idempotencyKey": key})
}

fn refused(line: &mut Line, params: Value) -> Value {
    let mut answer = line.request("tools/call", params);
    assert!(answer.get("result").is_none(), "{answer}");
    answer["error"].take()
}

#[test]
fn the_capability_is_added_to_what_the_server_says_of_itself() {
    let stage = Stage::telling(json!({"era": "dual", "tools": {"listChanged": true}}));
    let mut line = Line::to(&mut stage.guarded(&[]));
    let discovered = line.request("server/discover", json!({"_meta": stateless()}));
    let expected = json!({"listChanged": true, "idempotency": {}});
    assert_eq!(discovered["result"]["capabilities"]["tools"], expected, "{discovered}");
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]));
    let mut line = Line::to(&mut stage.guarded(&[]));
    let said = line.request("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
    assert_eq!(said["result"]["capabilities"]["tools"], expected, "{said}");
}

#[test]
fn a_key_is_stripped_for_a_server_that_does_not_know_it_and_kept_for_one_that_does() {
    for (tools, kept) in [(json!({}), Value::Null), (json!({"idempotency": {}}), json!("k-1"))] {
        let stage = Stage::telling(json!({"era": "dual", "tools": tools}));
        stage.open().call_with(call("k-1", "1"));
        assert_eq!(stage.heard_calls()[0]["idempotencyKey"], kept, "2025");
        // A client of the stateless era need not ask the server anything first.
        let stage = Stage::telling(json!({"era": "stateless", "tools": tools}));
        let mut params = call("k-1", "1");
        params["_meta"] = stateless();
        stage.open_stateless().call_with(params);
        assert_eq!(stage.heard_calls()[0]["idempotencyKey"], kept, "2026");
    }
}

#[test]
fn a_deliberate_repeat_has_a_key_of_its_own_for_a_server_that_knows_keys() {
    let stage = Stage::telling(json!({"era": "dual", "tools": {"idempotency": {}}}));
    let mut line = stage.open();
    line.call_with(call("k-1", "1"));
    let mut again = call("k-1", "1");
    again["arguments"]["semel_again"] = "a second box".into();
    for _ in 0..2 {
        line.call_with(again.clone());
    }
    let keys: Vec<_> = stage.heard_calls().into_iter().map(|call| call["idempotencyKey"].clone()).collect();
    assert_eq!((keys.len(), &keys[0]), (2, &json!("k-1")));
    assert!(keys[1].as_str().is_some_and(|key| key.starts_with("semel_")), "{keys:?}");
}

#[test]
fn the_same_key_replays_a_success_whatever_the_class() {
    let stage = Stage::with_tools(&["append_note"]);
    let mut line = stage.open();
    let first = line.call_with(call("k-1", "1"));
    assert_replayed(&line.call_with(call("k-1", "1")), &first);
    assert_replayed(&stage.open().call_with(call("k-1", "1")), &first);
    assert_eq!(receipt(&line.call_with(call("k-2", "1")))["outcome"], "ran");
    assert_eq!(stage.world().len(), 2);
}

#[test]
fn the_same_key_replays_an_error_too() {
    let no = r#"{"content": [{"type": "text", "text": "invalid order, not <there>"}], "isError": true}"#;
    let stage = Stage::with_calls(&["append_note"], json!({"append_note": {"raw": no}}));
    let mut line = stage.open();
    let first = line.call_with(call("k-1", "1"));
    let again = line.call_with(call("k-1", "1"));
    assert_eq!((&first["isError"], &again["isError"]), (&true.into(), &true.into()), "{again}");
    assert!(text(&again).contains(&text(&first)), "{again}");
    assert_eq!(receipt(&again)["outcome"], "replayed", "{again}");
    assert_eq!(stage.world().len(), 1);
    // Without a key the next call may run.
    line.call("append_note", json!({"order": "1"}));
    line.call("append_note", json!({"order": "1"}));
    assert_eq!(stage.world().len(), 3);
}

#[test]
fn a_protocol_error_is_replayed_as_the_error_that_it_was() {
    let error = json!({"code": -32602, "message": "invalid order", "data": {"field": "order"}});
    let stage = Stage::with_calls(&["append_note"], json!({"append_note": {"error": error}}));
    let mut line = stage.open();
    assert_eq!(refused(&mut line, call("k-1", "1")), error);
    assert_eq!(refused(&mut line, call("k-1", "1")), error);
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn the_same_key_with_other_arguments_or_another_tool_is_a_conflict() {
    let stage = Stage::with_tools(&["append_note", "create_order"]);
    let mut line = stage.open();
    line.call_with(call("k-1", "1"));
    let mut other_tool = call("k-1", "1");
    other_tool["name"] = "create_order".into();
    for other in [call("k-1", "2"), other_tool] {
        let error = refused(&mut line, other);
        assert_eq!(error["data"]["type"], "idempotency_key_conflict", "{error}");
        assert_eq!(error["data"]["idempotencyKey"], "k-1");
        assert!(error["code"].as_i64().is_some_and(|code| !(-32768..=-32000).contains(&code)), "{error}");
    }
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn a_key_in_flight_is_waited_for_and_then_said_to_be_in_progress() {
    let stage = Stage::with_calls(&["append_note"], json!({"append_note": {"until": "until"}}))
        .rule("append_note", "wait = \"50ms\"");
    let mut line = stage.open();
    let first = line.ask("tools/call", call("k-1", "1"));
    stage.wait_until("the effect is there", || stage.world().len() == 1);
    let error = refused(&mut line, call("k-1", "1"));
    assert_eq!(error["data"]["type"], "idempotency_key_in_progress", "{error}");
    assert_eq!(error["data"]["idempotencyKey"], "k-1");
    stage.file("until", "");
    assert_eq!(line.read_answer().expect("the first is answered").0["id"], first);
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn keys_that_are_none_are_refused_before_anything_is_sent() {
    let stage = Stage::with_tools(&["append_note"]);
    let mut line = stage.open();
    line.request("tools/list", json!({}));
    for bad in
        [json!(""), json!(7), json!({}), json!([]), json!(true), json!("x".repeat(10_000)), json!("a\nb")]
    {
        let mut params = call("", "1");
        params["idempotencyKey"] = bad.clone();
        let error = refused(&mut line, params);
        assert_eq!(error["code"], -32602, "{bad}: {error}");
        assert!(
            error["message"].as_str().is_some_and(|said| said.contains("idempotencyKey")),
            "{bad}: {error}"
        );
    }
    assert_eq!((stage.world().len(), stage.heard_calls().len()), (0, 0));
}
