//! Errors that refuse one thing and have done another, and errors that say nothing: what a model repeats happens once.

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

/// Denials and other times are not understood: a doubt is looked at, and a refusal is run again.
#[test]
fn an_error_with_a_word_of_something_done_happens_once_whatever_it_says_of_it() {
    for (tool, text) in [
        ("create_issue", "Label invalid; no issue was created"),
        ("charge", "Refund denied: charge has been refunded"),
        ("send_email", "Daily quota exceeded. You have sent 500 emails"),
    ] {
        let stage = Stage::telling(told(tool, &marked(&[block(text)])));
        let mut line = stage.open();
        for _ in 0..2 {
            assert_in_doubt(&line.call(tool, json!({"order": "1001"})));
        }
        assert_eq!(stage.world().len(), 1, "{tool}: {text}");
    }
}

/// It did its work and says only that it failed.
#[test]
fn an_error_that_says_nothing_happens_once_where_it_must() {
    let mute = || marked(&[block("An unexpected error occurred")]);
    let stage = Stage::telling(told("create_order", &mute()));
    let mut line = stage.open();
    for _ in 0..2 {
        assert_in_doubt(&line.call("create_order", json!({"order": "1001"})));
    }
    assert_eq!(stage.world().len(), 1);
    // Without a key, and of a class that may be repeated, the tool's word is taken, and called that.
    let stage = Stage::telling(told("set_title", &mute()));
    let mut line = stage.open();
    let failed = line.call("set_title", json!({"title": "x"}));
    let receipt = receipt(&failed);
    assert_eq!(
        (&receipt["code"], &receipt["is_it_safe_to_retry"]),
        (&"upstream_refused".into(), &"yes".into())
    );
    let said = receipt["what_happened"].as_str().expect("a sentence");
    assert_eq!(
        said,
        "The tool failed: An unexpected error occurred. Whether it changed anything is not known."
    );
    line.call("set_title", json!({"title": "x"}));
    assert_eq!(stage.world().len(), 2);
}
