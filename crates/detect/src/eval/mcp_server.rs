//! The world as an MCP server on standard input and output, and as a command.

use super::world::{ToolReply, World, wait_for_late_effects};
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};

/// The tools of the world: each effect, and the read that shows it.
const TOOLS: [(&str, &str); 5] = [
    ("create_charge", "list_charges"),
    ("send_email", "list_emails"),
    ("book_room", "list_bookings"),
    ("create_issue", "list_issues"),
    ("deploy", "list_deployments"),
];

pub fn read_tool(tool: &str) -> &'static str {
    TOOLS.iter().find(|(effect, _)| *effect == tool).map_or("list_effects", |(_, read)| read)
}

/// Serves until the input ends.
pub fn serve(world: &World, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    for line in input.lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else { continue };
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "world", "version": env!("CARGO_PKG_VERSION") },
            }),
            "tools/list" => json!({ "tools": tools() }),
            "tools/call" => match call(world, &message["params"])? {
                Some(result) => result,
                None => continue,
            },
            _ => json!({}),
        };
        writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        output.flush()?;
    }
    Ok(())
}

/// `None`: the answer is lost.
fn call(world: &World, params: &Value) -> io::Result<Option<Value>> {
    let tool = params["name"].as_str().unwrap_or_default();
    let text = |text: String, is_error: bool| json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    Ok(match world.call(tool, &params["arguments"])? {
        ToolReply::Success(value) => Some(text(value.to_string(), false)),
        ToolReply::Error(_, words) => Some(text(words.to_owned(), true)),
        ToolReply::Lost => None,
        ToolReply::Crash => std::process::exit(1),
    })
}

fn tools() -> Vec<Value> {
    let schema = json!({"type": "object", "additionalProperties": true});
    let effects = TOOLS
        .iter()
        .map(|(tool, _)| json!({"name": tool, "description": "An effect", "inputSchema": schema}));
    let reads = TOOLS.iter().map(|(_, read)| {
        json!({"name": read, "description": "Lists effects", "inputSchema": schema, "annotations": {"readOnlyHint": true}})
    });
    effects.chain(reads).collect()
}

/// Carries out one call as a command, and gives its exit code.
pub fn run_command(
    world: &World,
    tool: &str,
    args: &Value,
    mut output: impl Write,
    mut errors: impl Write,
) -> io::Result<u8> {
    Ok(match world.call(tool, args)? {
        ToolReply::Success(value) => {
            writeln!(output, "{value}")?;
            0
        }
        ToolReply::Error(_, words) => {
            writeln!(errors, "{words}")?;
            1
        }
        ToolReply::Lost => {
            writeln!(errors, "connection reset by peer")?;
            wait_for_late_effects();
            1
        }
        ToolReply::Crash => std::process::abort(),
    })
}
