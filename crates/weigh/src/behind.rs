//! What stands behind semel while it is weighed: a tool and an API that do nothing.

use semel_weigh::Result;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// An MCP server on stdio with one tool, which says that it worked.
pub fn tool() -> Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "weigh", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": [{
                "name": "create_order",
                "description": "Creates an order.",
                "inputSchema": {"type": "object", "properties": {"order": {"type": "string"}}},
            }]}),
            Some("tools/call") => json!({"content": [{"type": "text", "text": "created: or_1"}]}),
            _ => json!({}),
        };
        writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        output.flush()?;
    }
    Ok(())
}

/// An HTTP API that says `created` to everything, until it is killed. Prints its address first.
pub fn api() -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("{}", listener.local_addr()?);
    for stream in listener.incoming() {
        let stream = stream?;
        std::thread::spawn(move || answer_all(stream));
    }
    Ok(())
}

const CREATED: &str =
    "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"id\": \"or_1\"}";

fn answer_all(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut writer, mut reader) = (stream.try_clone()?, BufReader::new(stream));
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(given) = line.strip_prefix("content-length:") {
                length = given.trim().parse().unwrap_or(0);
            }
            if line.is_empty() {
                break;
            }
        }
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink())?;
        writer.write_all(CREATED.as_bytes())?;
    }
}
