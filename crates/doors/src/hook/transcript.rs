//! The client's own record of a session: how a tool call ended that no event told of.

use super::client::Client;
use super::ending::ClientReport;
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// A call that began lately stands near the end.
const BYTES_READ_MAX: u64 = 8 * 1024 * 1024;

/// The end of a call, if the record has one that proves something.
pub(super) fn ending(client: Client, path: &Path, call_id: &str) -> Option<ClientReport> {
    let text = end_of(path)?;
    // A line that names the call is one of few.
    let mut lines = text.lines().rev().filter(|line| line.contains(call_id));
    lines.find_map(|line| {
        let entry: Value = serde_json::from_str(line).ok()?;
        match client {
            Client::ClaudeCode => of_claude_code(&entry, call_id),
            Client::Codex => of_codex(&entry, call_id),
            Client::Gemini | Client::OpenCode | Client::Qwen => None,
        }
    })
}

fn end_of(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(BYTES_READ_MAX))).ok()?;
    let mut read = Vec::new();
    file.take(BYTES_READ_MAX).read_to_end(&mut read).ok()?;
    Some(String::from_utf8_lossy(&read).into_owned())
}

/// `Exit code 3` in a tool's result. "Rejected by the user" is said of commands that ran, too, and proves nothing.
fn of_claude_code(entry: &Value, call_id: &str) -> Option<ClientReport> {
    let parts = entry["message"]["content"].as_array()?;
    let result = parts.iter().find(|part| part["type"] == "tool_result" && part["tool_use_id"] == call_id)?;
    let text = match &result["content"] {
        Value::String(text) => text.clone(),
        parts => parts.as_array()?.iter().filter_map(|part| part["text"].as_str()).collect(),
    };
    report(&text, "Exit code ")
}

/// `Process exited with code 3` in the output of a call.
fn of_codex(entry: &Value, call_id: &str) -> Option<ClientReport> {
    let item = &entry["payload"];
    if item["call_id"] != call_id {
        return None;
    }
    let text = match &item["output"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    report(&text, "Process exited with code ").or_else(|| report(&text, "Exit code: "))
}

fn report(text: &str, before: &str) -> Option<ClientReport> {
    let behind = text.split_once(before)?.1;
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    let exit_code = digits.parse().ok()?;
    Some(ClientReport { exit_code, stdout: text.to_owned(), stderr: String::new() })
}
