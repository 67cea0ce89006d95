//! Large results: kept for a retry up to the limit, and beyond it told as done. Neither runs a second time.

use super::stage::Stage;
use crate::home::memory_peak;
use crate::mcp::line::Line;
use crate::mcp::{receipt, text};
use serde_json::{Value, json};

/// The limit of what is kept is 16 MiB.
const KEPT_BYTES: usize = (16 << 20) - 1024;
const NOT_KEPT_BYTES: usize = 16 << 20;

/// A tool that makes a document of this many bytes, once it may.
fn making(bytes: usize) -> Stage {
    let raw = json!({"content": [{"type": "text", "text": format!("<made> {}", "x".repeat(bytes))}]});
    Stage::with_calls(
        &["render_document", "create_order"],
        json!({"render_document": {"until": "until", "raw": raw.to_string()}}),
    )
}

fn document() -> Value {
    json!({"name": "render_document", "arguments": {"of": "n"}})
}

/// The document is asked for and given up, and is made all the same.
fn given_up(stage: &Stage) -> Line {
    let mut line = stage.open();
    let id = line.ask("tools/call", document());
    stage.wait_until("the effect is there", || stage.world().len() == 1);
    line.notify("notifications/cancelled", json!({"requestId": id}));
    stage.file("until", "");
    stage.wait_until("it is settled", || stage.recorded()[0]["state"] == "applied");
    line
}

#[test]
fn a_large_result_that_nobody_saw_is_whole_for_the_retry() {
    let stage = making(KEPT_BYTES);
    let mut line = given_up(&stage);
    let retried = line.call_with(document());
    assert_eq!(receipt(&retried)["outcome"], "replayed");
    let made = stage.world()[0]["id"].as_str().expect("an id").to_owned();
    let first = retried["content"][0]["text"].as_str().expect("a text");
    assert_eq!((first.len(), &first[..made.len()]), (made.len() + 1 + KEPT_BYTES, made.as_str()));
    assert_eq!(stage.world().len(), 1, "it was made once");
    let peak = memory_peak(line.process());
    assert!(peak < 300 << 10, "what is kept is copied a few times, not many: {peak} KiB");

    let effect = stage.recorded()[0]["effect_id"].as_str().expect("an id").to_owned();
    let shown = stage.semel(["ledger", "show", &effect]);
    assert!(shown.code == Some(0) && shown.stdout.len() < 100_000, "{} bytes", shown.stdout.len());
    let got = stage.json(["ledger", "reply", &effect]);
    assert!(got.to_string().len() > KEPT_BYTES, "{} bytes", got.to_string().len());
}

#[test]
fn a_result_beyond_the_limit_is_told_as_done_and_not_made_again() {
    let stage = making(NOT_KEPT_BYTES);
    let mut line = given_up(&stage);
    let retried = line.call_with(document());
    assert_eq!(receipt(&retried)["outcome"], "replayed", "{}", text(&retried));
    assert!(text(&retried).contains("bytes was not kept"), "{}", text(&retried));
    assert!(text(&retried).contains("its reply is not available"), "{}", text(&retried));
    assert_eq!(stage.world().len(), 1, "it was made once");
    // Whoever waits gets it whole, whatever its size.
    let other = line.call("render_document", json!({"of": "m"}));
    assert!(other["content"][0]["text"].as_str().is_some_and(|text| text.len() > NOT_KEPT_BYTES));
    assert_eq!(stage.world().len(), 2);
}
