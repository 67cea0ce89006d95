//! A cancel without a session: what is guarded is finished all the same, and what is not is let go of.

use super::stateless::{headers, meta, serving};
use crate::home::Home;
use serde_json::json;

/// Its server says nothing more to it, and neither client nor semel would ever let go of the stream.
#[test]
fn a_read_that_was_cancelled_has_no_stream_any_more() {
    let home = Home::new();
    let tools = json!([{"name": "get_order", "inputSchema": {"type": "object"}}]);
    let calls = json!({"get_order": {"until": home.work().join("until")}});
    let told = json!({"era": "stateless", "pages": [json!({"tools": tools}).to_string()], "calls": calls});
    let (served, heard) = serving(&home, &told, "");
    let call = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": {"name": "get_order", "arguments": {}, "_meta": meta()}});
    let asked = served.ask("POST", &headers("tools/call", "Mcp-Name: get_order\r\n"), &call.to_string());
    home.wait_until("its stream is open", || asked.is_answered());
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 5, "_meta": meta()}});
    let cancelled = served.ask("POST", &headers("notifications/cancelled", ""), &cancel.to_string()).answer();
    assert_eq!(cancelled.status, 202);
    let ended = asked.answer();
    assert!(ended.head.contains("text/event-stream") && !ended.body.contains("data:"), "{ended:?}");
    home.wait_until("the server was told", || {
        std::fs::read_to_string(&heard).is_ok_and(|heard| heard.contains("notifications/cancelled"))
    });
}

#[test]
fn a_cancel_of_a_guarded_call_reaches_no_server_in_the_stateless_era() {
    let home = Home::new();
    let tools = json!([{"name": "create_order", "inputSchema": {"type": "object"}}]);
    let calls = json!({"create_order": {"until": home.work().join("until")}});
    let told = json!({"era": "stateless", "pages": [json!({"tools": tools}).to_string()], "calls": calls});
    let (served, heard) = serving(&home, &told, "");
    let params = json!({"name": "create_order", "arguments": {}, "_meta": meta()});
    let call = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params});
    let asked = served.ask("POST", &headers("tools/call", "Mcp-Name: create_order\r\n"), &call.to_string());
    home.wait_until("it is with the server", || home.work().join("world").exists());
    home.wait_until("its client is told that it goes on", || asked.is_answered());
    let params = json!({"requestId": 5, "_meta": meta()});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    let method = "notifications/cancelled";
    assert_eq!(served.ask("POST", &headers(method, ""), &cancel.to_string()).answer().status, 202);
    home.file("until", "");
    assert_eq!(asked.answer().outcome(), "ran", "and whoever waits gets its answer");
    let heard = std::fs::read_to_string(heard).expect("it heard something");
    assert!(!heard.contains(method), "{heard}");
}
