//! Replies as the ledger keeps them, whichever door wrote them.
pub mod account;
pub mod command;
pub mod http;
pub mod tool;

pub use command::CommandOutput;
pub use http::HttpReply;
pub use semel::call::reply::{REPLY_BYTES_MAX, encode_json};

use crate::redact::{MayHoldSecret, SecretParts, Secrets};
use semel_core::json::{self, Json};
use semel_core::policy::rule::Rule;
use serde_json::value::RawValue;

/// A reply of any kind as JSON to the digit.
pub fn to_json(reply: &[u8]) -> Box<RawValue> {
    let raw = |text: String| RawValue::from_string(text).ok();
    let output = || CommandOutput::decode(reply).and_then(|output| raw(output.data().to_string()));
    let answer = || raw(HttpReply::decode(reply.to_vec())?.data());
    let exact = || raw(String::from_utf8(reply.to_vec()).ok()?);
    let words = || raw(serde_json::json!({"text": String::from_utf8_lossy(reply)}).to_string());
    output().or_else(answer).or_else(exact).or_else(words).unwrap_or_default()
}

/// A reply that a person has, in the form in which the action's own replies are kept.
pub fn encode_supplied(action: &str, rule: &Rule, reply: Vec<u8>) -> Result<Vec<u8>, String> {
    let bytes = match action.split(':').next() {
        // A person's reply has no head, and is the body of a reply over HTTP.
        Some("cli" | "http") => {
            let output = CommandOutput::of_stdout(reply).scrubbed(&[], &SecretParts::of(rule));
            output.map_err(|MayHoldSecret| "it holds too many secrets to be kept".to_owned())?.encode()
        }
        Some("mcp") => {
            let text = || Json::String(String::from_utf8_lossy(&reply).into_owned());
            let value = json::parse_bytes(reply.trim_ascii()).unwrap_or_else(|_| text());
            tool::encode(&value, &Secrets::of(&Json::Null, rule))
        }
        Some("fn") => encode_json(&reply, rule)?,
        _ => return Err("this kind of action takes no reply here".to_owned()),
    };
    match bytes.len() > REPLY_BYTES_MAX {
        true => Err(format!("a reply of more than {REPLY_BYTES_MAX} bytes is not kept")),
        false => Ok(bytes),
    }
}
