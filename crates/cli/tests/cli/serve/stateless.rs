//! A server on pipes, of the stateless era, offered over HTTP.

use super::served::Served;
use crate::home::Home;
use crate::mcp::peers::script;
use semel_testkit::http::{RawClient, Response};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Semel before a server with this tool, whose answer waits for a file `until`, and the file with all that it hears.
pub fn serving(home: &Home, tool: &str, policy: &str) -> (Served, PathBuf) {
    let tools = json!([{"name": tool, "inputSchema": {"type": "object"}}]);
    let calls = json!({tool: {"until": home.work().join("until")}});
    let pages = [json!({"tools": tools}).to_string()];
    let silent = ["subscriptions/listen"];
    told(home, &json!({"era": "stateless", "pages": pages, "calls": calls, "silent": silent}), policy)
}

/// Semel before a server that plays by this, and the file with all that it hears.
pub fn told(home: &Home, told: &Value, policy: &str) -> (Served, PathBuf) {
    let section = section(home, told);
    (Served::start(home, &format!("{section}{policy}")), home.work().join("heard"))
}

/// The part of a policy that offers a server that plays by this.
pub fn section(home: &Home, told: &Value) -> String {
    home.file("told.json", &told.to_string());
    let (world, heard) = (home.work().join("world"), home.work().join("heard"));
    let command = json!(["python3", "-S", script("told.py")]);
    let env = format!("{{ SEMEL_WORLD = {world:?}, SEMEL_HEARD = {heard:?} }}");
    format!("[mcp.bank]\ncommand = {command}\nenv = {env}\n")
}

pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    })
}

/// A request of this era, with what `params` says beside its `_meta`.
pub fn ask(served: &Served, id: u64, method: &str, params: Value) -> RawClient {
    asking(served, id, method, params, "")
}

/// The same with further headers.
pub fn ask_saying(served: &Served, method: &str, params: Value, further: &str) -> RawClient {
    asking(served, 5, method, params, further)
}

fn asking(served: &Served, id: u64, method: &str, mut params: Value, further: &str) -> RawClient {
    let name = params["name"].as_str().map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    let mut whole = meta();
    if let Some(more) = params["_meta"].as_object() {
        more.iter().for_each(|(name, value)| whole[name] = value.clone());
    }
    params["_meta"] = whole;
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    served.ask("POST", &headers(method, &(name + further)), &message.to_string())
}

fn headers(method: &str, name: &str) -> String {
    format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}"
    )
}

/// A call of the tool, which waits.
pub fn call(served: &Served, tool: &str) -> RawClient {
    call_with(served, tool, json!({}), json!({}))
}

/// The same in a run of this name.
pub fn call_in_run(served: &Served, tool: &str, arguments: Value, run: &str) -> RawClient {
    call_with(served, tool, arguments, json!({"dev.semel/run-id": run}))
}

fn call_with(served: &Served, tool: &str, arguments: Value, meta: Value) -> RawClient {
    ask(served, 5, "tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}))
}

/// The word that nobody waits for it any more.
pub fn cancel(served: &Served) -> Response {
    let method = "notifications/cancelled";
    let params = json!({"requestId": 5, "_meta": meta()});
    let cancel = json!({"jsonrpc": "2.0", "method": method, "params": params});
    served.ask("POST", &headers(method, ""), &cancel.to_string()).answer()
}
