//! The world as an MCP server on standard input and output.

use super::world::{ToolReply, World, wait_for_slow_answer};
use super::world_tools::tools_of;
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Serves until the input ends.
pub fn serve(world: &World, input: impl BufRead, output: impl Write + Send + 'static) -> io::Result<()> {
    let output = Arc::new(Mutex::new(output));
    for line in input.lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else { continue };
        let answer = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "world", "version": env!("CARGO_PKG_VERSION") },
            }),
            "tools/list" => json!({ "tools": tools_of(world) }),
            "tools/call" => match call(world, &message["params"])? {
                ToolReply::Success(words) => result(&words, false),
                ToolReply::Error(_, words) => result(&words, true),
                ToolReply::Slow(words) => {
                    // Other calls are answered meanwhile.
                    let (output, answer) = (Arc::clone(&output), answer(result(&words, false)));
                    std::thread::spawn(move || {
                        wait_for_slow_answer();
                        write(&output, &answer)
                    });
                    continue;
                }
                ToolReply::Lost => continue,
                ToolReply::Crash => std::process::exit(1),
            },
            _ => json!({}),
        };
        write(&output, &answer(result))?;
    }
    Ok(())
}

fn call(world: &World, params: &Value) -> io::Result<ToolReply> {
    world.call(params["name"].as_str().unwrap_or_default(), &params["arguments"])
}

fn result(words: &str, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": words}], "isError": is_error})
}

fn write(output: &Mutex<impl Write>, message: &Value) -> io::Result<()> {
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(output, "{message}")?;
    output.flush()
}
