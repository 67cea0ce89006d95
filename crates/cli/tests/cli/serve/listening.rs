//! What a server on pipes says of its own accord, and who is told.

use super::served::Served;
use super::stateless::{ask, serving, told};
use crate::home::Home;
use semel_testkit::http::{RawClient, Response};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// All that the server heard of this method.
fn heard(file: &Path, method: &str) -> Vec<Value> {
    let heard = std::fs::read_to_string(file).unwrap_or_default();
    let messages = heard.lines().map(|line| serde_json::from_str::<Value>(line).expect("a message"));
    messages.filter(|message| message["method"] == method).collect()
}

/// The next events of a stream that is open.
fn next_event(asked: &mut RawClient) -> Value {
    loop {
        let chunk = asked.chunk();
        if let Some(data) = chunk.lines().find_map(|line| line.strip_prefix("data: ")) {
            return serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {chunk:?}"));
        }
    }
}

#[test]
fn whoever_closes_a_stream_that_listens_has_cancelled_it_and_others_go_on() {
    let home = Home::new();
    let (served, file) = serving(&home, "get_order", "");
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let listen = |listening: usize| {
        let asked = ask(&served, 7, "subscriptions/listen", filter.clone());
        home.wait_until("the server hears it", || heard(&file, "subscriptions/listen").len() == listening);
        asked
    };
    let (leaves, mut stays) = (listen(1), listen(2));
    let own: Vec<Value> =
        heard(&file, "subscriptions/listen").iter().map(|asked| asked["id"].clone()).collect();
    drop(leaves);
    let cancelled = || heard(&file, "notifications/cancelled");
    home.wait_until("the server is told", || !cancelled().is_empty());
    assert_eq!(cancelled()[0]["params"]["requestId"], own[0]);
    let changed = |own: &Value| {
        let params = json!({"_meta": {SUBSCRIPTION: own}});
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params}).to_string()
    };
    home.file("say", &format!("{}\n{}\n", changed(&own[0]), changed(&own[1])));
    assert_eq!(ask(&served, 8, "tools/list", json!({})).answer().status, 200);
    assert!(stays.head().contains("text/event-stream"));
    let event = next_event(&mut stays);
    assert_eq!(event["params"]["_meta"][SUBSCRIPTION], 7, "{event}");
    assert_eq!(cancelled().len(), 1);
}

#[test]
fn a_read_whose_client_went_away_is_cancelled_and_a_guarded_call_is_not() {
    let home = Home::new();
    let cancelled = |file: &Path| heard(file, "notifications/cancelled");
    let tools = ["get_order", "create_order"];
    let listed = json!({"tools": tools.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))});
    let calls = json!({"get_order": {"until": "until"}, "create_order": {"until": "until"}});
    let plays = json!({"era": "stateless", "pages": [listed.to_string()], "calls": calls});
    let (served, file) = told(&home, &plays, "");
    let call = |tool: &str| ask(&served, 5, "tools/call", json!({"name": tool, "arguments": {}}));
    let asked = call("get_order");
    home.wait_until("it is with the server", || home.work().join("world").exists());
    drop(asked);
    home.wait_until("the server is told", || cancelled(&file).len() == 1);
    let asked = call("create_order");
    home.wait_until("it is with the server", || heard(&file, "tools/call").len() == 2);
    drop(asked);
    let again = call("create_order");
    home.file("until", "");
    let again = again.answer();
    assert_eq!(again.json()["result"]["content"][0]["type"], "text", "{again:?}");
    assert_eq!((cancelled(&file).len(), heard(&file, "tools/call").len()), (1, 2));
}

/// A server of 2025 with resources that can be subscribed to, and a log.
fn with_resources(home: &Home) -> (Served, PathBuf) {
    let can = json!({"resources": {"subscribe": true}, "logging": {}});
    let methods =
        json!({"resources/subscribe": "{}", "resources/unsubscribe": "{}", "logging/setLevel": "{}"});
    told(home, &json!({"capabilities": can, "methods": methods}), "")
}

/// A client of 2025 over HTTP.
struct Client<'s> {
    served: &'s Served,
    headers: String,
}

impl<'s> Client<'s> {
    fn open(served: &'s Served) -> (Client<'s>, Value) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let hello = served.ask("POST", "", &hello.to_string()).answer();
        let named = hello.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let headers = format!("Mcp-Session-Id: {}\r\n", named.expect("a session"));
        (Client { served, headers }, hello.json()["result"].clone())
    }

    fn ask(&self, method: &str, params: Value) -> Response {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.served.ask("POST", &self.headers, &message.to_string()).answer()
    }

    fn notify(&self, method: &str) -> Response {
        let message = json!({"jsonrpc": "2.0", "method": method});
        self.served.ask("POST", &self.headers, &message.to_string()).answer()
    }

    /// A stream, from which news come as soon as this has returned.
    fn listen(&self) -> RawClient {
        let mut asked = self.served.ask("GET", &self.headers, "");
        assert!(asked.head().contains("200 OK"));
        asked
    }
}

fn updated(uri: &str) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}).to_string()
}

#[test]
fn a_changed_listing_reaches_everybody_and_a_log_line_nobody() {
    let home = Home::new();
    let (served, _) = with_resources(&home);
    let ((ann, _), (bob, _)) = (Client::open(&served), Client::open(&served));
    let (mut of_ann, mut of_bob) = (ann.listen(), bob.listen());
    let message = json!({"level": "info", "data": "what ann did"});
    let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": message}).to_string();
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).to_string();
    let said = [log, updated("file:///a"), changed];
    home.file("say", &said.join("\n"));
    ann.ask("ping", json!({}));
    for asked in [&mut of_ann, &mut of_bob] {
        assert_eq!(next_event(asked)["method"], "notifications/tools/list_changed");
    }
}

#[test]
fn what_a_shared_server_cannot_do_is_not_offered_and_not_silently_dropped() {
    let home = Home::new();
    let (served, file) = with_resources(&home);
    let (client, hello) = Client::open(&served);
    let can = json!({"tools": {"listChanged": true, "idempotency": {}}, "resources": {}});
    assert_eq!(hello["capabilities"], can);
    for (method, params) in [
        ("logging/setLevel", json!({"level": "debug"})),
        ("resources/subscribe", json!({"uri": "file:///a"})),
    ] {
        assert_eq!(client.ask(method, params).json()["error"]["code"], -32601, "{method}");
    }
    for (method, status) in [
        ("notifications/initialized", 202),
        ("notifications/roots/list_changed", 202),
        ("notifications/of_its_own", 400),
    ] {
        assert_eq!(client.notify(method).status, status, "{method}");
    }
    client.ask("ping", json!({}));
    let initialized = heard(&file, "notifications/initialized").len();
    let others = [
        "logging/setLevel",
        "resources/subscribe",
        "notifications/roots/list_changed",
        "notifications/of_its_own",
    ];
    assert_eq!((initialized, others.map(|method| heard(&file, method).len())), (1, [0; 4]));
}
