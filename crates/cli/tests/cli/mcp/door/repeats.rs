//! What a repeat of a guarded call gets.

use super::stage::Stage;
use crate::mcp::{assert_replayed, receipt, text};
use serde_json::{Value, json};

fn order() -> Value {
    json!({"order": "1001", "amount": 3})
}

fn again(reason: &str) -> Value {
    json!({"order": "1001", "amount": 3, "semel_again": reason})
}

#[test]
fn three_calls_with_three_ids_are_one_effect_of_a_consequential_tool() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    let first = line.call("create_order", order());
    assert_eq!((&receipt(&first)["outcome"], &receipt(&first)["effect"]), (&"ran".into(), &"created".into()));
    assert_eq!(text(&first), format!("done: {}", stage.world()[0]["id"].as_str().expect("an id")));
    for _ in 0..2 {
        assert_replayed(&line.call("create_order", order()), &first);
    }
    assert_eq!(stage.world().len(), 1);
    // Another agent, another process, the same ledger.
    assert_replayed(&stage.open().call("create_order", order()), &first);
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn an_act_tool_repeats_and_says_so() {
    let stage = Stage::with_tools(&["append_note"]);
    let mut line = stage.open();
    let first = line.call("append_note", order());
    assert!(receipt(&first)["possible_repeat"].is_null(), "{first}");
    let second = line.call("append_note", order());
    assert_eq!(
        (&receipt(&second)["outcome"], &receipt(&second)["possible_repeat"]),
        (&"ran".into(), &true.into())
    );
    assert!(
        text(&second).contains("possible_repeat") && !text(&first).contains("possible_repeat"),
        "{second}"
    );
    assert_eq!(stage.world().len(), 2);
}

#[test]
fn a_transport_that_sends_one_model_call_twice_gets_one_effect_whatever_the_class() {
    for name in ["claudecode/toolUseId", "callId"] {
        let stage = Stage::with_tools(&["append_note", "create_order"]);
        for (n, tool) in ["append_note", "create_order"].into_iter().enumerate() {
            let send = |progress: u64| {
                let meta = json!({name: format!("toolu_{tool}"), "progressToken": progress});
                stage.open().call_with(json!({"name": tool, "arguments": order(), "_meta": meta}))
            };
            let first = send(1);
            assert_replayed(&send(2), &first);
            assert_eq!(stage.world().len(), n + 1, "{tool}");
        }
    }
}

/// Some agents count their calls, and begin again. An id means something only together with the very same call.
#[test]
fn an_id_that_comes_back_with_another_call_neither_joins_nor_replays() {
    let tools = ["append_note", "create_order", "send_mail"];
    for id in ["call_1", "toolu_01A09q90qw90lq917835lq9"] {
        let stage = Stage::with_tools(&tools);
        let mut line = stage.open();
        let mut seen = Vec::new();
        for (tool, order) in [
            ("append_note", "1"),
            ("append_note", "2"),
            ("create_order", "1"),
            ("create_order", "2"),
            ("send_mail", "1"),
        ] {
            let params = json!({"name": tool, "arguments": {"order": order}, "_meta": {"callId": id}});
            let ran = line.call_with(params);
            assert_eq!(receipt(&ran)["outcome"], "ran", "{tool} {order}: {ran}");
            seen.push(text(&ran).to_owned());
        }
        let made = stage.world();
        let made = made.iter().map(|effect| format!("done: {}", effect["id"].as_str().expect("an id")));
        assert_eq!(seen, made.collect::<Vec<_>>(), "each has its own answer");
    }
}

#[test]
fn ids_that_come_back_while_another_call_runs_do_not_join_it() {
    let stage =
        Stage::with_calls(&["append_note", "create_order"], json!({"append_note": {"until": "until"}}));
    let mut line = stage.open();
    line.request("tools/list", json!({}));
    let calls = [("append_note", "1"), ("append_note", "2"), ("create_order", "1")];
    for (tool, order) in calls {
        let params = json!({"name": tool, "arguments": {"order": order}, "_meta": {"callId": "call_1"}});
        line.send(&json!({"jsonrpc": "2.0", "id": 70, "method": "tools/call", "params": params}));
    }
    stage.wait_until("all are with the server", || stage.world().len() == calls.len());
    stage.file("until", "");
    let mut said: Vec<String> = Vec::new();
    for _ in calls {
        let (answer, _) = line.read_answer().expect("an answer");
        assert_eq!((&answer["id"], &receipt(&answer["result"])["outcome"]), (&70.into(), &"ran".into()));
        said.push(text(&answer["result"]).to_owned());
    }
    said.sort();
    said.dedup();
    assert_eq!((said.len(), stage.world().len()), (calls.len(), calls.len()), "{said:?}");
}

/// Under a rule's key it is the same intent with other arguments.
#[test]
fn an_id_that_comes_back_with_other_arguments_under_one_key_is_drift() {
    for class in ["consequential", "act"] {
        let stage = Stage::with_tools(&["create_order"])
            .rule("create_order", &format!("class = \"{class}\"\nkey = [\"args.order\"]"));
        let mut line = stage.open();
        let mut call = |amount: u64| {
            let arguments = json!({"order": "1001", "amount": amount});
            line.call_with(
                json!({"name": "create_order", "arguments": arguments, "_meta": {"callId": "call_1"}}),
            )
        };
        assert_eq!(receipt(&call(3))["outcome"], "ran");
        let drift = call(4);
        assert_eq!(receipt(&drift)["code"], "drift", "{drift}");
        assert_eq!(stage.world().len(), 1, "{class}");
    }
}

#[test]
fn another_model_call_never_makes_two_of_one_consequential_call() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    let mut call = |id: &str| {
        line.call_with(json!({"name": "create_order", "arguments": order(), "_meta": {"callId": id}}))
    };
    let first = call("call_1");
    assert_replayed(&call("call_2"), &first);
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn the_same_reason_is_the_same_occurrence_and_another_reason_is_a_further_effect() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    line.call("create_order", order());
    let second = line.call("create_order", again("a second parcel"));
    assert_eq!(receipt(&second)["outcome"], "ran", "{second}");
    assert_replayed(&line.call("create_order", again(" a second parcel ")), &second);
    assert_replayed(&stage.open().call("create_order", again("a second parcel")), &second);
    assert_eq!(stage.world().len(), 2);
    let third = line.call("create_order", again("a third parcel"));
    assert_eq!(receipt(&third)["outcome"], "ran", "{third}");
    // The first reason still names the second effect.
    assert_replayed(&line.call("create_order", again("a second parcel")), &second);
    assert_eq!(stage.world().len(), 3);
    assert!(
        stage.heard_calls().iter().all(|call| call["arguments"] == order()),
        "the reason is for semel alone"
    );
}

#[test]
fn a_reason_without_an_earlier_call_is_the_ordinary_first_call() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    let first = line.call("create_order", again("just to be sure"));
    assert_eq!(receipt(&first)["outcome"], "ran", "{first}");
    // Models fill optional arguments with nothing.
    for nothing in [json!(""), json!("  "), Value::Null] {
        let mut arguments = order();
        arguments["semel_again"] = nothing;
        assert_replayed(&line.call("create_order", arguments), &first);
    }
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn where_the_rule_leaves_repeats_to_a_person_or_to_nobody_an_agents_reason_is_refused() {
    for (who, says) in [("person", "a person"), ("never", "nobody")] {
        let rule = format!("class = \"consequential\"\nagain = \"{who}\"");
        let stage = Stage::with_tools(&["create_order"]).rule("create_order", &rule);
        let mut line = stage.open();
        line.call("create_order", order());
        let held = line.call("create_order", again("I think so"));
        assert_eq!(
            (&receipt(&held)["code"], &held["isError"]),
            (&"held_for_person".into(), &true.into()),
            "{held}"
        );
        assert_eq!(receipt(&held)["is_it_safe_to_retry"], "no");
        assert!(receipt(&held)["what_happened"].as_str().is_some_and(|what| what.contains(says)), "{held}");
        assert_eq!(stage.world().len(), 1);
    }
}

#[test]
fn a_run_has_intents_of_its_own() {
    let stage = Stage::with_tools(&["create_order"]);
    let in_run = |run: &str| {
        let mut line = stage.open_with(&["--run", run]);
        receipt(&line.call("create_order", order()))["outcome"].clone()
    };
    assert_eq!([in_run("monday"), in_run("monday"), in_run("tuesday")], ["ran", "replayed", "ran"]);
    let by_meta = |run: &str| {
        let meta = json!({"dev.semel/run-id": run});
        stage.open().call_with(json!({"name": "create_order", "arguments": order(), "_meta": meta}))
    };
    assert_eq!(receipt(&by_meta("tuesday"))["outcome"], "replayed");
    assert_eq!(receipt(&by_meta("wednesday"))["outcome"], "ran");
    assert_eq!(stage.world().len(), 3);
    assert!(stage.heard_calls().iter().all(|call| call.get("_meta").is_none()), "the run is for semel alone");
}

/// The agent's own thread labels, and narrows nothing.
#[test]
fn a_thread_of_the_agent_is_no_scope() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    for thread in ["t1", "t2"] {
        line.call_with(json!({"name": "create_order", "arguments": order(), "_meta": {"threadId": thread}}));
    }
    assert_eq!(stage.world().len(), 1);
}

/// A rule that leaves repeats to a person is no dead end for the person.
#[test]
fn a_person_lets_a_tool_repeat_once() {
    let stage = Stage::with_tools(&["create_order"])
        .rule("create_order", "class = \"consequential\"\nagain = \"person\"");
    let mut line = stage.open();
    let order = json!({"order": "1"});
    assert_eq!(receipt(&line.call("create_order", order.clone()))["outcome"], "ran");
    let held = line.call("create_order", json!({"order": "1", "semel_again": "the first one broke"}));
    assert_eq!(receipt(&held)["code"], "held_for_person", "{held}");
    let step = receipt(&held)["human_next_step"].as_str().expect("a step").to_owned();
    let id = step.strip_prefix("semel ledger show ").expect("it names the effect");
    let released = stage.semel(["ledger", "allow-repeat", id, "--reason", "broken"]);
    assert_eq!(released.code, Some(0), "{released:?}");
    assert_eq!(stage.recorded()[0]["released"]["reason"], "broken");
    assert_eq!(receipt(&line.call("create_order", order.clone()))["outcome"], "ran");
    assert_eq!(receipt(&line.call("create_order", order))["outcome"], "replayed", "once, and not for ever");
    assert_eq!(stage.world().len(), 2);
}
