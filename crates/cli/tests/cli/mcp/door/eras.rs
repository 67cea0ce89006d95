//! Two eras of the protocol: semel stands before servers of both, and translates between neither.

use super::stage::{Stage, stateless};
use crate::mcp::line::Line;
use crate::mcp::{assert_replayed, receipt, text};
use serde_json::{Value, json};

fn initialize(line: &mut Line) -> Value {
    line.request("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}}))
}

fn says(error: &Value, versions: [&str; 2]) {
    let message = error["message"].as_str().unwrap_or_default();
    assert!(versions.iter().all(|version| message.contains(version)), "{error}");
    assert_eq!(error["code"], -32022, "{error}");
}

#[test]
fn a_client_of_2025_before_a_stateless_server_is_told_both_versions() {
    let stage = Stage::telling(json!({"era": "stateless"}));
    let mut line = Line::to(&mut stage.guarded(&[]));
    for _ in 0..2 {
        says(&initialize(&mut line)["error"], ["2025-06-18", "2026-07-28"]);
    }
}

#[test]
fn a_client_of_2026_before_a_server_with_initialize_is_told_both_versions() {
    for method in ["tools/list", "tools/call", "resources/list"] {
        let stage = Stage::with_tools(&["create_order"]);
        let mut line = stage.open_stateless();
        let params = json!({"name": "create_order", "arguments": {}, "_meta": stateless()});
        let answer = line.request(method, params);
        says(&answer["error"], ["2026-07-28", "2025-11-25"]);
        assert_eq!(answer["error"]["data"]["requested"], "2026-07-28");
        assert_eq!(stage.world().len(), 0);
    }
}

/// Claude Code does this: it asks first, and speaks as it did in 2025 to whoever does not understand.
#[test]
fn a_client_of_both_eras_hears_what_the_server_would_say_and_falls_back() {
    let stage = Stage::with_tools(&["create_order"]);
    let probe = json!({"jsonrpc": "2.0", "id": "server-discover-probe-1", "method": "server/discover", "params": {"_meta": stateless()}});
    let ask = |mut line: Line| {
        line.send(&probe);
        (line.read().expect("an answer"), line)
    };
    let (direct, _) = ask(Line::to(&mut stage.bare()));
    let (guarded, mut line) = ask(stage.open_stateless());
    assert_eq!(guarded, direct);
    assert_eq!(initialize(&mut line)["result"]["protocolVersion"], "2025-06-18");
    line.notify("notifications/initialized", json!({}));
    let first = line.call("create_order", json!({}));
    assert_replayed(&line.call("create_order", json!({})), &first);
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn a_server_of_both_eras_may_be_spoken_to_in_either() {
    let told = json!({"era": "dual", "versions": ["2026-07-28", "2025-11-25"], "pages": [super::stage::listing(&["create_order"])]});
    let stage = Stage::telling(told);
    let mut line = stage.open_stateless();
    let found = line.request("server/discover", json!({"_meta": stateless()}));
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28", "2025-11-25"]));
    // Having seen both, it prefers the older.
    assert_eq!(initialize(&mut line)["result"]["protocolVersion"], "2025-06-18");
}

#[test]
fn calls_of_the_stateless_era_are_guarded_and_answered_in_its_form() {
    let listing = super::stage::listing(&["create_order", "get_order"]);
    let stage = Stage::telling(json!({"era": "stateless", "pages": [listing]}));
    let mut line = stage.open_stateless();
    let params = json!({"name": "create_order", "arguments": {"order": "1"}, "_meta": stateless()});
    let first = line.call_with(params.clone());
    assert_eq!(receipt(&first)["outcome"], "ran", "{first}");
    assert_replayed(&line.call_with(params.clone()), &first);
    assert_eq!(stage.world().len(), 1);
    for asked in stage.heard_requests("tools/list").iter().chain(&stage.heard_requests("tools/call")) {
        let version = &asked["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28", "{asked}");
    }
    let ledger = line.call_with(json!({"name": "semel_ledger", "_meta": stateless()}));
    assert_eq!(ledger["resultType"], "complete", "{ledger}");
    assert!(text(&ledger).contains("mcp:billing/create_order"), "{ledger}");
}
