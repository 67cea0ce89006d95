//! What names a member twice, and what stands beside what semel reads: the same over HTTP as over stdio.

use super::served::Served;
use super::stateless::{ask, told};
use crate::home::Home;
use crate::mcp::door::stage::listing;
use semel_testkit::http::{FakeMcpServer, Response};
use serde_json::json;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn send(served: &Served, method: &str, body: &str) -> Response {
    let headers = format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: create_order\r\n"
    );
    served.ask("POST", &headers, body).answer()
}

fn order_desk(home: &Home, beside: &str) -> (Served, std::path::PathBuf) {
    let methods = json!({"future/method": r#"{"x":1.0,"x":2.0}"#});
    let pages = [listing(&["create_order"])];
    told(home, &json!({"era": "stateless", "pages": pages, "methods": methods, "beside": beside}), "")
}

#[test]
fn a_stateless_request_that_names_a_member_twice_passes_unless_it_calls_a_tool() {
    let home = Home::new();
    let (served, heard) = order_desk(&home, r#" , "novel":1.0"#);
    let params = format!(r#"{{ "dup":1,"dup":2,{META}}}"#);
    let body =
        format!(r#"{{"novel":[1 ,2], "jsonrpc":"2.0","id":7,"method":"future/method","params":{params} }}"#);
    let answer = send(&served, "future/method", &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body, r#"{"jsonrpc": "2.0", "id": 7, "result": {"x":1.0,"x":2.0} , "novel":1.0}"#);
    let heard = std::fs::read_to_string(heard).expect("it heard something");
    let last = heard.lines().find(|line| line.contains("future/method")).expect("the request");
    let (before, after) = body.split_once("\"id\":7").expect("an id");
    assert!(last.starts_with(before) && last.ends_with(after), "{last}");

    for (params, member) in [
        (format!(r#"{{"name":"create_order","arguments":{{}},"name":"x",{META}}}"#), "name"),
        (format!(r#"{{"name":"create_order","dup":1,"dup":1,{META}}}"#), "dup"),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{params}}}"#);
        let answer = send(&served, "tools/call", &body).json();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(8), &json!(-32602)), "{answer}");
        let words = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(words.contains(&format!("params names {member:?} twice")), "{words}");
    }
    let twice =
        format!(r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{}},"params":{{{META}}}}}"#);
    let answer = send(&served, "tools/call", &twice).json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(9), &json!(-32600)), "{answer}");
    assert!(!home.work().join("world").exists(), "nothing happened");
}

#[test]
fn what_stands_beside_an_edited_result_of_a_server_on_stdio_stays() {
    let home = Home::new();
    let (served, heard) = order_desk(&home, r#" ,"trace": "t-1""#);
    let call = json!({"name": "create_order", "arguments": {}});
    for (method, params) in [("server/discover", json!({})), ("tools/list", json!({})), ("tools/call", call)]
    {
        let answer = ask(&served, 4, method, params).answer();
        assert!(answer.body.starts_with(r#"{"jsonrpc": "2.0", "id": 4, "result": {"#), "{answer:?}");
        assert!(answer.body.trim_end().ends_with(r#"} ,"trace": "t-1"}"#), "{answer:?}");
        assert!(answer.body.contains("semel") || answer.body.contains("idempotency"), "{answer:?}");
    }
    let params = format!(r#"{{"name":"create_order","arguments":{{"order":"2"}},{META}}}"#);
    let body = format!(
        r#"{{"trace":"t-2","jsonrpc":"2.0","id":5,"method":"tools/call","params":{params}, "n":1.0}}"#
    );
    assert_eq!(send(&served, "tools/call", &body).tool_outcome(), "ran");
    let heard = std::fs::read_to_string(heard).expect("it heard something");
    // Not always the last: a process that is only asked for its era may come late.
    let call = heard.lines().find(|line| line.contains("t-2")).expect("the call");
    let (before, after) = body.split_once("\"id\":5").expect("an id");
    assert!(call.starts_with(before) && call.ends_with(after), "{call}");
}

#[test]
fn what_stands_beside_an_edited_result_of_a_remote_server_stays() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let served = Served::before(&home, &upstream.url());
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let hello = served.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
    let listed = served.post(&json!({"jsonrpc": "2.0", "id": "l", "method": "tools/list"}));
    for (answer, edited) in [(hello, "idempotency"), (listed, "[semel: ")] {
        assert_eq!(answer.json()["trace"], "t-1", "{answer:?}");
        assert!(answer.body.contains(edited), "{answer:?}");
    }
    let mut call = super::served::calling(3, "charge", json!({"amount": 1}));
    call["trace"] = "t-2".into();
    assert_eq!(served.post(&call).tool_outcome(), "ran");
    let charged = upstream.requests().pop().expect("a charge");
    let charged = charged.json();
    assert_eq!((&charged["trace"], upstream.effects()), (&json!("t-2"), 1), "{charged}");
}
