//! A call of a tool, hidden inside something harmless: what semel reads and what a server reads must be one thing.

use super::served::{Served, calling};
use crate::home::Home;
use crate::mcp::peers::script;
use semel_testkit::http::FakeMcpServer;
use serde_json::{Value, json};

#[test]
fn a_body_in_another_charset_or_encoding_reaches_no_server() {
    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    let served = Served::before(&home, &upstream.url());
    let message = calling(1, "charge", json!({"amount": 1})).to_string();
    let heard = upstream.requests().len();
    for head in ["Content-Type: application/json; charset=utf-7", "Content-Type: text/plain"] {
        let answer = served.ask("POST", &format!("{head}\r\n"), &message).answer();
        assert!(answer.head.contains(" 415 "), "{head}: {}", answer.head);
    }
    assert_eq!((upstream.effects(), upstream.requests().len()), (0, heard));
}

/// A server on stdio that does as it is told, behind HTTP.
fn told(home: &Home) -> Served {
    let page = json!({"tools": [{"name": "create_order", "inputSchema": {"type": "object"}}]}).to_string();
    home.file("told.json", &json!({"pages": [page]}).to_string());
    let world = home.work().join("world");
    let env = format!("{{ SEMEL_WORLD = {:?}, SEMEL_HEARD = {:?} }}", world, home.work().join("heard"));
    let command = json!(["python3", "-S", script("told.py")]);
    Served::start(home, &format!("[mcp.bank]\ncommand = {command}\nenv = {env}\n"))
}

fn opened(served: &Served) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let answer = served.post(&hello);
    assert_eq!(answer.json()["result"]["protocolVersion"], "2025-06-18", "{}", answer.head);
    let session = answer.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let kind = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    format!("{kind}Mcp-Session-Id: {}\r\n", session.expect("a session").trim())
}

#[test]
fn line_breaks_between_tokens_do_not_end_a_message_on_a_pipe() {
    let home = Home::new();
    let served = told(&home);
    let session = opened(&served);
    let hidden = calling(9, "create_order", json!({"order": "hidden"}));
    let bodies = [
        format!("{{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"params\":{{\"x\":\n{hidden}\n}}}}"),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\",\"params\":{{\"x\":\r{hidden}\r}}}}"),
    ];
    for body in bodies {
        assert!(served.ask("POST", &session, &body).answer().json()["id"].is_number());
    }
    // A call that is written over several lines is one call.
    let pretty =
        serde_json::to_string_pretty(&calling(7, "create_order", json!({"order": "1"}))).expect("JSON");
    let answer: Value = served.ask("POST", &session, &pretty).answer().json();
    assert_eq!(answer["id"], 7, "{answer}");
    let world = std::fs::read_to_string(home.work().join("world")).unwrap_or_default();
    assert_eq!(world.lines().count(), 1, "{world}");
}

#[test]
fn a_call_without_an_id_is_refused_and_not_dropped() {
    let home = Home::new();
    let served = told(&home);
    let session = opened(&served);
    let mut call = calling(1, "create_order", json!({"order": "1"}));
    call.as_object_mut().expect("an object").remove("id");
    let answer = served.ask("POST", &session, &call.to_string()).answer();
    assert!(answer.status == 400 && answer.body.contains("needs an id"), "{answer:?}");
    assert!(!home.work().join("world").exists());
}

#[test]
fn a_run_that_a_request_names_is_that_requests_run() {
    let home = Home::new();
    let served = told(&home);
    let session = opened(&served);
    let order = |run: &str| {
        let headers = format!("{session}Semel-Run-Id: {run}\r\n");
        served
            .ask("POST", &headers, &calling(1, "create_order", json!({"order": "1"})).to_string())
            .answer()
            .tool_outcome()
    };
    assert_eq!((order("r1"), order("r2"), order("r1")), ("ran".into(), "ran".into(), "replayed".into()));
    home.semel(["cancel", "r9"]);
    assert_eq!(order("r9"), "refused");
}
