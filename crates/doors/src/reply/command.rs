//! A command's output as a reply in the ledger, and back.

use crate::redact::MayHoldSecret;
use crate::redact::SecretParts;
use crate::redact::names::without_named;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use semel_core::json::Json;
use semel_core::redact::REDACTED;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;

/// Exit code and output of a finished command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    pub exit_code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct OutputHead {
    exit_code: i32,
    stdout_bytes: usize,
}

impl CommandOutput {
    /// One line of JSON, then both streams as they were.
    pub fn encode(&self) -> Vec<u8> {
        let head = OutputHead { exit_code: self.exit_code, stdout_bytes: self.stdout.len() };
        let mut bytes = serde_json::to_vec(&head).expect("a head is plain data");
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.stdout);
        bytes.extend_from_slice(&self.stderr);
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<CommandOutput> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let head: OutputHead = serde_json::from_slice(&bytes[..end]).ok()?;
        let streams = &bytes[end + 1..];
        let (stdout, stderr) = streams.split_at_checked(head.stdout_bytes)?;
        Some(CommandOutput { exit_code: head.exit_code, stdout: stdout.to_vec(), stderr: stderr.to_vec() })
    }

    /// A reply that a person or a probe brought: it stands for the command's standard output.
    pub fn of_stdout(stdout: Vec<u8>) -> CommandOutput {
        CommandOutput { exit_code: 0, stdout, stderr: Vec::new() }
    }

    pub fn data(&self) -> Value {
        let mut data = json!({"exit_code": self.exit_code});
        put_text(&mut data, "stdout", &self.stdout);
        put_text(&mut data, "stderr", &self.stderr);
        data
    }

    /// Takes secrets out of what will be kept: values that the arguments marked as secret, headers and JSON members
    /// whose names say so.
    pub fn scrubbed(&self, secrets: &[String], parts: &SecretParts) -> Result<CommandOutput, MayHoldSecret> {
        let scrub = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => scrub_text(text, secrets).into_bytes(),
            // Bytes that are no text are left as they are, and the lines of text among them are not.
            Err(_) => {
                let lines =
                    bytes.split_inclusive(|byte| *byte == b'\n').map(|line| {
                        match std::str::from_utf8(line) {
                            Ok(text) => scrub_text(text, secrets).into_bytes(),
                            Err(_) => line.to_vec(),
                        }
                    });
                lines.collect::<Vec<_>>().concat()
            }
        };
        let stdout = without_parts(&self.stdout, parts)?;
        let stderr = parts.out_of_beside(&self.stderr);
        Ok(CommandOutput { exit_code: self.exit_code, stdout: scrub(&stdout), stderr: scrub(&stderr) })
    }
}

/// Text as text; bytes that are none as base 64 under another name, so that nobody mistakes one for the other.
fn put_text(data: &mut Value, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => data[name] = Value::from(text),
        Err(_) => data[format!("{name}_base64")] = Value::from(STANDARD.encode(bytes)),
    }
}

/// Header names whose values are never written.
const SECRET_HEADERS: &[&str] = &[
    "authorization:",
    "proxy-authorization:",
    "cookie:",
    "set-cookie:",
    "x-api-key:",
    "api-key:",
    "x-auth-token:",
];

fn scrub_text(text: &str, secrets: &[String]) -> String {
    let mut scrubbed = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let lower = line.to_ascii_lowercase();
        match SECRET_HEADERS.iter().find_map(|name| lower.find(name).map(|at| at + name.len())) {
            Some(end) => {
                scrubbed.push_str(&line[..end]);
                scrubbed.push(' ');
                scrubbed.push_str(REDACTED);
                if line.ends_with('\n') {
                    scrubbed.push('\n');
                }
            }
            None => scrubbed.push_str(&scrub_json(line).unwrap_or_else(|| line.to_owned())),
        }
    }
    for secret in secrets {
        scrubbed = scrubbed.replace(secret.as_str(), REDACTED);
    }
    let scrubbed = scrub_json(&scrubbed).unwrap_or(scrubbed);
    // Members of JSON inside other text, or of JSON that is none by the letter.
    without_named(&scrubbed).unwrap_or(scrubbed)
}

/// JSON without its secrets; `None` if it is none or has none, since a replay should otherwise be the same to the byte.
fn scrub_json(text: &str) -> Option<String> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let json @ (Json::Object(_) | Json::Array(_)) = semel_core::json::parse(text.trim()).ok()? else {
        return None;
    };
    match semel_core::redact::redacted(&json, &[]) {
        Cow::Owned(clean) if clean != json => Some(format!("{}\n", clean.canonical())),
        _ => None,
    }
}

/// The output without what a rule calls secret of its reply.
fn without_parts<'a>(stdout: &'a [u8], parts: &SecretParts) -> Result<Cow<'a, [u8]>, MayHoldSecret> {
    let Some(mut kept) = parts.out_of_text(stdout)? else { return Ok(Cow::Borrowed(stdout)) };
    if stdout.ends_with(b"\n") {
        kept.push('\n');
    }
    Ok(Cow::Owned(kept.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_reads_back_whatever_bytes_it_holds() {
        let output = CommandOutput { exit_code: 3, stdout: b"a\n\xff\0b".to_vec(), stderr: b"\n".to_vec() };
        assert_eq!(CommandOutput::decode(&output.encode()), Some(output));
        assert_eq!(CommandOutput::decode(b"{\"exit_code\":0,\"stdout_bytes\":9}\nab"), None);
        assert_eq!(CommandOutput::decode(b"nonsense"), None);
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_in_base_64() {
        let output = CommandOutput { exit_code: 0, stdout: b"\xff\xfe\xfd\xfc".to_vec(), stderr: Vec::new() };
        assert_eq!(output.data()["stdout_base64"], "//79/A==");
    }

    #[test]
    fn secrets_are_taken_out_of_what_is_kept() {
        let none = SecretParts::default();
        let output =
            CommandOutput::of_stdout(b"> Authorization: Bearer abc\nyour key is hunter22\n".to_vec());
        let clean = output.scrubbed(&["hunter22".into()], &none).unwrap();
        let text = String::from_utf8(clean.stdout).expect("text stays text");
        assert_eq!(text, "> Authorization: [redacted]\nyour key is [redacted]\n");
        let json = CommandOutput::of_stdout(br#"{"id": 1, "access_token": "abcdef"}"#.to_vec())
            .scrubbed(&[], &none)
            .unwrap();
        assert!(!String::from_utf8_lossy(&json.stdout).contains("abcdef"));
        let plain = CommandOutput::of_stdout(br#"{ "id": 1 }"#.to_vec());
        assert_eq!(plain.scrubbed(&[], &none).as_ref(), Ok(&plain));
    }
}
