//! What one client may have under way, also where it has no session to be known by.

use super::served::{SESSION, Served};
use super::stateless::{ask, serving, told};
use crate::home::Home;
use semel_testkit::http::{FakeMcpServer, RawClient, Response};
use serde_json::{Value, json};

/// So much that four calls of it find room, and no fifth.
const LARGE: usize = 30 << 20;

fn call(tool: &str, order: u64, large: &str) -> Value {
    json!({"name": tool, "arguments": {"order": order, "waits": true}, "_meta": {"x": large}})
}

fn is_refused(answer: &Response) -> bool {
    answer.body.contains("too much in flight; nothing was sent")
}

/// Each of them goes away once its call is with the server, and what it left behind is still there.
fn leave_four(home: &Home, effects: impl Fn() -> usize, call: impl Fn(u64) -> RawClient) {
    for order in 0..4 {
        let _asked = call(order);
        home.wait_until("it is with the server", || effects() == order as usize + 1);
    }
}

#[test]
fn calls_without_a_session_have_room_together_before_a_server_on_pipes() {
    let home = Home::new();
    let (served, _) = serving(&home, "create_order", "");
    let effects = || std::fs::read_to_string(home.work().join("world")).unwrap_or_default().lines().count();
    let large = "x".repeat(LARGE);
    let calling = |order, large: &str| ask(&served, order, "tools/call", call("create_order", order, large));
    leave_four(&home, effects, |order| calling(order, &large));
    let mut refused = calling(4, &large);
    let head = refused.head();
    assert!(!head.contains("text/event-stream"), "it is under way: {head}");
    let refused = refused.answer_after(head);
    assert!(is_refused(&refused) && effects() == 4, "{refused:?}");
    let small = calling(5, "");
    home.wait_until("nobody's large call stands in its way", || effects() == 5);
    home.file("until", "");
    assert_eq!(small.answer().tool_outcome(), "ran");
    home.wait_until("there is room again", || !is_refused(&calling(6, &large).answer()));
    assert_eq!(effects(), 6);
}

#[test]
fn calls_without_a_session_have_room_together_before_a_remote_server() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let served = Served::before(&home, &upstream.url());
    let large = "x".repeat(LARGE);
    let without = |order, large: &str| ask(&served, order, "tools/call", call("charge", order, large));
    leave_four(&home, || upstream.effects(), |order| without(order, &large));
    let in_session = |order: u64, session: &str, more: &str| {
        let message = json!({"jsonrpc": "2.0", "id": order, "method": "tools/call", "params": call("charge", order, &large)});
        served.ask("POST", &format!("{session}{more}"), &message.to_string())
    };
    for refused in [
        without(4, &large),
        in_session(5, "", "Semel-Run-Id: r-1\r\n"),
        in_session(6, "Mcp-Session-Id: made-up\r\n", ""),
    ] {
        let refused = refused.answer();
        assert!(is_refused(&refused) && upstream.effects() == 4, "{refused:?}");
    }
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    served.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
    let begun = in_session(7, SESSION, "");
    home.wait_until("a session has room of its own", || upstream.effects() == 5);
    upstream.release();
    assert_eq!(begun.answer().tool_outcome(), "ran");
}

/// A server is started by semel itself, once for each era, and the process of the era it does not speak is ended;
/// what a request says of commands and paths starts nothing.
#[test]
fn no_request_starts_a_process() {
    let home = Home::new();
    let tools = json!({"tools": [{"name": "create_order", "inputSchema": {"type": "object"}}]});
    let (served, _heard) = told(&home, &json!({"era": "stateless", "pages": [tools.to_string()]}), "");
    let call = |order: u64| {
        let command = json!({"command": ["sh", "-c", "true"], "order": order});
        let params =
            json!({"name": "create_order", "arguments": command, "command": "sh", "server": "other"});
        ask(&served, order, "tools/call", params).answer()
    };
    assert_eq!(call(0).tool_outcome(), "ran");
    let started = served.children();
    assert!(!started.is_empty(), "the server lives");
    for order in 1..=10 {
        assert_eq!(call(order).tool_outcome(), "ran");
        for path in ["/mcp/nobody", "/mcp/bank/sh", "/mcp/..%2f..%2fbin%2fsh", "/p/sh/", "/mcp/"] {
            let asked = served.ask_raw(&format!("POST {path} HTTP/1.1"), "", "{}").answer();
            assert!(asked.status >= 400, "{path}: {asked:?}");
        }
    }
    let live = served.children();
    assert!(
        !live.is_empty() && live.iter().all(|child| started.contains(child)),
        "{started:?}, then {live:?}"
    );
}
