//! A tool said that it did it: is it true?

use super::stage::{Stage, listing};
use crate::mcp::{receipt, text};
use serde_json::{Value, json};

const TOOLS: [&str; 2] = ["create_order", "list_orders"];

fn sees(orders: Value) -> Value {
    let result = json!({"content": [{"type": "text", "text": json!({"orders": orders}).to_string()}]});
    json!({"effect": false, "raw": result.to_string()})
}

fn stage(list: Value, within: &str) -> Stage {
    let made = json!({"raw": json!({"content": [], "structuredContent": {"id": "or_7"}}).to_string()});
    let rule = format!(
        "class = \"consequential\"\n[rule.confirm]\nmcp = \"./list_orders\"\nargs = {{ id = \"{{reply.id}}\" }}\n\
         ok = \"resp.orders.exists(o, o.id == reply.id)\"\nwithin = \"{within}\""
    );
    Stage::with_calls(&TOOLS, json!({"create_order": made, "list_orders": list})).rule("create_order", &rule)
}

fn state(stage: &Stage, word: &str, evidence: &str) -> bool {
    let items = stage.json(["ledger", "list"])["items"].take();
    (items[0]["state"] == word) && (evidence.is_empty() || items[0]["evidence"] == evidence)
}

#[test]
fn a_success_that_can_be_seen_is_confirmed() {
    let stage = stage(sees(json!([{"id": "or_7"}])), "20s");
    let mut line = stage.open();
    let said = line.call("create_order", json!({"order": "1001"}));
    assert_eq!(receipt(&said)["reason"], "reported, not confirmed yet", "{said}");
    assert!(text(&said).contains("[semel] Reported, not confirmed yet (ef_"), "the model sees it: {said}");
    stage.wait_until("it is confirmed", || state(&stage, "applied", "confirmed"));
    let again = line.call("create_order", json!({"order": "1001"}));
    assert_eq!(receipt(&again)["evidence"], "confirmed", "{again}");
    assert!(!text(&again).contains("not confirmed"), "{again}");
    let asked = stage.heard_calls().pop().expect("it was asked for");
    assert_eq!(asked["arguments"], json!({"id": "or_7"}));
}

/// A bare success about something consequential is believed as far as it goes, where the rule could ask and has not.
#[test]
fn a_tool_that_only_says_success_is_accepted_and_not_confirmed() {
    let probe =
        "class = \"consequential\"\n[rule.probe]\nmcp = \"./list_orders\"\nfound = \"true\"\nquiet = \"5s\"";
    let result = |value: Value| json!({"raw": json!({"content": [{"type": "text", "text": value.to_string()}]}).to_string()});
    for (rule, reply, accepted) in [
        (probe, json!({"success": true}), true),
        (probe, json!({"success": true, "id": "or_7"}), false),
        ("class = \"consequential\"", json!({"success": true}), false),
    ] {
        let stage =
            Stage::with_calls(&TOOLS, json!({"create_order": result(reply)})).rule("create_order", rule);
        let mut line = stage.open();
        let said = line.call("create_order", json!({"order": "1"}));
        assert_eq!(text(&said).contains("[semel] Accepted, not confirmed (ef_"), accepted, "{said}");
        let again = line.call("create_order", json!({"order": "1"}));
        assert_eq!(text(&again).contains("Accepted, not confirmed, "), accepted, "{again}");
        assert_eq!(stage.world().len(), 1);
    }
}

/// Whoever asked first is gone with its process; a repeat within the time asks again.
#[test]
fn a_repeat_asks_again_after_the_process_that_asked_has_ended() {
    let stage = stage(sees(json!([])), "1h");
    let mut line = stage.open();
    line.call("create_order", json!({"order": "1001"}));
    stage.wait_until("it was asked", || stage.heard_calls().len() >= 2);
    drop(line);
    let told = json!({"pages": [listing(&TOOLS)], "calls": {"list_orders": sees(json!([{"id": "or_7"}]))}});
    stage.tell(told);
    let mut line = stage.open();
    let again = line.call("create_order", json!({"order": "1001"}));
    assert_eq!(receipt(&again)["outcome"], "replayed", "{again}");
    assert!(text(&again).contains("reported, not confirmed yet"), "{again}");
    stage.wait_until("it is confirmed", || state(&stage, "applied", "confirmed"));
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn a_queued_answer_is_accepted_and_says_so_to_the_model() {
    let queued = json!({"content": [], "structuredContent": {"status": "queued"}}).to_string();
    let stage = Stage::with_calls(&TOOLS, json!({"create_order": {"raw": queued}}))
        .rule("create_order", "class = \"consequential\"");
    let mut line = stage.open();
    let said = line.call("create_order", json!({"order": "1001"}));
    assert_eq!(receipt(&said)["evidence"], "accepted", "{said}");
    assert!(text(&said).contains("[semel] Accepted, not confirmed (ef_"), "{said}");
}

#[test]
fn a_success_that_is_clearly_not_there_in_the_end_is_refuted_and_never_replayed() {
    let stage = stage(sees(json!([])), "1s");
    let mut line = stage.open();
    assert_eq!(receipt(&line.call("create_order", json!({"order": "1001"})))["ok"], true);
    stage.wait_until("it is refuted", || state(&stage, "not_applied", ""));
    let again = line.call("create_order", json!({"order": "1001"}));
    assert_eq!((&receipt(&again)["code"], &again["isError"]), (&"refuted".into(), &true.into()), "{again}");
    let other = line.call("create_order", json!({"order": "1002"}));
    assert_eq!(receipt(&other)["outcome"], "ran", "{other}");
    let told = text(&line.call("semel_ledger", json!({})));
    assert!(told.contains("did not happen"), "{told}");
    assert_eq!(stage.world().len(), 2);
}

#[test]
fn a_read_that_fails_refutes_nothing() {
    let stage = stage(json!({"effect": false, "error": {"code": -32000, "message": "down"}}), "600ms");
    let mut line = stage.open();
    line.call("create_order", json!({"order": "1001"}));
    stage.wait_until("it was asked until the time was over", || stage.heard_calls().len() >= 4);
    assert!(state(&stage, "applied", "reported"));
    assert_eq!(receipt(&line.call("create_order", json!({"order": "1001"})))["outcome"], "replayed");
}
