//! Errors that refuse one thing and have done another: what a model repeats happens once. And refusals that speak of
//! what was done before: they are run again at once.

use super::stage::{Stage, listing};
use crate::mcp::{assert_in_doubt, receipt};
use serde_json::{Value, json};

fn told(tool: &str, answer: &Value) -> Value {
    json!({"pages": [listing(&[tool])], "calls": {tool: {"raw": answer.to_string()}}})
}

fn block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn marked(blocks: &[Value]) -> Value {
    json!({"content": blocks, "isError": true})
}

fn with(mut result: Value, structure: Value) -> Value {
    result["structuredContent"] = structure;
    result
}

#[test]
fn an_error_that_says_that_it_was_done_happens_once() {
    let no_label = || block("Label not found");
    let refused = || marked(&[no_label()]);
    let resource = json!({"type": "resource", "resource": {"uri": "x:y", "text": "Issue created"}});
    let link = json!({"type": "resource_link", "uri": "https://x.test/issues/12", "name": "issue"});
    for (tool, answer) in [
        ("create_issue", marked(&[block("Issue created"), no_label()])),
        ("create_issue", marked(&[no_label(), block("Created issue #12")])),
        ("create_issue", marked(&[block("Error adding label to created issue 45: label not found")])),
        ("create_issue", marked(&[block("Invalid assignee => issue created")])),
        ("create_issue", marked(&[block(r#"{"error":"label not found","created":true,"id":12}"#)])),
        ("create_issue", with(refused(), json!({"message": "Issue created", "id": 12}))),
        ("create_issue", marked(&[no_label(), resource])),
        ("create_issue", marked(&[no_label(), link])),
        (
            "create_issue",
            json!({"content": [block(r#"{"error":"label invalid","details":{"created":12}}"#)]}),
        ),
        ("charge", marked(&[block("The card was charged before validation failed: invalid address")])),
        ("charge", marked(&[block("Coupon invalid: you were charged full price")])),
        ("charge", marked(&[block("Coupon invalid. Order placed today")])),
        ("post_message", marked(&[block("Message posted to #general cannot be pinned: permission denied")])),
    ] {
        let stage = Stage::telling(told(tool, &answer));
        let mut line = stage.open();
        for _ in 0..2 {
            assert_in_doubt(&line.call(tool, json!({"order": "1001"})));
        }
        assert_eq!(stage.world().len(), 1, "{tool}: {answer}");
    }
}

#[test]
fn a_refusal_that_speaks_of_what_was_done_before_is_run_again() {
    for (tool, text) in [
        ("void_invoice", "Invalid state: invoice has been paid"),
        ("charge", "Refund denied: charge has been refunded"),
        ("cancel_shipment", "Cannot cancel: order has been shipped; not allowed"),
        ("comment", "Not allowed. This pull request has been merged"),
        ("send_email", "Daily quota exceeded. You have sent 500 emails"),
        ("create_user", "Username already exists: account created on 2020-01-01"),
        ("create_issue", "Label not found. Has it been created?"),
        ("create_order", "Invalid request. See https://x.com/docs/orders/created for details"),
    ] {
        let stage = Stage::telling(told(tool, &marked(&[block(text)])));
        let mut line = stage.open();
        for _ in 0..2 {
            let refused = line.call(tool, json!({"order": "1001"}));
            assert_eq!(receipt(&refused)["code"], "upstream_refused", "{tool}: {refused}");
        }
        assert_eq!(stage.world().len(), 2, "{tool}: {text}");
    }
}
