//! Tasks over HTTP: their call is answered once the client has learnt how they ended.

use super::served::{Served, TOKEN};
use crate::home::Home;
use crate::mcp::peers::script;
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
}

impl Client<'_> {
    fn of(served: &Served) -> Client<'_> {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let kind = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        let answer = served.ask("POST", kind, &hello.to_string()).answer();
        let session = answer.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let session = session.unwrap_or_else(|| panic!("no session: {answer:?}")).trim();
        Client { served, headers: format!("{kind}Mcp-Session-Id: {session}\r\n") }
    }

    fn ask(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.served.ask("POST", &self.headers, &message.to_string()).answer().json()["result"].take()
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
