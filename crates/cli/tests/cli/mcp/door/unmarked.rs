//! Servers that report a failure as an ordinary result, without `isError`.

use super::stage::{Stage, listing};
use crate::mcp::{assert_in_doubt, receipt, text};
use serde_json::{Value, json};

fn says(text: impl ToString) -> Value {
    json!({"content": [{"type": "text", "text": text.to_string()}]})
}

/// What the packs ask, with answers that do not say.
fn asked() -> [(&'static str, Value); 3] {
    [
        ("slack_get_channel_history", says(json!({"ok": true, "messages": [], "has_more": true}))),
        ("linear_search_issues", says("Found 0 issues:")),
        ("list_coupons", says(json!("Failed to list coupons"))),
    ]
}

/// The tool, which answers with this after it has done its work, or without it; and what the packs ask.
fn told(tool: &str, answer: &Value, effect: bool) -> Value {
    let mut calls = json!({tool: {"raw": answer.to_string(), "effect": effect}});
    let mut names = vec![tool];
    for (name, says) in asked() {
        calls[name] = json!({"raw": says.to_string(), "effect": false});
        names.push(name);
    }
    json!({"pages": [listing(&names)], "calls": calls})
}

/// What the servers of the packs answer, as they write it, and the call.
fn of_packs() -> [(&'static str, &'static str, Value, Value, Value); 5] {
    let page = json!({"parent": {"data_source_id": "d"}, "properties": {}});
    let unclear = json!({"object": "error", "status": 502, "code": "bad_gateway", "message": "Not found"});
    let refusal =
        json!({"object": "error", "status": 404, "code": "object_not_found", "message": "Could not find it"});
    let linear = |kind: &str, message: &str| {
        let text = json!({"error": {"type": kind, "message": message}});
        json!({"content": [{"type": "text", "text": text, "metadata": {"error": true}}]})
    };
    let lost = json!({"error": "fetch failed"});
    let no = json!({"ok": false, "error": "channel_not_found"});
    [
        ("slack", "slack_post_message", json!({"channel_id": "C1", "text": "hi"}), says(lost), says(no)),
        ("notion", "API-post-page", page, says(unclear), says(refusal)),
        (
            "linear",
            "linear_create_issue",
            json!({"teamId": "t", "title": "x"}),
            linear("API_ERROR", "Linear API error: 502 Bad Gateway"),
            linear("VALIDATION_ERROR", "Invalid request parameters"),
        ),
        (
            "postgres",
            "execute_sql",
            json!({"sql": "INSERT INTO t VALUES (1)"}),
            says("Error: server closed the connection unexpectedly"),
            says("Error: relation \"t\" does not exist"),
        ),
        (
            "stripe",
            "create_coupon",
            json!({"name": "c"}),
            says(json!("Failed to create coupon: An error occurred with our connection to Stripe.")),
            says(json!("Failed to create coupon: Invalid currency: xyz.")),
        ),
    ]
}

#[test]
fn with_its_pack_an_unclear_failure_is_held_and_happens_once() {
    for (pack, tool, arguments, unclear, _) in of_packs() {
        let stage = Stage::telling(told(tool, &unclear, true));
        stage.file("semel.toml", &format!("version = 1\ninclude = [\"pack:{pack}\"]\n"));
        let mut line = stage.open_as(pack);
        for _ in 0..2 {
            assert_in_doubt(&line.call(tool, arguments.clone()));
        }
        assert_eq!(stage.world().len(), 1, "{pack}");
    }
}

#[test]
fn with_its_pack_a_refusal_lets_the_next_call_run() {
    for (pack, tool, arguments, _, refusal) in of_packs() {
        let stage = Stage::telling(told(tool, &refusal, false));
        stage.file("semel.toml", &format!("version = 1\ninclude = [\"pack:{pack}\"]\n"));
        let mut line = stage.open_as(pack);
        let refused = line.call(tool, arguments.clone());
        assert_eq!(receipt(&refused)["code"], "upstream_refused", "{pack}: {refused}");
        assert_eq!(refused["content"], refusal["content"], "{pack}");
        stage.tell(told(tool, &says("done"), true));
        let done = line.call(tool, arguments.clone());
        assert_eq!(receipt(&done)["outcome"], "ran", "{pack}: {done}");
        assert_eq!(stage.world().len(), 1, "{pack}");
    }
}

#[test]
fn without_a_pack_a_result_that_only_tells_of_an_error_is_read_by_its_words() {
    let order = json!({"order": "1001"});
    for lost in [says("Error: connection reset by peer"), says(json!({"error": "fetch failed"}))] {
        let stage = Stage::telling(told("create_order", &lost, true));
        let mut line = stage.open();
        for _ in 0..2 {
            assert_in_doubt(&line.call("create_order", order.clone()));
        }
        assert_eq!(stage.world().len(), 1, "{lost}");
    }
    for no in [says("Error: order 1001 not found"), says(json!({"error": {"code": 404}, "status": 404}))] {
        let stage = Stage::telling(told("create_order", &no, false));
        let mut line = stage.open();
        let refused = line.call("create_order", order.clone());
        assert_eq!(receipt(&refused)["code"], "upstream_refused", "{refused}");
        stage.tell(told("create_order", &says("made"), true));
        line.call("create_order", order.clone());
        assert_eq!(stage.world().len(), 1, "{no}");
    }
}

#[test]
fn a_success_that_quotes_an_error_is_answered_from_the_record() {
    for made in [
        says(json!({"id": "or_1", "title": "Error: fetch failed"})),
        says(json!({"id": "or_1", "error": "no avatar"})),
        says("Order made. Error: none"),
    ] {
        let stage = Stage::telling(told("create_order", &made, true));
        let mut line = stage.open();
        let first = line.call("create_order", json!({"order": "1001"}));
        assert_eq!(text(&first), text(&made), "{first}");
        let again = line.call("create_order", json!({"order": "1001"}));
        assert_eq!(receipt(&again)["outcome"], "replayed", "{again}");
        assert_eq!(stage.world().len(), 1);
    }
}

#[test]
fn a_status_and_any_letter_case_are_read_too() {
    let order = json!({"order": "1001"});
    for lost in [json!({"status": "failed", "message": "fetch failed"}), json!({"Error": "fetch failed"})] {
        let structured = json!({"content": [], "structuredContent": lost});
        for lost in [says(&lost), structured] {
            let stage = Stage::telling(told("create_order", &lost, true));
            let mut line = stage.open();
            for _ in 0..2 {
                assert_in_doubt(&line.call("create_order", order.clone()));
            }
            assert_eq!(stage.world().len(), 1, "{lost}");
        }
    }
}

#[test]
fn a_rule_can_trust_what_is_not_marked() {
    let made = says("Error: connection reset by peer");
    let stage = Stage::telling(told("create_order", &made, true))
        .rule("create_order", "class = \"consequential\"\nunmarked = \"trust\"");
    let mut line = stage.open();
    for outcome in ["ran", "replayed"] {
        let told = line.call("create_order", json!({"order": "1001"}));
        assert_eq!((&receipt(&told)["outcome"], &receipt(&told)["ok"]), (&outcome.into(), &true.into()));
    }
    assert_eq!(stage.world().len(), 1);
}

/// It was done, and something beside it was not.
#[test]
fn a_success_with_a_fault_in_one_part_happens_once() {
    let issue = json!({"title": "x"});
    for answer in [
        json!({"message": "Issue created", "errors": ["label not found"]}),
        json!({"status": "posted", "error": "label not found"}),
    ] {
        let stage = Stage::telling(told("create_issue", &says(&answer), true));
        let mut line = stage.open_as("tracker");
        for _ in 0..2 {
            assert_in_doubt(&line.call("create_issue", issue.clone()));
        }
        assert_eq!(stage.world().len(), 1, "{answer}");
    }
    for answer in [
        json!({"success": true, "errors": ["label not found"]}),
        json!({"status": 201, "errors": ["label not found"]}),
    ] {
        let stage = Stage::telling(told("create_issue", &says(&answer), true));
        let mut line = stage.open_as("tracker");
        let outcomes = [0, 1].map(|_| receipt(&line.call("create_issue", issue.clone()))["outcome"].clone());
        assert_eq!(outcomes, ["ran", "replayed"], "{answer}");
        assert_eq!(stage.world().len(), 1, "{answer}");
    }
    let link = json!({"type": "resource_link", "uri": "issue://1", "name": "issue"});
    let both = json!({"content": [link], "structuredContent": {"errors": ["label not found"]}});
    let stage = Stage::telling(told("create_issue", &both, true));
    let mut line = stage.open_as("tracker");
    for _ in 0..2 {
        assert_in_doubt(&line.call("create_issue", issue.clone()));
    }
    assert_eq!(stage.world().len(), 1);
}
