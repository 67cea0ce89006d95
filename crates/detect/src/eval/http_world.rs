//! The world behind HTTP.

use super::world::{ToolReply, World, wait_for_slow_answer};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// The world behind HTTP, one directory for each scenario: `/DIRECTORY/TOOL`.
pub fn serve(listener: TcpListener, worlds: PathBuf) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let worlds = worlds.clone();
            std::thread::spawn(move || answer(stream, &worlds));
        }
    });
}

fn answer(mut stream: TcpStream, worlds: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let target = line.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (world, tool) = path.split_once('/').unwrap_or((path, ""));
    // A name with a slash or dots would leave the directory.
    let is_plain = !world.is_empty() && world.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_plain || !worlds.join(world).is_dir() {
        return write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    // Another method than POST is part of the tool's name, and so is a query.
    let (tool, args) = match line.split(' ').next().unwrap_or_default() {
        "GET" => (tool.to_owned(), asked(query)),
        method => {
            let method = if method == "POST" { String::new() } else { format!("{method} /") };
            let query = if query.is_empty() { String::new() } else { format!("?{query}") };
            (format!("{method}{tool}{query}"), serde_json::from_slice(&body).unwrap_or(json!({})))
        }
    };
    let (status, answer) = match World::open(&worlds.join(world)).call(&tool, &args)? {
        ToolReply::Success(text) => (200, text),
        ToolReply::Slow(text) => {
            wait_for_slow_answer();
            (200, text)
        }
        ToolReply::Error(status, words) => (status, json!({ "error": words }).to_string()),
        ToolReply::Lost | ToolReply::Crash => return Ok(()),
    };
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    )
}

/// The arguments of a query. Numbers are numbers again.
fn asked(query: &str) -> Value {
    let decoded = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            if byte == b'%' {
                let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                let digits = std::str::from_utf8(&digits).unwrap_or("00");
                bytes.push(u8::from_str_radix(digits, 16).unwrap_or(b'?'));
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = |text: String| text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number));
    Value::Object(pairs.map(|(name, text)| (name.to_owned(), value(decoded(text)))).collect())
}
