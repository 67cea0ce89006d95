//! Tasks over HTTP: their call is answered once the client has learnt how they ended.

use super::served::{Served, TOKEN};
use crate::api::client::token;
use crate::home::Home;
use crate::mcp::peers::script;
use semel_testkit::http::Response;
use serde_json::{Value, json};

const POLICY: &str = "\n[[rule]]\nmatch = \"mcp:bank/create_order\"\nclass = \"act\"\nwait = \"30ms\"\n";

/// A server on stdio whose tool answers with a task, which ends when there is a file `until`.
fn told(home: &Home, policy: &str) -> Served {
    let page = json!({"tools": [{"name": "create_order", "inputSchema": {"type": "object"}}]}).to_string();
    let calls = json!({"create_order": {"task": "2025", "until": home.work().join("until")}});
    home.file("told.json", &json!({"pages": [page], "calls": calls}).to_string());
    let world = home.work().join("world");
    let env = format!("{{ SEMEL_WORLD = {:?}, SEMEL_HEARD = {:?} }}", world, home.work().join("heard"));
    let command = json!(["python3", "-S", script("told.py")]);
    Served::start(home, &format!("{policy}[mcp.bank]\ncommand = {command}\nenv = {env}\n{POLICY}"))
}

struct Client<'a> {
    served: &'a Served,
    headers: String,
    token: String,
}

impl Client<'_> {
    fn of(served: &Served) -> Client<'_> {
        Client::with(served, TOKEN)
    }

    fn with<'a>(served: &'a Served, token: &str) -> Client<'a> {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let kind = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        let client = Client { served, headers: kind.to_owned(), token: token.to_owned() };
        let answer = client.post(&hello);
        let session = answer.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let session = session.unwrap_or_else(|| panic!("no session: {answer:?}")).trim();
        Client { headers: format!("{kind}Mcp-Session-Id: {session}\r\n"), ..client }
    }

    fn post(&self, message: &Value) -> Response {
        let headers = format!("Semel-Token: {}\r\n{}", self.token, self.headers);
        self.served.ask_raw("POST /mcp/bank HTTP/1.1", &headers, &message.to_string()).answer()
    }

    fn ask(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(&message).json()["result"].take()
    }

    fn order(&self) -> Value {
        self.ask("tools/call", json!({"name": "create_order", "arguments": {}, "task": {"ttl": 60000}}))
    }
}

#[test]
fn a_task_is_delivered_once_its_client_has_learnt_its_end() {
    for (remote, learns) in [(false, false), (false, true), (true, false), (true, true)] {
        let (inner_home, outer_home) = (Home::new(), Home::new());
        let inner = told(&inner_home, if remote { "mode = \"observe\"\n" } else { "" });
        let before = format!(
            "[mcp.bank]\nurl = \"http://{}/mcp/bank\"\nheaders = {{ Authorization = \"Bearer {TOKEN}\" }}\n{POLICY}",
            inner.address
        );
        let outer = remote.then(|| Served::start(&outer_home, &before));
        let home = if remote { &outer_home } else { &inner_home };
        let client = Client::of(outer.as_ref().unwrap_or(&inner));
        let task = client.order()["task"]["taskId"].take();
        assert!(task.is_string(), "{task}");
        inner_home.file("until", "");
        home.wait_until("the task's end is recorded", || {
            home.json(["ledger", "list"])["items"][0]["state"] == "applied"
        });
        if learns {
            assert_eq!(client.ask("tasks/get", json!({"taskId": task}))["status"], "completed");
            assert!(client.ask("tasks/result", json!({"taskId": task}))["content"].is_array());
        }
        let next = client.order();
        let effects = std::fs::read_to_string(inner_home.work().join("world")).unwrap_or_default();
        assert_eq!(effects.lines().count(), if learns { 2 } else { 1 }, "remote: {remote}, {next}");
        assert_eq!(next["task"]["taskId"] == task, !learns, "remote: {remote}, {next}");
    }
}

/// One process serves them all, and takes them for one.
#[test]
fn a_task_is_its_owners_alone() {
    let home = Home::new();
    let served = told(&home, "");
    let [ann, bob] = ["ann", "bob"].map(|name| token(&home, "agent", "local", name));
    let (ann, bob, ann_again) =
        (Client::with(&served, &ann), Client::with(&served, &bob), Client::with(&served, &ann));
    let task = ann.order()["task"]["taskId"].take();
    assert!(task.is_string(), "{task}");
    // What is open is its owner's to know of on every connection.
    let told = |client: &Client<'_>| {
        client.ask("tools/call", json!({"name": "semel_ledger", "arguments": {}}))["content"][0]["text"]
            .to_string()
    };
    assert!(told(&ann_again).contains("still running"), "{}", told(&ann_again));
    assert!(told(&bob).contains("Nothing was done through this server"), "{}", told(&bob));
    home.file("until", "");
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert!(bob.ask(method, json!({"taskId": task})).is_null(), "{method}");
    }
    assert_eq!(ann.ask("tasks/get", json!({"taskId": task}))["status"], "completed");
    let heard = std::fs::read_to_string(home.work().join("heard")).expect("it heard something");
    assert!(!heard.contains("tasks/cancel"), "{heard}");
}
