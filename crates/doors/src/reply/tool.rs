//! A reply in the form of a tool's result.

use crate::redact::{MayHoldSecret, Secrets};
use crate::wire::members::quoted;
use semel_core::json::{self, Json};
use semel_core::redact::REDACTED;

/// A reply that a probe or a person supplied, in the form of a tool's result.
pub fn encode(value: &Json, secrets: &Secrets) -> Vec<u8> {
    let clean = secrets.out_of_reply(value);
    let json = clean.unwrap_or_else(|MayHoldSecret| quoted(REDACTED));
    let value = json::parse(&json).unwrap_or(Json::Null);
    let text = value.as_str().map_or_else(|| json.clone(), str::to_owned);
    let structured = match value {
        Json::Object(_) => format!(r#","structuredContent":{json}"#),
        _ => String::new(),
    };
    format!(r#"{{"result":{{"content":[{{"type":"text","text":{}}}]{structured}}}}}"#, quoted(&text))
        .into_bytes()
}
