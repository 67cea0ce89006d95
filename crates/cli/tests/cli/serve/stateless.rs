//! A server on pipes, of the stateless era, offered over HTTP.

use super::served::{Answer, Asked, Served};
use crate::home::Home;
use crate::mcp::peers::script;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Semel before a server with this tool, whose answer waits for a file `until`, and the file with all that it hears.
pub fn serving(home: &Home, tool: &str, policy: &str) -> (Served, PathBuf) {
    let tools = json!([{"name": tool, "inputSchema": {"type": "object"}}]);
    let calls = json!({tool: {"until": home.work().join("until")}});
    let told = json!({"era": "stateless", "pages": [json!({"tools": tools}).to_string()], "calls": calls});
    home.file("told.json", &told.to_string());
    let (world, heard) = (home.work().join("world"), home.work().join("heard"));
    let command = json!(["python3", "-S", script("told.py")]);
    let env = format!("{{ SEMEL_WORLD = {world:?}, SEMEL_HEARD = {heard:?} }}");
    (Served::start(home, &format!("[mcp.bank]\ncommand = {command}\nenv = {env}\n{policy}")), heard)
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn headers(method: &str, name: &str) -> String {
    format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}"
    )
}

/// A call of the tool, which waits.
pub fn call(served: &Served, tool: &str) -> Asked {
    call_with(served, tool, json!({}), meta())
}

/// The same in a run of this name.
pub fn call_in_run(served: &Served, tool: &str, arguments: Value, run: &str) -> Asked {
    let mut meta = meta();
    meta["dev.semel/run-id"] = run.into();
    call_with(served, tool, arguments, meta)
}

fn call_with(served: &Served, tool: &str, arguments: Value, meta: Value) -> Asked {
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params});
    served.ask("POST", &headers("tools/call", &format!("Mcp-Name: {tool}\r\n")), &call.to_string())
}

/// The word that nobody waits for it any more.
pub fn cancel(served: &Served) -> Answer {
    let method = "notifications/cancelled";
    let params = json!({"requestId": 5, "_meta": meta()});
    let cancel = json!({"jsonrpc": "2.0", "method": method, "params": params});
    served.ask("POST", &headers(method, ""), &cancel.to_string()).answer()
}
