//! A server on pipes, of the stateless era, offered over HTTP.

use super::served::Served;
use crate::home::Home;
use crate::mcp::peers::script;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Semel before a server that plays by `told`, and the file with all that it hears.
pub fn serving(home: &Home, told: &Value, policy: &str) -> (Served, PathBuf) {
    home.file("told.json", &told.to_string());
    let (world, heard) = (home.work().join("world"), home.work().join("heard"));
    let command = json!(["python3", "-S", script("told.py")]);
    let env = format!("{{ SEMEL_WORLD = {world:?}, SEMEL_HEARD = {heard:?} }}");
    (Served::start(home, &format!("[mcp.bank]\ncommand = {command}\nenv = {env}\n{policy}")), heard)
}

pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

pub fn headers(method: &str, name: &str) -> String {
    format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}"
    )
}
