//! A rule's timeout ends the waiting and not the effect.

use super::stage::Stage;
use crate::mcp::{assert_in_doubt, assert_replayed, receipt, text};
use serde_json::json;

#[test]
fn after_the_rules_timeout_it_is_in_doubt_and_a_late_success_is_evidence_that_the_next_call_gets() {
    let stage =
        Stage::with_calls(&["create_order", "list_orders"], json!({"create_order": {"until": "until"}}))
            .rule("create_order", "class = \"consequential\"\ntimeout = \"50ms\"\nwait = \"10ms\"");
    let mut line = stage.open();
    let first = line.call("create_order", json!({"order": "1"}));
    assert_in_doubt(&first);
    assert!(text(&first).contains("deadline"), "{first}");
    assert_eq!(receipt(&first)["outcome"], "ran", "it was this call that sent it");
    let second = line.call("create_order", json!({"order": "1"}));
    assert_in_doubt(&second);
    assert_eq!(receipt(&second)["outcome"], "held", "and this one sent nothing");
    stage.file("until", "");
    stage.wait_until("the late success is recorded", || stage.recorded()[0]["state"] == "applied");
    let next = line.call("create_order", json!({"order": "1"}));
    assert!(text(&next).contains(stage.world()[0]["id"].as_str().expect("an id")), "{next}");
    assert_eq!(receipt(&next)["outcome"], "replayed");
    assert_replayed(
        &line.call("create_order", json!({"order": "1"})),
        &json!({"content": [{"text": "done: "}]}),
    );
    assert_eq!(stage.world().len(), 1);
}

/// Somebody ruled that it had not happened, and was wrong.
#[test]
fn what_happened_twice_is_told_as_that() {
    let tools = ["create_order", "list_orders"];
    let stage = Stage::with_calls(&tools, json!({"create_order": {"until": "until"}}))
        .rule("create_order", "class = \"consequential\"\ntimeout = \"50ms\"\nwait = \"10ms\"");
    let mut slow = stage.open();
    let doubt = slow.call("create_order", json!({"order": "1"}));
    assert_in_doubt(&doubt);
    let id = receipt(&doubt)["effect_id"].as_str().expect("an effect").to_owned();
    let ruled = stage.semel(["ledger", "resolve", &id, "--reason", "it is not there", "--not-applied"]);
    assert!(ruled.code == Some(0) && ruled.stderr.contains("it may happen twice"), "{ruled:?}");
    stage.tell(json!({"pages": [super::stage::listing(&tools)]}));
    let mut line = stage.open();
    line.call("create_order", json!({"order": "1"}));
    stage.wait_until("the second is recorded", || stage.recorded()[0]["state"] == "applied");
    stage.file("until", "");
    stage.wait_until("the first is known", || stage.semel(["ledger"]).stderr.contains("duplicate_detected"));
    assert_eq!(stage.world().len(), 2);
    let told = text(&line.call("semel_ledger", json!({})));
    assert!(told.contains(&format!("{id} ")) && told.contains("HAPPENED TWICE"), "{told}");
    assert!(!told.contains("done (reported)"), "{told}");
    let markdown = stage.semel(["ledger", "--markdown"]).stdout;
    assert!(markdown.contains("## Happened twice (1)") && markdown.contains(&id), "{markdown}");
}

#[test]
fn a_twin_waits_for_the_first_and_gets_its_answer() {
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"until": "until"}}));
    let mut line = stage.open();
    let ids: Vec<u64> =
        (0..3).map(|_| line.ask("tools/call", json!({"name": "create_order", "arguments": {}}))).collect();
    stage.wait_until("the effect is there", || stage.world().len() == 1);
    stage.file("until", "");
    let mut outcomes: Vec<String> = Vec::new();
    for _ in &ids {
        let (answer, _) = line.read_answer().expect("each is answered");
        assert!(
            text(&answer["result"]).contains(stage.world()[0]["id"].as_str().expect("an id")),
            "{answer}"
        );
        outcomes.push(receipt(&answer["result"])["outcome"].as_str().expect("an outcome").to_owned());
    }
    outcomes.sort();
    assert_eq!(outcomes[2], "ran", "{outcomes:?}");
    assert!(outcomes[..2].iter().all(|outcome| outcome == "joined" || outcome == "replayed"), "{outcomes:?}");
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn a_twin_that_waits_too_long_is_told_to_come_back() {
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"until": "until"}}))
        .rule("create_order", "class = \"consequential\"\nwait = \"30ms\"");
    let mut line = stage.open();
    let first = line.ask("tools/call", json!({"name": "create_order", "arguments": {}}));
    stage.wait_until("the effect is there", || stage.world().len() == 1);
    let told = line.call("create_order", json!({}));
    assert_eq!(
        (&receipt(&told)["code"], &receipt(&told)["is_it_safe_to_retry"]),
        (&"in_flight".into(), &"wait".into())
    );
    assert_eq!(told["isError"], true);
    stage.file("until", "");
    assert_eq!(line.read_answer().expect("the first is answered").0["id"], first);
    assert_eq!(stage.world().len(), 1);
}
