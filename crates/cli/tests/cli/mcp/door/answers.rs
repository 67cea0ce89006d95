//! What a client and the model behind it are told.

use super::stage::{Stage, listing, stateless};
use crate::mcp::{assert_in_doubt, receipt, text};
use serde_json::{Value, json};

const GATEWAY: &str = r#"{"content": [{"type": "text", "text": "502 bad gateway"}], "isError": true}"#;

fn order() -> Value {
    json!({"order": "1001"})
}

/// Compares what the server said with what is in a replay, member by member.
#[test]
fn a_replay_is_the_recorded_result_with_a_notice_and_a_receipt() {
    let raw = r#"{"content":[{"type":"text","text":"made"},{"type":"image","data":"aGk=","mimeType":"image/png"}],"structuredContent":{"id":"<made>","n":1.10,"big":123456789012345678901234567890},"novel":{"b":1,"a":2},"_meta":{"example.org/kept":[1.0]}}"#;
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"raw": raw}}));
    let mut line = stage.open();
    line.call("create_order", order());
    line.ask("tools/call", json!({"name": "create_order", "arguments": order()}));
    let (answer, bytes) = line.read_answer().expect("the replay comes");
    let result = &answer["result"];
    let bytes = String::from_utf8(bytes).expect("text");
    for kept in [
        "\"n\":1.10",
        "\"big\":123456789012345678901234567890",
        "\"novel\":{\"b\":1,\"a\":2}",
        "\"example.org/kept\":[1.0]",
    ] {
        assert!(bytes.contains(kept), "{kept} was lost in {bytes}");
    }
    let content = result["content"].as_array().expect("content");
    assert_eq!((content.len(), &content[1]["type"]), (3, &"image".into()), "{result}");
    let receipt = receipt(result);
    let id = receipt["effect_id"].as_str().expect("an effect");
    let notice = content[2]["text"].as_str().expect("a notice");
    assert!(
        notice.starts_with("[semel] Just done") && notice.contains("not run again") && notice.contains(id),
        "{notice}"
    );
    let seen = ["ok", "effect", "outcome", "attempt", "tier", "evidence"].map(|name| receipt[name].clone());
    assert_eq!(
        seen,
        [json!(true), json!("noop"), json!("replayed"), json!(1), json!("opaque"), json!("reported")]
    );
}

#[test]
fn a_doubt_names_the_reads_that_speak_of_the_same_thing_and_no_others() {
    let next = |tools: &[&str]| {
        let stage = Stage::with_calls(tools, json!({"send_email": {"raw": GATEWAY}}));
        let doubt = stage.open().call("send_email", json!({"to": "ann@example.com"}));
        assert_in_doubt(&doubt);
        receipt(&doubt)["next_step"].as_str().expect("a next step").to_owned()
    };
    let named = next(&["send_email", "list_charges", "list_emails"]);
    assert!(named.contains("`list_emails`") && !named.contains("list_charges"), "{named}");
    let none = next(&["send_email", "list_charges"]);
    assert!(none.contains("check in another way") && !none.contains("list_charges"), "{none}");
}

#[test]
fn a_server_that_died_is_said_to_have_ended() {
    let stage = Stage::with_calls(&["create_order", "list_orders"], json!({"create_order": {"dies": true}}));
    let doubt = stage.open().call("create_order", order());
    assert_in_doubt(&doubt);
    let answer = receipt(&doubt);
    let next = answer["next_step"].as_str().expect("a next step");
    assert!(next.contains("has ended") && next.contains("once semel is restarted"), "{next}");
    let human = answer["human_next_step"].as_str().expect("a step for a person");
    assert!(human.starts_with("Start semel again") && human.contains("semel ledger show ef_"), "{human}");
}

#[test]
fn what_a_tool_cannot_say_of_its_own_result_is_no_refusal() {
    let words = "Error executing tool create_order: 1 validation error for Order\nid\n  Input should be a valid integer";
    let failed = json!({"isError": true, "content": [{"type": "text", "text": words}]});
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"raw": failed.to_string()}}));
    let mut line = stage.open();
    for _ in 0..3 {
        assert_in_doubt(&line.call("create_order", order()));
    }
    assert_eq!(stage.world().len(), 1);
}

fn tool_error(words: &str) -> String {
    json!({"isError": true, "content": [{"type": "text", "text": words}]}).to_string()
}

/// Whoever runs it again has two of them.
#[test]
fn an_error_that_says_that_something_was_done_is_not_run_again() {
    for words in ["Label invalid; order created", "User bob not found; message sent to ann only"] {
        let stage = Stage::with_calls(&["update_order"], json!({"update_order": {"raw": tool_error(words)}}));
        let mut line = stage.open();
        for _ in 0..3 {
            assert_in_doubt(&line.call("update_order", order()));
        }
        assert_eq!(stage.world().len(), 1, "{words}");
    }
    let refusal = tool_error("label invalid");
    let refuses = json!({"update_order": {"raw": refusal, "effect": false}});
    let stage = Stage::with_calls(&["update_order"], refuses);
    let mut line = stage.open();
    assert_eq!(receipt(&line.call("update_order", order()))["code"], "upstream_refused");
    stage.tell(json!({"pages": [listing(&["update_order"])]}));
    assert_eq!(receipt(&line.call("update_order", order()))["outcome"], "ran");
    assert_eq!(stage.world().len(), 1);
}

/// More than is kept, and more than is read whole.
#[test]
fn an_error_of_any_size_counts_by_what_it_says() {
    let pad = "\u{e4}\n ".repeat(5 << 20);
    // Twenty megabytes take a debug build seconds, so some are only more than is kept.
    let less = &pad[..4 << 20];
    let listed = |calls: Value| json!({"pages": [listing(&["update_order"])], "calls": calls});
    let unmarked = json!({"content": [{"type": "text", "text": format!("Error: title invalid {less}")}]});
    let refusals = [
        json!({"raw": tool_error(&format!("Title invalid: {pad}")), "effect": false}),
        json!({"raw": tool_error(&format!("{less} title invalid")), "effect": false}),
        json!({"error": {"code": -32602, "message": format!("Title invalid: {less}")}, "effect": false}),
        json!({"raw": unmarked.to_string(), "effect": false}),
    ];
    for refusal in refusals {
        let stage = Stage::telling(listed(json!({"update_order": refusal})));
        let mut line = stage.open();
        line.request("tools/call", json!({"name": "update_order", "arguments": order()}));
        assert_eq!(stage.recorded()[0]["state"], "not_applied");
        stage.tell(listed(json!({})));
        assert_eq!(receipt(&line.call("update_order", order()))["outcome"], "ran");
        assert_eq!(stage.world().len(), 1);
    }
    for words in
        [format!("Order created; label invalid {less}"), format!("{pad}; label invalid; order created")]
    {
        let stage = Stage::telling(listed(json!({"update_order": {"raw": tool_error(&words)}})));
        let mut line = stage.open();
        for _ in 0..2 {
            assert_in_doubt(&line.call("update_order", order()));
        }
        assert_eq!(stage.world().len(), 1);
    }
}

#[test]
fn a_hold_is_an_error_for_the_model_that_names_the_tool_to_look_with() {
    let calls = json!({"create_order": {"raw": GATEWAY}});
    let stage = Stage::with_calls(&["create_order", "get_weather", "list_orders"], calls);
    let mut line = stage.open();
    for _ in 0..2 {
        let held = line.call("create_order", order());
        assert_in_doubt(&held);
        let answer = receipt(&held);
        let next = answer["next_step"].as_str().expect("a next step");
        assert!(next.contains("`list_orders`") && next.starts_with("Do not call it again."), "{next}");
        assert!(
            answer["human_next_step"].as_str().is_some_and(|step| step.contains("semel ledger show ef_"))
        );
        assert!(text(&held).contains("`list_orders`") && text(&held).contains("Safe to retry: no"), "{held}");
        // Once in words, and once as an object: what the tool itself said is a block of its own.
        assert_eq!(text(&held).matches("may have been carried out").count(), 1, "{held}");
        assert!(!text(&held).contains("is_it_safe_to_retry"), "{held}");
    }
    assert_eq!(stage.world().len(), 1);
}

fn structured() -> Stage {
    let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]});
    let tool = json!({"name": "create_order", "inputSchema": {"type": "object"}, "outputSchema": schema});
    let raw = r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{"id":"<made>"}}"#;
    let page = json!({"tools": [tool]}).to_string();
    Stage::telling(json!({"pages": [page], "calls": {"create_order": {"raw": raw}}}))
}

#[test]
fn a_replay_of_a_tool_with_an_output_schema_keeps_its_structure() {
    let stage = structured();
    let mut line = stage.open();
    let first = line.call("create_order", order());
    let again = line.call("create_order", order());
    assert_eq!(receipt(&again)["outcome"], "replayed");
    assert!(first["structuredContent"]["id"].is_string(), "{first}");
    assert_eq!(again["structuredContent"], first["structuredContent"]);
    assert!(again["content"].to_string().contains("[semel] "), "{again}");
    assert_ne!(again["isError"], true);
}

/// What a person brings as the reply of a lost call is what the next equal call gets, in the form of a tool's result.
#[test]
fn the_reply_that_a_person_brings_answers_the_next_call() {
    let reply = json!({"id": "or_7"});
    for (supplied, words) in
        [(reply.to_string(), "or_7"), ("order or_7 is there\n".to_owned(), "order or_7 is")]
    {
        for stage in [structured(), Stage::with_tools(&["create_order"])] {
            let mut told: Value =
                serde_json::from_str(&std::fs::read_to_string(stage.work().join("told.json")).expect("told"))
                    .expect("JSON");
            told["calls"] = json!({"create_order": {"raw": GATEWAY}});
            stage.tell(told);
            let id = receipt(&stage.open().call("create_order", order()))["effect_id"].clone();
            let id = id.as_str().expect("an effect");
            stage.file("reply", &supplied);
            let args = ["ledger", "resolve", id, "--applied", "--reason", "I saw it", "--reply", "reply"];
            let ruled = stage.semel(args);
            assert_eq!(ruled.code, Some(0), "{ruled:?}");
            let known = stage.open().call("create_order", order());
            assert!(text(&known).contains(words) && !text(&known).contains("not available"), "{known}");
            assert_eq!(receipt(&known)["outcome"], "replayed", "{known}");
            let structure = known.get("structuredContent").map(|structure| structure["id"].clone());
            assert_eq!(structure, supplied.starts_with('{').then(|| reply["id"].clone()), "{known}");
            assert_eq!(stage.world().len(), 1);
        }
    }
}

/// A client that knows the schema would throw a result away that lacks the structure, unless it is an error.
#[test]
fn a_success_whose_reply_nobody_knows_is_an_error_in_form_where_there_is_an_output_schema() {
    for (stage, is_error) in [(structured(), true), (Stage::with_tools(&["create_order"]), false)] {
        let mut told: Value =
            serde_json::from_str(&std::fs::read_to_string(stage.work().join("told.json")).expect("told"))
                .expect("JSON");
        told["calls"] = json!({"create_order": {"raw": GATEWAY}});
        stage.tell(told);
        let doubt = stage.open().call("create_order", order());
        let id = receipt(&doubt)["effect_id"].as_str().expect("an effect").to_owned();
        stage.semel(["ledger", "resolve", &id, "--applied", "--reason", "I saw it"]);
        let known = stage.open().call("create_order", order());
        assert_eq!(known["isError"], is_error, "{known}");
        let answer = receipt(&known);
        let seen = ["ok", "effect", "outcome", "evidence"].map(|name| answer[name].clone());
        assert_eq!(seen, [json!(true), json!("noop"), json!("replayed"), json!("ruled")], "{known}");
        assert!(text(&known).contains("Do not call it again"), "{known}");
        assert_eq!(stage.world().len(), 1);
    }
}

#[test]
fn words_of_refusal_come_as_they_are_and_the_next_call_runs() {
    let no = r#"{"content":[{"type":"text","text":"card declined"}],"isError":true}"#;
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"raw": no}}));
    let mut line = stage.open();
    for attempt in 1..=2 {
        let refused = line.call("create_order", order());
        assert_eq!((text(&refused).as_str(), &refused["isError"]), ("card declined", &true.into()));
        let answer = receipt(&refused);
        assert_eq!(
            (&answer["code"], &answer["is_it_safe_to_retry"]),
            (&"upstream_refused".into(), &"yes".into())
        );
        assert_eq!(answer["attempt"], attempt);
    }
}

#[test]
fn a_protocol_error_keeps_its_code_its_words_and_its_data() {
    let error = json!({"code": -32602, "message": "Unknown tool: create_order", "data": {"n": 1.5}});
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"error": error}}));
    let answer = stage.open().request("tools/call", json!({"name": "create_order", "arguments": order()}));
    assert_eq!(answer["error"], error, "{answer}");
}

#[test]
fn queued_is_told_as_accepted_and_not_as_done() {
    let raw = r#"{"content":[{"type":"text","text":"ok"}],"structuredContent":{"status":"queued"}}"#;
    let stage = Stage::with_calls(&["send_mail"], json!({"send_mail": {"raw": raw}}));
    let mut line = stage.open();
    let first = line.call("send_mail", order());
    assert_eq!(
        (&receipt(&first)["evidence"], &receipt(&first)["effect"]),
        (&"accepted".into(), &"sent".into())
    );
    assert!(text(&line.call("send_mail", order())).contains("ccepted, not confirmed"));
}

/// Tools whose structures are of all kinds, with what each of them answers.
pub fn structures() -> [(&'static str, Value, &'static str); 5] {
    [
        ("create_list", json!({"type": "array", "items": {"type": "integer"}}), "[1,2]"),
        ("create_name", json!({"type": "string"}), r#""or_7""#),
        ("create_number", json!({"type": "number"}), "1.10"),
        ("create_perhaps", json!({"type": ["object", "null"], "required": ["id"]}), "null"),
        ("create_any", json!(true), "[{}]"),
    ]
}

/// A server of the stateless era with those tools.
pub fn of_all_structures() -> Value {
    let tool = |(name, schema, _): &(&str, Value, &str)| json!({"name": name, "inputSchema": {"type": "object"}, "outputSchema": schema});
    let does = |(name, _, structure): &(&str, Value, &str)| {
        let raw = format!(r#"{{"resultType":"complete","content":[],"structuredContent":{structure}}}"#);
        ((*name).to_owned(), json!({"raw": raw}))
    };
    let tools = structures().iter().map(tool).collect::<Vec<_>>();
    let calls = structures().iter().map(does).collect::<serde_json::Map<_, _>>();
    json!({"era": "stateless", "pages": [json!({"tools": tools}).to_string()], "calls": calls})
}

#[test]
fn a_structure_of_any_kind_is_replayed_as_it_was() {
    let stage = Stage::telling(of_all_structures());
    let mut line = stage.open_stateless();
    let mut effects = 0;
    for (tool, _, structure) in structures() {
        for beside in [json!({}), json!({"idempotencyKey": tool}), json!({"claudecode/toolUseId": tool})] {
            let mut params = json!({"name": tool, "arguments": beside, "_meta": stateless()});
            match beside.get("idempotencyKey") {
                Some(key) => params["idempotencyKey"] = key.clone(),
                None => params["_meta"]["claudecode/toolUseId"] = beside["claudecode/toolUseId"].clone(),
            }
            effects += 1;
            for outcome in ["ran", "replayed", "replayed"] {
                line.ask("tools/call", params.clone());
                let (answer, bytes) = line.read_answer().expect("an answer");
                let result = &answer["result"];
                assert_eq!(receipt(result)["outcome"], outcome, "{params}: {result}");
                let bytes = String::from_utf8(bytes).expect("text");
                assert!(bytes.contains(&format!(r#""structuredContent":{structure}"#)), "{bytes}");
                assert_ne!(result["isError"], true, "{result}");
                assert_eq!(text(result).contains("[semel] "), outcome == "replayed", "{result}");
            }
            assert_eq!(stage.world().len(), effects);
        }
    }
}

#[test]
fn what_has_no_reply_of_the_tool_has_a_structure_only_where_any_will_do() {
    let stage = Stage::telling(of_all_structures());
    let mut line = stage.open_stateless();
    for (tool, _, _) in structures() {
        let mut params = json!({"name": tool, "arguments": {}, "_meta": stateless()});
        params["_meta"]["dev.semel/dry-run"] = true.into();
        let would = line.call_with(params);
        assert_eq!(receipt(&would)["outcome"], "dry_run", "{would}");
        let any = tool == "create_any";
        assert_eq!(
            (would["isError"] == true, would["structuredContent"].is_object()),
            (!any, any),
            "{would}"
        );
    }
    assert_eq!(stage.world().len(), 0);
    let mut told = of_all_structures();
    for (tool, _, _) in structures() {
        told["calls"][tool] = json!({"raw": GATEWAY});
    }
    stage.tell(told);
    for (tool, _, _) in structures() {
        for _ in 0..2 {
            let held = line.call_with(json!({"name": tool, "arguments": {}, "_meta": stateless()}));
            assert_in_doubt(&held);
            assert_eq!(held.get("structuredContent"), None, "{held}");
        }
    }
    assert_eq!(stage.world().len(), structures().len());
}

#[test]
fn a_result_that_names_a_member_twice_is_said_to_do_so() {
    let raw = r#"{"content":[{"type":"text","text":"ok"}],"x":1,"x":1}"#;
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"raw": raw}}));
    let doubt = stage.open().call("create_order", order());
    assert_in_doubt(&doubt);
    assert!(text(&doubt).contains(r#"the result is ambiguous: "x" is named twice"#), "{doubt}");
    assert_eq!(stage.world().len(), 1);
}

/// Nobody waits for ever for what was only passed on.
#[test]
fn a_read_whose_answer_can_be_read_in_two_ways_is_answered_with_an_error_under_its_id() {
    let result = r#"{"content":[{"type":"text","text":"ok"}]}"#;
    for beside in [r#""result":{}"#, r#""Result":{}"#, r#""error":{"code":1,"message":"x"}"#] {
        let raw = format!("{result},{beside}");
        let stage = Stage::with_calls(&["get_order"], json!({"get_order": {"effect": false, "raw": raw}}));
        let mut line = stage.open();
        let answer = line.request("tools/call", json!({"name": "get_order", "arguments": order()}));
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        let words = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(words.contains("its answer could not be read"), "{answer}");
        assert!(line.request("tools/list", json!({}))["result"]["tools"].is_array());
    }
}
