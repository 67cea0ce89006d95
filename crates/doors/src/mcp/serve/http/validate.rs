//! The check that a server of the stateless era owes to HTTP: headers that agree with the body.

use crate::mcp::link::remote::headers::{METHOD, NAME};
use crate::mcp::message::{Message, text};
use crate::wire::members::Members;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
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

/// Why a body cannot be taken for what semel would read: another server might decode it to another message.
pub fn body(headers: &HeaderMap) -> Option<&'static str> {
    let text =
        |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?").to_ascii_lowercase());
    if headers.get_all(CONTENT_TYPE).iter().count() > 1 {
        return Some("there is more than one Content-Type");
    }
    let kind = text(CONTENT_TYPE).unwrap_or_default();
    let mut parts = kind.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.is_empty() || kind == "application/json");
    let plain = parts
        .all(|part| matches!(part.replace(['"', ' '], "").as_str(), "" | "charset=utf-8" | "charset=utf8"));
    if !json || !plain {
        return Some("the body must be application/json in UTF-8");
    }
    let encoded = text(CONTENT_ENCODING).is_some_and(|encoding| !matches!(encoding.trim(), "" | "identity"));
    encoded.then_some("the body must not be encoded")
}

/// A value as it is, or out of its marked base64 form.
fn read(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?.trim();
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_body_that_another_reader_could_decode_otherwise_is_refused() {
        let of = |kind: &'static str, encoding: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            if let Some(encoding) = encoding {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
            }
            body(&headers).is_none()
        };
        assert!(of("application/json", None) && of("application/json; charset=\"UTF-8\"", Some("identity")));
        assert!(!of("application/json; charset=utf-7", None));
        assert!(!of("text/plain", None) && !of("application/json", Some("gzip")));
        assert!(body(&HeaderMap::new()).is_none());
    }
}
