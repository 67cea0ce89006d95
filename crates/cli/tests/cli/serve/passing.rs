use super::served::{SESSION, Served};
use crate::home::Home;
use semel_testkit::http::FakeMcpServer;
use serde_json::json;

#[test]
fn all_that_is_not_guarded_passes_as_it_came() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let served = Served::start(
        &home,
        &format!(
            "[mcp.bank]\nurl = \"{}\"\nheaders = {{ X-Fixed = \"f\" }}\nheaders_env = {{ X-Key = \"UPSTREAM_TOKEN\" }}\n",
            upstream.url()
        ),
    );
    let body = r#"{"jsonrpc":"2.0","id":9007199254740993, "method":"custom/x","params":{"n":1.0e2}}"#;
    let headers = format!(
        "{SESSION}Authorization: Bearer user\r\nX-Unknown: u\r\nMcp-Param-Region: r\r\nKeep-Alive: 5\r\nX-Key: mine\r\n"
    );
    let answer = served.ask("POST", &headers, body).answer();
    assert_eq!(answer.body, r#"{"id":9007199254740993,  "x":1.0e2,"result":{}}"#);
    assert!(answer.head.contains("x-own: 1\r\n"), "{answer:?}");
    let heard = upstream.requests().pop().expect("one request");
    assert_eq!(heard.text(), body);
    let address = upstream.url();
    let host = address.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
    for (name, value) in [
        ("authorization", Some("Bearer user")),
        ("x-unknown", Some("u")),
        ("mcp-param-region", Some("r")),
        ("mcp-session-id", Some("s-1")),
        ("x-fixed", Some("f")),
        ("x-key", Some("Bearer operator")),
        ("host", host),
        ("keep-alive", None),
        ("semel-token", None),
    ] {
        assert_eq!(heard.header(name), value, "{name}");
    }
    let note = served.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!((note.status, note.body.as_str()), (202, ""));
    assert_eq!(served.ask("DELETE", SESSION, "").answer().status, 200);
    let stream = served.ask("GET", SESSION, "").answer();
    assert!(stream.body.starts_with(": hello\n\nid: own-1\ndata: {"), "{stream:?}");
    assert!(stream.head.contains("x-accel-buffering: no"), "{stream:?}");
}

#[test]
fn greetings_keep_their_session_and_listings_say_what_is_guarded() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let served = Served::before(&home, &upstream.url());
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let hello = served.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
    assert!(hello.head.contains("mcp-session-id: s-1"), "{hello:?}");
    let listed = served.post(&json!({"jsonrpc": "2.0", "id": "l", "method": "tools/list"})).json();
    assert_eq!(listed["id"], "l");
    let tool = |name: &str| {
        let tools = listed["result"]["tools"].as_array().expect("tools");
        tools.iter().find(|tool| tool["name"] == name).cloned().unwrap_or_default()
    };
    assert!(tool("charge")["description"].as_str().is_some_and(|words| words.contains("semel")), "{listed}");
    assert!(tool("get_balance")["description"].is_null());
    assert!(tool("semel_ledger").is_object());
}

#[test]
fn an_upstream_that_is_not_there_is_said_to_be_not_there() {
    let home = Home::new();
    let served = Served::before(&home, "http://127.0.0.1:9/mcp");
    let answer = served.ask("POST", SESSION, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).answer();
    assert_eq!(answer.status, 502);
    let call = served.call("charge", json!({"amount": 1}));
    let receipt = &call.json()["result"]["_meta"]["dev.semel/receipt"];
    assert_eq!((&receipt["code"], &receipt["is_it_safe_to_retry"]), (&"not_started".into(), &"yes".into()));
}
