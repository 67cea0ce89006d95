//! The MCP door between real clients and real servers, judged by what happened in the world: lines that the servers
//! append to a file.
//!
//! Each guarantee is shown twice: without semel, where it fails, and with it.

pub mod line;
pub mod peers;
mod post;
mod running;

mod agents;
mod concurrency;
mod conformance;
mod deaths;
pub mod door;
mod inspector;
mod misbehaviour;
mod pack_servers;
mod reads;
mod reissue;
mod repeats;
mod sdk;
mod sessions;

use serde_json::Value;

/// Whether semel stands between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Direct,
    Guarded,
}

/// The answer object of a tool result that came through semel.
pub fn receipt(result: &Value) -> &Value {
    &result["_meta"]["dev.semel/receipt"]
}

/// All text of a tool result.
pub fn text(result: &Value) -> String {
    let parts = result["content"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// Asserts that a call was answered from the record: marked for programs, and in words for the model.
pub fn assert_replayed(result: &Value, first: &Value) {
    let answer = receipt(result);
    assert_eq!((&answer["outcome"], &answer["effect"]), (&"replayed".into(), &"noop".into()), "{result}");
    assert_ne!(result["isError"], true, "{result}");
    let (again, once) = (text(result), text(first));
    // Notices about the first call do not stand in its replay.
    let once = once.split("\n[semel] ").next().unwrap_or_default();
    assert!(again.contains(once) && again.len() > once.len(), "a notice beside the first answer: {result}");
}

/// Asserts that a call was held because nobody knows whether an earlier one happened.
pub fn assert_in_doubt(result: &Value) {
    let answer = receipt(result);
    assert_eq!((&answer["code"], &answer["ok"]), (&"in_doubt".into(), &false.into()), "{result}");
    assert_eq!(answer["is_it_safe_to_retry"], "no", "{result}");
    assert_eq!(result["isError"], true, "{result}");
    assert!(!text(result).is_empty(), "the model sees words: {result}");
}
