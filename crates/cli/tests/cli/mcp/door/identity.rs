//! Which arguments are the same, and what of a call goes upstream.

use super::stage::Stage;
use crate::mcp::line::Line;
use crate::mcp::receipt;
use serde_json::{Value, json};

/// Calls with arguments as they are written, and returns what was done about it.
fn outcome(line: &mut Line, arguments: &str) -> Value {
    let params = format!(r#"{{"name":"create_order","arguments":{arguments}}}"#);
    line.send_raw(
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#).as_bytes(),
    );
    receipt(&line.read_answer().expect("an answer").0["result"])["outcome"].clone()
}

#[test]
fn order_spaces_escapes_and_spellings_of_a_number_make_no_difference() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    assert_eq!(outcome(&mut line, r#"{"amount":1,"to":{"name":"café","n":100}}"#), "ran");
    for same in [
        r#"{"to":{"n":100,"name":"café"},"amount":1}"#,
        r#"{ "amount" : 1.0, "to" : { "name":"caf\u00e9", "n":1e2 } }"#,
        r#"{"amount":1e0,"to":{"name":"\u0063afé","n":100.00}}"#,
    ] {
        assert_eq!(outcome(&mut line, same), "replayed", "{same}");
    }
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn great_numbers_that_differ_in_their_last_digit_are_two() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    for other in [
        "9007199254740992",
        "9007199254740993",
        "123456789012345678901234567890",
        "123456789012345678901234567891",
    ] {
        let arguments = format!(r#"{{"amount":{other}}}"#);
        assert_eq!(
            [outcome(&mut line, &arguments), outcome(&mut line, &arguments)],
            ["ran", "replayed"],
            "{other}"
        );
    }
    assert_eq!(stage.world().len(), 4);
}

#[test]
fn text_that_only_looks_alike_is_not_the_same() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    // Composed and decomposed; a number and its text; nothing and null.
    for other in [r#"{"a":"é"}"#, r#"{"a":"e\u0301"}"#, r#"{"a":"1"}"#, r#"{"a":1}"#, "{}", r#"{"a":null}"#]
    {
        assert_eq!(outcome(&mut line, other), "ran", "{other}");
    }
    assert_eq!(stage.world().len(), 6);
}

#[test]
fn a_rules_key_fields_are_all_that_counts_and_another_value_under_them_is_drift() {
    let rule = "class = \"consequential\"\nkey = [\"args.order\"]\ncontent = [\"args.note\"]\nvolatile = [\"args.at\"]";
    let stage = Stage::with_tools(&["create_order"]).rule("create_order", rule);
    let mut line = stage.open();
    assert_eq!(outcome(&mut line, r#"{"order":"1","note":"please","at":"9:00","amount":3}"#), "ran");
    assert_eq!(outcome(&mut line, r#"{"order":"1","note":"kindly","at":"9:01","amount":3}"#), "replayed");
    let drifted = line.call("create_order", json!({"order": "1", "amount": 4}));
    assert_eq!(receipt(&drifted)["code"], "drift", "{drifted}");
    assert!(
        receipt(&drifted)["what_happened"].as_str().is_some_and(|what| what.contains("amount")),
        "{drifted}"
    );
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn an_idempotency_key_arrives_upstream_and_stays_the_same_over_attempts_and_restarts() {
    let rule = "class = \"consequential\"\ninject = { arg = \"idempotency_key\" }\nbudget = 1";
    let failing = json!({"create_order": {"error": {"code": -32000, "message": "gateway timeout"}}});
    let schema = json!({"type": "object", "properties": {"order": {}, "n": {}, "idempotency_key": {"type": "string"}}});
    let page = json!({"tools": [{"name": "create_order", "inputSchema": schema}]}).to_string();
    let stage = Stage::telling(json!({"pages": [page], "calls": failing})).rule("create_order", rule);
    let arguments = json!({"order": "1", "n": 1.5});
    let params = json!({"name": "create_order", "arguments": arguments, "_meta": {"dev.semel/run-id": "r", "callId": "c"}});
    let spent = stage.open().call_with(params.clone());
    assert_eq!(spent["isError"], true, "{spent}");
    let first: Vec<Value> = stage.heard_calls();
    assert_eq!(first.len(), 2, "sent again once, under its key");
    // Somebody decides that it did not happen; the next attempt is of the same effect.
    let id = receipt(&spent)["effect_id"].as_str().expect("an effect").to_owned();
    let resolved = stage.semel(["ledger", "resolve", &id, "--not-applied", "--reason", "looked"]);
    assert_eq!(resolved.code, Some(0), "{resolved:?}");
    stage.tell(json!({"pages": [page]}));
    let mut line = stage.open();
    assert_eq!(receipt(&line.call_with(params))["outcome"], "ran");
    let calls = stage.heard_calls();
    let keys: Vec<&Value> = calls.iter().map(|call| &call["arguments"]["idempotency_key"]).collect();
    assert!(keys.len() == 3 && keys.iter().all(|key| key.is_string() && *key == keys[0]), "{keys:?}");
    for call in &calls {
        assert_eq!(call["_meta"], json!({"callId": "c"}), "semel's own is not passed on");
        assert_eq!((&call["arguments"]["order"], &call["arguments"]["n"]), (&json!("1"), &json!(1.5)));
    }
    // A further effect has a key of its own.
    let mut again = arguments;
    again["semel_again"] = "one more".into();
    let meta = json!({"dev.semel/run-id": "r"});
    line.call_with(json!({"name": "create_order", "arguments": again, "_meta": meta}));
    let last = stage.heard_calls().pop().expect("it was called");
    assert!(
        last["arguments"]["idempotency_key"].is_string() && last["arguments"].get("semel_again").is_none()
    );
    assert_ne!(last["arguments"]["idempotency_key"], *keys[0]);
}

/// A model fills in what it sees in the schema: another value for each call.
#[test]
fn what_a_model_puts_where_the_key_goes_makes_no_other_effect_of_it() {
    let schema = json!({"type": "object", "properties": {"order": {}, "amount": {}, "idempotency_key": {"type": "string"}}});
    let page = json!({"tools": [{"name": "create_order", "inputSchema": schema}]}).to_string();
    for key in ["", "key = [\"args.order\"]\n"] {
        let rule = format!("class = \"consequential\"\n{key}inject = {{ arg = \"idempotency_key\" }}");
        let stage = Stage::telling(json!({"pages": [page]})).rule("create_order", &rule);
        let mut line = stage.open();
        let mut outcome = |made_up: &str| {
            let arguments = json!({"order": "1", "amount": 3, "idempotency_key": made_up});
            receipt(&line.call("create_order", arguments))["outcome"].clone()
        };
        assert_eq!(
            [outcome("one"), outcome("two"), outcome("three")],
            ["ran", "replayed", "replayed"],
            "{key}"
        );
        assert_eq!(stage.world().len(), 1, "{key}");
        let sent = stage.heard_calls().pop().expect("it was called")["arguments"]["idempotency_key"].clone();
        assert!(sent.is_string() && sent != "one", "its own key goes there: {sent}");
    }
}

/// Nothing reaches a server that has ended, so nothing of the budget is spent on it.
#[test]
fn a_key_is_kept_for_the_server_that_comes_after_one_that_died() {
    let tool = r#"{"tools":[{"name":"create_order","inputSchema":{"type":"object","properties":{"idempotency_key":{"type":"string"}}}}]}"#;
    let dies = |dies: bool| json!({"pages": [tool], "calls": {"create_order": {"dies": dies}}});
    let stage = Stage::telling(dies(true)).rule(
        "create_order",
        "class = \"consequential\"\ninject = { arg = \"idempotency_key\" }\nbudget = 2",
    );
    let first = stage.open().call("create_order", json!({"order": "1"}));
    let told = receipt(&first);
    assert_eq!(
        (&told["code"], &told["is_it_safe_to_retry"]),
        (&"in_doubt".into(), &"wait".into()),
        "{first}"
    );
    let next = told["next_step"].as_str().expect("a next step");
    assert!(next.contains("once semel is restarted") && next.contains("under the same key"), "{next}");
    assert!(next.contains("call it again, unchanged") && !next.contains("Do not call"), "{next}");
    stage.tell(dies(false));
    let second = stage.open().call("create_order", json!({"order": "1"}));
    assert_eq!(
        (&receipt(&second)["ok"], &receipt(&second)["attempt"]),
        (&true.into(), &2.into()),
        "{second}"
    );
    let keys: Vec<_> =
        stage.heard_calls().iter().map(|call| call["arguments"]["idempotency_key"].clone()).collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert!(keys[0].is_string() && keys[0] == keys[1], "{keys:?}");
}
