//! Two eras of the protocol over HTTP: what a client of either is told.

use super::served::Served;
use super::stateless::{ask, serving};
use crate::home::Home;
use semel_testkit::http::{FakeMcpServer, McpEra, Response};
use serde_json::json;

fn says(answer: &Response, versions: [&str; 2]) {
    let error = &answer.json()["error"];
    let message = error["message"].as_str().unwrap_or_default();
    assert!(versions.iter().all(|version| message.contains(version)), "{answer:?}");
    assert_eq!((answer.status, error["code"].as_i64()), (400, Some(-32022)), "{answer:?}");
}

fn initialize(served: &Served) -> Response {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    served.ask("POST", "", &hello.to_string()).answer()
}

fn charge(served: &Served) -> Response {
    ask(served, 3, "tools/call", json!({"name": "charge", "arguments": {}})).answer()
}

#[test]
fn a_client_of_2025_before_a_stateless_remote_server_is_told_both_versions() {
    let (home, upstream) = (Home::new(), FakeMcpServer::speaking(McpEra::Stateless));
    let served = Served::before(&home, &upstream.url());
    for _ in 0..2 {
        says(&initialize(&served), ["2025-06-18", "2026-07-28"]);
    }
    assert_eq!(charge(&served).tool_outcome(), "ran", "others are served");
    assert_eq!(upstream.effects(), 1);
}

#[test]
fn a_client_of_2026_before_a_remote_server_with_initialize_is_told_both_versions() {
    for speaks in [McpEra::Session, McpEra::SessionAlone] {
        let (home, upstream) = (Home::new(), FakeMcpServer::speaking(speaks));
        let served = Served::before(&home, &upstream.url());
        for method in ["tools/call", "tools/list", "resources/list"] {
            let params = json!({"name": "charge", "arguments": {}});
            says(&ask(&served, 3, method, params).answer(), ["2026-07-28", "2025-11-25"]);
        }
        assert_eq!(upstream.effects(), 0);
        let greetings =
            upstream.requests().iter().filter(|heard| heard.text().contains("initialize")).count();
        assert_eq!(greetings, 1, "it is asked once");
        assert_eq!(initialize(&served).status, 200, "others are served");
    }
}

#[test]
fn a_remote_server_of_both_eras_may_be_spoken_to_in_either() {
    let (home, upstream) = (Home::new(), FakeMcpServer::speaking(McpEra::Both));
    let served = Served::before(&home, &upstream.url());
    for _ in 0..2 {
        assert_eq!(initialize(&served).json()["result"]["protocolVersion"], "2025-06-18");
        assert!(charge(&served).json()["result"].is_object());
    }
    assert_eq!(upstream.effects(), 1);
}

/// Whatever the client speaks, what comes back is what the server said.
#[test]
fn while_observing_no_remote_server_is_asked_for_its_era() {
    let (home, upstream) = (Home::new(), FakeMcpServer::speaking(McpEra::Session));
    let policy = format!("mode = \"observe\"\n[mcp.bank]\nurl = \"{}\"\n", upstream.url());
    let served = Served::start(&home, &policy);
    assert_eq!(charge(&served).status, 200);
    let asked = upstream.requests().iter().filter(|heard| heard.text().contains("server/discover")).count();
    assert_eq!((asked, upstream.effects()), (0, 1));
}

#[test]
fn a_server_on_pipes_is_discovered_with_what_semel_offers() {
    let home = Home::new();
    let (served, _) = serving(&home, "create_order", "");
    let found = ask(&served, 7, "server/discover", json!({})).answer().json();
    let tools = &found["result"]["capabilities"]["tools"];
    assert_eq!(*tools, json!({"listChanged": true, "idempotency": {}}), "{found}");
    assert_eq!(found["id"], 7);
}
