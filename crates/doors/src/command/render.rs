//! A command's output as a reply in the ledger, as `data` in an answer, and back on the terminal.

use crate::redact::MayHoldSecret;
use crate::redact::SecretParts;
use crate::redact::names::without_named;
use semel_core::answer::EffectWord;
use semel_core::json::Json;
use semel_core::redact::REDACTED;
pub use semel_core::redact::secret_values;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;

/// What a finished command left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub exit_code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// The logs of a deployment fit; a dump of a database does not, and is not worth replaying.
pub const REPLY_BYTES_MAX: usize = 1024 * 1024;

#[derive(Serialize, Deserialize)]
struct Head {
    exit_code: i32,
    stdout_bytes: usize,
}

impl Output {
    /// One line of JSON, then both streams as they were.
    pub fn encode(&self) -> Vec<u8> {
        let head = Head { exit_code: self.exit_code, stdout_bytes: self.stdout.len() };
        let mut bytes = serde_json::to_vec(&head).expect("a head is plain data");
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.stdout);
        bytes.extend_from_slice(&self.stderr);
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<Output> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let head: Head = serde_json::from_slice(&bytes[..end]).ok()?;
        let streams = &bytes[end + 1..];
        let (stdout, stderr) = streams.split_at_checked(head.stdout_bytes)?;
        Some(Output { exit_code: head.exit_code, stdout: stdout.to_vec(), stderr: stderr.to_vec() })
    }

    /// A reply that a person or a probe brought: it stands for the command's standard output.
    pub fn of_stdout(stdout: Vec<u8>) -> Output {
        Output { exit_code: 0, stdout, stderr: Vec::new() }
    }

    pub fn data(&self) -> Value {
        let mut data = json!({"exit_code": self.exit_code});
        put_text(&mut data, "stdout", &self.stdout);
        put_text(&mut data, "stderr", &self.stderr);
        data
    }

    /// Takes secrets out of what will be kept: values that the arguments marked as secret, headers and JSON members
    /// whose names say so.
    pub fn scrubbed(&self, secrets: &[String], parts: &SecretParts) -> Result<Output, MayHoldSecret> {
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
        Ok(Output { exit_code: self.exit_code, stdout: scrub(&stdout), stderr: scrub(&stderr) })
    }
}

/// Text as text; bytes that are none as base 64 under another name, so that nobody mistakes one for the other.
fn put_text(data: &mut Value, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => data[name] = Value::from(text),
        Err(_) => data[format!("{name}_base64")] = Value::from(base64(bytes)),
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = ALPHABET[(group >> (18 - 6 * place) & 63) as usize] as char;
            text.push(if place <= chunk.len() { digit } else { '=' });
        }
    }
    text
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

/// What a command answered, as rules see it: its output as JSON, else an object with the output as `text`.
pub fn reply(stdout: &[u8]) -> Json {
    let stdout = stdout.trim_ascii();
    semel_core::json::parse_bytes(stdout)
        .unwrap_or_else(|_| Json::object([("text", Json::str(&String::from_utf8_lossy(stdout)))]))
}

/// The output without what a rule calls secret of its reply.
fn without_parts<'a>(stdout: &'a [u8], parts: &SecretParts) -> Result<Cow<'a, [u8]>, MayHoldSecret> {
    let Some(mut kept) = parts.out_of_text(stdout)? else { return Ok(Cow::Borrowed(stdout)) };
    if stdout.ends_with(b"\n") {
        kept.push('\n');
    }
    Ok(Cow::Owned(kept.into_bytes()))
}

/// What the tool itself says about its effect, if its output is an object that says so.
pub fn said(stdout: &[u8]) -> Said {
    let text = std::str::from_utf8(stdout).unwrap_or_default().trim();
    if !text.starts_with('{') || text.len() > SAID_BYTES_MAX {
        return Said::default();
    }
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let status = value["status"].as_str().unwrap_or_default().to_ascii_lowercase();
    Said {
        effect: value["effect"].as_str().and_then(EffectWord::parse),
        only_accepted: matches!(status.as_str(), "queued" | "accepted" | "pending" | "scheduled"),
    }
}

/// A tool's own account is short; longer output is data.
const SAID_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Said {
    pub effect: Option<EffectWord>,
    /// It took it and has not done it yet.
    pub only_accepted: bool,
}

/// The door's own table: what a command with this verb does to the world.
pub fn word_by_verb(argv: &[String]) -> EffectWord {
    let verbs = argv.iter().take(4).map(|word| word.rsplit('/').next().unwrap_or(word));
    for verb in verbs {
        match verb {
            "create" | "add" | "new" | "mkdir" | "touch" | "init" => return EffectWord::Created,
            "delete" | "rm" | "remove" | "destroy" | "rmdir" | "uninstall" => return EffectWord::Deleted,
            "send" | "mail" | "sendmail" | "notify" | "publish" => return EffectWord::Sent,
            _ => {}
        }
    }
    EffectWord::Updated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_reads_back_whatever_bytes_it_holds() {
        let output = Output { exit_code: 3, stdout: b"a\n\xff\0b".to_vec(), stderr: b"\n".to_vec() };
        assert_eq!(Output::decode(&output.encode()), Some(output));
        assert_eq!(Output::decode(b"{\"exit_code\":0,\"stdout_bytes\":9}\nab"), None);
        assert_eq!(Output::decode(b"nonsense"), None);
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_in_base_64() {
        let output = Output { exit_code: 0, stdout: b"\xff\xfe\xfd\xfc".to_vec(), stderr: Vec::new() };
        assert_eq!(output.data()["stdout_base64"], "//79/A==");
    }

    #[test]
    fn secrets_are_taken_out_of_what_is_kept() {
        let none = SecretParts::default();
        let output = Output::of_stdout(b"> Authorization: Bearer abc\nyour key is hunter22\n".to_vec());
        let clean = output.scrubbed(&["hunter22".into()], &none).unwrap();
        let text = String::from_utf8(clean.stdout).expect("text stays text");
        assert_eq!(text, "> Authorization: [redacted]\nyour key is [redacted]\n");
        let json = Output::of_stdout(br#"{"id": 1, "access_token": "abcdef"}"#.to_vec())
            .scrubbed(&[], &none)
            .unwrap();
        assert!(!String::from_utf8_lossy(&json.stdout).contains("abcdef"));
        let plain = Output::of_stdout(br#"{ "id": 1 }"#.to_vec());
        assert_eq!(plain.scrubbed(&[], &none).as_ref(), Ok(&plain));
    }
}
