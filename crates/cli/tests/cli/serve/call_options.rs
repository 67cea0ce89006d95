//! What a request to an MCP server says to semel in its headers.

use super::served::{SESSION, Served, calling};
use super::stateless::{ask_saying, section};
use crate::home::Home;
use semel_testkit::http::FakeMcpServer;
use serde_json::json;

/// Who misspells a dry run must not get the effect.
const ODD: [&str; 5] =
    ["Semel-Dryrun: 1", "X-Semel-Dry-Run: 1", "Semel_Dry_Run: 1", "Semel-Dry: 1", "Semel-Dry-Run: maybe"];

#[test]
fn a_dry_run_that_a_header_asks_for_sends_nothing_to_a_remote_server() {
    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    let served = Served::before(&home, &upstream.url());
    let charge = |headers: &str| {
        let message = calling(1, "charge", json!({"amount": 1})).to_string();
        served.ask("POST", &format!("{SESSION}{headers}"), &message).answer()
    };
    assert_eq!(charge("Semel-Dry-Run: 1\r\n").tool_outcome(), "dry_run");
    for odd in ODD {
        let answer = charge(&format!("{odd}\r\n"));
        assert!(answer.status == 400 && answer.body.contains("Semel-Dry-Run"), "{odd}: {answer:?}");
    }
    assert_eq!(upstream.effects(), 0);
    assert_eq!(charge("Semel-Dry-Run: 0\r\n").tool_outcome(), "ran");
    assert_eq!(charge("Semel-Again: the second month\r\n").tool_outcome(), "ran");
    assert_eq!(charge("Semel-Again: the second month\r\n").tool_outcome(), "replayed");
    assert_eq!(upstream.effects(), 2);
    let heard = upstream.requests();
    assert!(heard.iter().all(|heard| heard.header("semel-again").is_none()), "it is said to semel alone");
}

#[test]
fn a_dry_run_that_a_header_asks_for_calls_no_tool_of_a_started_server() {
    for mode in ["guard", "observe"] {
        let home = Home::new();
        let tools = json!({"tools": [{"name": "create_order", "inputSchema": {"type": "object"}}]});
        let plays = json!({"era": "stateless", "pages": [tools.to_string()]});
        let served = Served::start(&home, &format!("mode = \"{mode}\"\n{}", section(&home, &plays)));
        let params = json!({"name": "create_order", "arguments": {"order": "1"}});
        let call = |headers: &str| ask_saying(&served, "tools/call", params.clone(), headers).answer();
        assert_eq!(call("Semel-Dry-Run: 1\r\n").tool_outcome(), "dry_run", "{mode}");
        for odd in ODD {
            assert_eq!(call(&format!("{odd}\r\n")).status, 400, "{mode} {odd}");
        }
        assert_eq!(home.effects(), 0, "{mode}");
        assert_eq!(call("").status, 200);
        assert_eq!(home.effects(), 1, "{mode}");
    }
}
