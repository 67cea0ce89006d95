//! What a server of the stateless era owes to HTTP: headers that agree with the body.

use crate::mcp::link::remote::{METHOD, NAME};
use crate::mcp::members::Members;
use crate::mcp::message::{Message, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName};

/// The code for headers that say something else than the body.
pub const HEADER_MISMATCH: i32 = -32020;

/// Why the mirrored headers do not fit this message.
pub fn mirrored(headers: &HeaderMap, message: &Message) -> Option<String> {
    let params = message.params.as_ref().map_or("{}", text);
    let params = Members::parse(params).unwrap_or_default();
    let method = message.method()?;
    let name = match method {
        "tools/call" | "prompts/get" => params.text("name"),
        "resources/read" => params.text("uri"),
        _ => None,
    };
    let differs =
        |header: &HeaderName, said: &str| match headers.get(header).map(|value| read(value.as_bytes())) {
            None => Some(format!("the header {header} is missing")),
            Some(Some(value)) if value == said => None,
            Some(_) => Some(format!("the header {header} does not say what the body says")),
        };
    differs(&METHOD, method).or_else(|| differs(&NAME, &name?))
}

/// A value as it is, or out of its marked base64 form.
fn read(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?.trim();
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}
