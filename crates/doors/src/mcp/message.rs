//! One JSON-RPC message: the bytes as they came, and the few facts by which it is routed.
//!
//! Nothing is re-typed through a schema. What semel does not act on goes on as the same bytes, so that members and
//! numbers which this version has never heard of survive.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The largest message that is read. Tools return files and screenshots; beyond this it is a mistake or an attack.
pub const MESSAGE_BYTES_MAX: usize = 128 << 20;

/// An id, a string or a number, as JSON text in one spelling: a peer may answer `"\u0061"` to `"a"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Box<str>);

impl Id {
    /// From JSON text: a string or a number.
    pub fn from_json(text: &str) -> Option<Id> {
        match text.as_bytes().first()? {
            b'"' => serde_json::from_str::<Cow<'_, str>>(text).ok().map(|text| Id::text(&text)),
            b'0'..=b'9' | b'-' => Some(Id(text.into())),
            _ => None,
        }
    }

    pub fn text(text: &str) -> Id {
        Id(serde_json::Value::from(text).to_string().into())
    }

    /// As JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Request {
        id: Id,
        method: String,
    },
    Notification {
        method: String,
    },
    /// `id` is absent in the answer to something that could not be read.
    Response {
        id: Option<Id>,
        failed: bool,
    },
}

#[derive(Debug, Clone)]
pub struct Message {
    pub bytes: Bytes,
    pub kind: Kind,
    /// The `params` of a request or notification.
    pub params: Option<Bytes>,
    /// The `result` or `error` of a response.
    pub body: Option<Bytes>,
}

/// Why bytes are not a message, in words for whoever sent them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAMessage {
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("batches are not part of MCP since 2025-06-18; send one message at a time")]
    Batch,
    #[error("it is neither a request, a notification nor a response")]
    NotJsonRpc,
    #[error("a message has at most {MESSAGE_BYTES_MAX} bytes")]
    TooLarge,
}

impl NotAMessage {
    /// The JSON-RPC code of the complaint.
    pub fn code(&self) -> i32 {
        match self {
            NotAMessage::NotJson(_) => -32700,
            NotAMessage::Batch | NotAMessage::NotJsonRpc | NotAMessage::TooLarge => -32600,
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Message {
    pub fn parse(bytes: Bytes) -> Result<Message, NotAMessage> {
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(NotAMessage::TooLarge);
        }
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            return Err(NotAMessage::Batch);
        }
        let envelope: Envelope<'_> =
            serde_json::from_slice(&bytes).map_err(|error| match error.classify() {
                // JSON it is: a number, a text, an object that names a member twice.
                serde_json::error::Category::Data => NotAMessage::NotJsonRpc,
                _ => NotAMessage::NotJson(error.to_string()),
            })?;
        let part = |raw: &RawValue| bytes.slice_ref(raw.get().as_bytes());
        let id = envelope.id.and_then(|id| Id::from_json(id.get()));
        let (params, body) = (envelope.params.map(part), envelope.error.or(envelope.result).map(part));
        let kind = match (envelope.method, id) {
            (Some(method), Some(id)) => Kind::Request { id, method: method.into_owned() },
            (Some(method), None) if envelope.id.is_none() => {
                Kind::Notification { method: method.into_owned() }
            }
            (None, id) if body.is_some() => Kind::Response { id, failed: envelope.error.is_some() },
            _ => return Err(NotAMessage::NotJsonRpc),
        };
        Ok(Message { kind, params, body, bytes: bytes.clone() })
    }

    pub fn method(&self) -> Option<&str> {
        match &self.kind {
            Kind::Request { method, .. } | Kind::Notification { method } => Some(method),
            Kind::Response { .. } => None,
        }
    }

    /// The id of a request.
    pub fn request_id(&self) -> Option<&Id> {
        match &self.kind {
            Kind::Request { id, .. } => Some(id),
            _ => None,
        }
    }
}

/// JSON text from inside a message, as a string: a parsed message holds nothing but UTF-8.
pub fn text(json: &Bytes) -> &str {
    std::str::from_utf8(json).unwrap_or("null")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message, NotAMessage> {
        Message::parse(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn a_message_is_told_by_its_members() {
        let request =
            parse(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}"#).unwrap();
        assert_eq!(request.kind, Kind::Request { id: Id("7".into()), method: "tools/call".into() });
        assert_eq!(text(request.params.as_ref().unwrap()), r#"{"name":"x"}"#);
        let note = parse(r#"{"method":"notifications/cancelled"}"#).unwrap();
        assert_eq!(note.method(), Some("notifications/cancelled"));
        let failed = parse(r#"{"id":"a","error":{"code":-1,"message":""}}"#).unwrap();
        assert_eq!(failed.kind, Kind::Response { id: Some(Id::text("a")), failed: true });
        let nobody = parse(r#"{"id":null,"error":{"code":-32700}}"#).unwrap();
        assert_eq!(nobody.kind, Kind::Response { id: None, failed: true });
    }

    #[test]
    fn ids_are_equal_however_they_are_escaped() {
        let id =
            |text: &str| parse(&format!(r#"{{"id":{text},"method":"m"}}"#)).unwrap().request_id().cloned();
        assert_eq!(id(r#""\u0061b""#), id(r#""ab""#));
        assert_ne!(id("1"), id(r#""1""#));
        assert_eq!(id("18446744073709551616").unwrap().as_json(), "18446744073709551616");
    }

    #[test]
    fn what_is_no_message_is_refused_in_words() {
        assert_eq!(parse(r#"[{"id":1,"method":"m"}]"#).unwrap_err(), NotAMessage::Batch);
        assert_eq!(parse(r#"{"id":1}"#).unwrap_err(), NotAMessage::NotJsonRpc);
        assert_eq!(parse(r#"{"id":{},"method":"m"}"#).unwrap_err(), NotAMessage::NotJsonRpc);
        for other in ["7", r#""x""#, "null", r#"{"id":1,"id":2,"method":"m"}"#, r#"{"id":1,"method":7}"#] {
            assert_eq!(parse(other).unwrap_err(), NotAMessage::NotJsonRpc, "{other}");
        }
        for bad in ["", "{", "starting up", "{\"id\":1,\"method\":\"\\ud800\"}"] {
            assert!(matches!(parse(bad), Err(NotAMessage::NotJson(_))), "{bad}");
        }
        assert!(Message::parse(Bytes::from_static(b"{\"method\":\"\xff\"}")).is_err());
    }
}
