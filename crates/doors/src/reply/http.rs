//! An upstream's answer as a reply in the ledger, and back.

use super::command::CommandOutput;
use crate::http::headers::all;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use semel_core::json::{self, Json};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The upstream's headers that a replay repeats. All else spoke of one connection, one moment or one client.
const REPLAYED: [&str; 12] = [
    "content-type",
    // Without it a 206 means nothing.
    "content-range",
    "content-language",
    "content-disposition",
    "content-location",
    "location",
    "link",
    "etag",
    "last-modified",
    // A support desk asks for these.
    "request-id",
    "x-request-id",
    "x-github-request-id",
];

/// A header that is longer than this is not worth keeping.
const REPLAYED_BYTES_MAX: usize = 4 * 1024;

/// The status, headers and body that a replay is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpReply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

#[derive(Serialize, Deserialize)]
struct ReplyHead<'a> {
    status: u16,
    #[serde(borrow)]
    headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// One line of JSON, then the body as it was.
pub fn encode<'a>(
    status: StatusCode,
    headers: impl Iterator<Item = (&'a str, Cow<'a, str>)>,
    body: &[u8],
) -> Vec<u8> {
    let headers = headers.map(|(name, value)| (Cow::Borrowed(name), value)).collect();
    let head = ReplyHead { status: status.as_u16(), headers };
    let mut bytes = Vec::with_capacity(256 + body.len());
    serde_json::to_writer(&mut bytes, &head).expect("a head is plain data, and memory takes it");
    bytes.push(b'\n');
    bytes.extend_from_slice(body);
    bytes
}

impl HttpReply {
    /// `None`: it is not an answer over HTTP.
    pub fn decode(bytes: impl Into<Bytes>) -> Option<HttpReply> {
        let bytes: Bytes = bytes.into();
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let head: ReplyHead<'_> = serde_json::from_slice(&bytes[..end]).ok()?;
        let mut headers = HeaderMap::with_capacity(head.headers.len());
        for (name, value) in &head.headers {
            // Only headers that a replay may repeat are repeated, whichever version wrote them.
            let known = is_replayed(name).then(|| HeaderName::from_bytes(name.as_bytes()).ok()).flatten();
            if let (Some(name), Ok(value)) = (known, HeaderValue::from_bytes(value.as_bytes())) {
                headers.append(name, value);
            }
        }
        let status = StatusCode::from_u16(head.status).ok()?;
        Some(HttpReply { status, headers, body: bytes.slice(end + 1..) })
    }

    /// A reply of any kind: one over HTTP, or the body that a person brought, which gets this status.
    pub fn of_any(bytes: Vec<u8>, status: StatusCode) -> HttpReply {
        let bytes = Bytes::from(bytes);
        if let Some(kept) = HttpReply::decode(bytes.clone()) {
            return kept;
        }
        let body = CommandOutput::decode(&bytes).map_or(bytes, |output| Bytes::from(output.stdout));
        HttpReply::of_body(body, status)
    }

    /// A body without its head.
    fn of_body(body: Bytes, status: StatusCode) -> HttpReply {
        let kind = HeaderValue::from_static(content_type(&body));
        let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, kind)]);
        HttpReply { status, headers, body }
    }

    /// As the answer object shows it, in JSON and to the digit.
    pub fn data(&self) -> String {
        let body = match std::str::from_utf8(&self.body) {
            Ok(text) if json::parse(text).is_ok() => text.to_owned(),
            Ok(text) => serde_json::Value::from(text).to_string(),
            Err(_) => {
                use base64::Engine as _;
                let encoded = base64::engine::general_purpose::STANDARD.encode(&self.body);
                return format!(r#"{{"status":{},"body_base64":"{encoded}"}}"#, self.status.as_u16());
            }
        };
        format!(r#"{{"status":{},"body":{body}}}"#, self.status.as_u16())
    }

    /// The value that expressions see.
    pub fn value(&self) -> Json {
        value(&self.body)
    }
}

/// The type of a body that came without one.
pub fn content_type(body: &[u8]) -> &'static str {
    match json::parse_bytes(body) {
        Ok(_) => "application/json",
        Err(_) => "text/plain; charset=utf-8",
    }
}

/// A body as expressions see it: JSON, else its text.
pub fn value(body: &[u8]) -> Json {
    match json::parse_bytes(body) {
        Ok(value) => value,
        Err(_) => Json::object([("text", Json::String(String::from_utf8_lossy(body).into_owned()))]),
    }
}

/// The headers that a replay repeats.
pub fn replayed(headers: &HeaderMap) -> impl Iterator<Item = (&'static str, &HeaderValue)> {
    REPLAYED
        .iter()
        .flat_map(|name| all(headers, name).map(|value| (*name, value)))
        .filter(|(_, value)| value.len() <= REPLAYED_BYTES_MAX)
}

/// Whether a name on record may be repeated: what was written by another version is looked at again.
fn is_replayed(name: &str) -> bool {
    REPLAYED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let body = b"{\"id\": 1.0}\n\xff";
        let written = [
            ("content-type", "application/json"),
            ("link", "<a>"),
            ("link", "<b>"),
            ("content-disposition", "attachment; filename=\"Rechnung für Mai.pdf\""),
        ];
        let written = written.map(|(name, value)| (name, Cow::Borrowed(value)));
        let kept = HttpReply::decode(encode(StatusCode::CREATED, written.into_iter(), body)).unwrap();
        assert_eq!((kept.status, kept.body.as_ref()), (StatusCode::CREATED, &body[..]));
        assert_eq!(kept.headers.get_all("link").iter().count(), 2);
        assert!(String::from_utf8_lossy(kept.headers["content-disposition"].as_bytes()).contains("für"));
        assert_eq!(kept.data(), r#"{"status":201,"body_base64":"eyJpZCI6IDEuMH0K/w=="}"#);
        let exact = HttpReply::of_body(Bytes::from_static(b"{\"n\": 9007199254740993}"), StatusCode::OK);
        assert_eq!(exact.data(), r#"{"status":200,"body":{"n": 9007199254740993}}"#);
        assert_eq!(
            HttpReply::of_body(Bytes::from_static(b"a\"b"), StatusCode::OK).data(),
            r#"{"status":200,"body":"a\"b"}"#
        );
    }

    #[test]
    fn a_header_that_may_not_be_repeated_is_not_read_back() {
        let written = [("set-cookie", "a=b"), ("location", "a\r\nx: y"), ("etag", "ok")];
        let written = written.map(|(name, value)| (name, Cow::Borrowed(value)));
        let kept = HttpReply::decode(encode(StatusCode::OK, written.into_iter(), b"")).unwrap();
        assert_eq!(kept.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["etag"]);
    }

    #[test]
    fn what_a_person_brought_stands_for_the_body() {
        let brought = CommandOutput::of_stdout(b"{\"id\":1}".to_vec()).encode();
        let ruled = HttpReply::of_any(brought, StatusCode::CREATED);
        assert_eq!((ruled.status, ruled.body.as_ref()), (StatusCode::CREATED, &b"{\"id\":1}"[..]));
        assert_eq!(ruled.headers[http::header::CONTENT_TYPE], "application/json");
        assert_eq!(HttpReply::of_any(b"hello".to_vec(), StatusCode::OK).body.as_ref(), b"hello");
    }
}
