//! One JSON-RPC message: the bytes as they came, and the few facts by which it is routed.
//!
//! Nothing is re-typed through a schema. Parts that semel does not act on leave as the same bytes, so that members
//! and numbers which this version has never heard of survive.

use super::frame::Frame;
use super::id::Id;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// The largest message that is read. Tools return files and screenshots; beyond this it is a mistake or an attack.
pub const MESSAGE_BYTES_MAX: usize = 128 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageKind {
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
    pub kind: MessageKind,
    /// The `params` of a request or notification.
    pub params: Option<Bytes>,
    /// The `result` or `error` of a response.
    pub body: Option<Bytes>,
    places: Places,
}

/// Where in its bytes a message has what semel may write anew.
#[derive(Debug, Clone, Default)]
struct Places {
    id: Option<Range<usize>>,
    /// Of the `params` of a request, of the `result` or `error` of a response.
    content: Option<Range<usize>>,
}

/// Why bytes are not a message, in words for their sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAMessage {
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("batches are not part of MCP since 2025-06-18; send one message at a time")]
    Batch,
    #[error("it is neither a request, a notification nor a response")]
    NotJsonRpc,
    /// `id`: of the request that it may be.
    #[error("it can be read in two ways: {why}")]
    TwoReadings { why: String, id: Option<Id> },
    #[error("a message has at most {MESSAGE_BYTES_MAX} bytes")]
    TooLarge,
}

impl NotAMessage {
    /// The JSON-RPC code of the complaint.
    pub fn code(&self) -> i32 {
        match self {
            NotAMessage::NotJson(_) => -32700,
            NotAMessage::Batch
            | NotAMessage::NotJsonRpc
            | NotAMessage::TwoReadings { .. }
            | NotAMessage::TooLarge => -32600,
        }
    }

    /// The answer to its sender.
    pub fn complaint(&self) -> Frame {
        let words = format!("semel passed nothing on: {self}");
        match self {
            NotAMessage::TwoReadings { id: Some(id), .. } => Frame::refusal(id, self.code(), &words, None),
            _ => Frame::complaint(self.code(), &words),
        }
    }
}

/// The members of a message that semel looks at.
#[derive(Default)]
struct Envelope<'a> {
    id: Option<&'a RawValue>,
    method: Option<Cow<'a, str>>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// Why another reader may see another message.
    ambiguous: Option<String>,
    id_is_ambiguous: bool,
}

/// Every member that JSON-RPC knows.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

impl<'de: 'a, 'a> Deserialize<'de> for Envelope<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EnvelopeVisitor;

        impl<'de> Visitor<'de> for EnvelopeVisitor {
            type Value = Envelope<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
                let mut envelope = Envelope::default();
                let mut seen = [false; MEMBERS.len()];
                while let Some(MemberName(name)) = map.next_key()? {
                    let Some(place) = MEMBERS.iter().position(|known| *known == name) else {
                        if let Some(known) = like_one_of(&name, &MEMBERS) {
                            envelope.is_ambiguous(known, format!("{name:?} could be taken for {known:?}"));
                        }
                        map.next_value::<de::IgnoredAny>()?;
                        continue;
                    };
                    if std::mem::replace(&mut seen[place], true) {
                        envelope.is_ambiguous(&name, format!("{name:?} is named twice"));
                    }
                    match &*name {
                        "id" => envelope.id = map.next_value()?,
                        "method" => {
                            envelope.method =
                                map.next_value::<Option<MemberName<'de>>>()?.map(|MemberName(name)| name)
                        }
                        "params" => envelope.params = map.next_value()?,
                        "result" => envelope.result = map.next_value()?,
                        "error" => envelope.error = map.next_value()?,
                        _ => drop(map.next_value::<de::IgnoredAny>()?),
                    }
                }
                Ok(envelope)
            }
        }
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

impl Envelope<'_> {
    fn is_ambiguous(&mut self, member: &str, why: String) {
        self.id_is_ambiguous |= member == "id";
        self.ambiguous.get_or_insert(why);
    }
}

/// A plain `Cow` would always be read as owned.
#[derive(Deserialize)]
#[serde(transparent)]
struct MemberName<'a>(#[serde(borrow)] Cow<'a, str>);

/// The known name that a reader which does not look at case would take this one for, if it is another spelling of it.
/// Such a reader sees another message than semel does.
pub fn like_one_of<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let fold = |c: char| match c {
        '\u{17F}' => 's',
        '\u{212A}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    let alike = |one: &str| one != name && one.chars().map(fold).eq(name.chars().map(fold));
    known.iter().copied().find(|one| alike(one))
}

impl Message {
    pub fn parse(bytes: Bytes) -> Result<Message, NotAMessage> {
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(NotAMessage::TooLarge);
        }
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            return Err(NotAMessage::Batch);
        }
        // All of it: parts that are passed over must be text to the next reader too.
        let whole = std::str::from_utf8(&bytes).map_err(|error| NotAMessage::NotJson(error.to_string()))?;
        let envelope: Envelope<'_> = serde_json::from_str(whole).map_err(|error| match error.classify() {
            // JSON it is: a number, a text.
            serde_json::error::Category::Data => NotAMessage::NotJsonRpc,
            _ => NotAMessage::NotJson(error.to_string()),
        })?;
        let part = |raw: &RawValue| bytes.slice_ref(raw.get().as_bytes());
        let id = envelope.id.and_then(|id| Id::from_json(id.get()));
        if let Some(why) = envelope.ambiguous {
            // Of an answer it would be the id of another peer's request.
            let asks = envelope.method.is_some() && !envelope.id_is_ambiguous;
            return Err(NotAMessage::TwoReadings { why, id: id.filter(|_| asks) });
        }
        if envelope.result.is_some() && envelope.error.is_some() {
            return Err(NotAMessage::NotJsonRpc);
        }
        let content = envelope.error.or(envelope.result);
        let (params, body) = (envelope.params.map(part), content.map(part));
        let asked = envelope.method.is_some();
        let place = |raw: &RawValue| place(whole, raw.get());
        let places = Places {
            id: envelope.id.map(place),
            content: if asked { envelope.params } else { content }.map(place),
        };
        let kind = match (envelope.method, id) {
            (Some(method), Some(id)) => MessageKind::Request { id, method: method.into_owned() },
            (Some(method), None) if envelope.id.is_none() => {
                MessageKind::Notification { method: method.into_owned() }
            }
            (None, id) if body.is_some() => MessageKind::Response { id, failed: envelope.error.is_some() },
            _ => return Err(NotAMessage::NotJsonRpc),
        };
        Ok(Message { kind, params, body, places, bytes: bytes.clone() })
    }

    /// The request that a line answers which is no message, if all readers see the same there.
    pub fn answered_by(line: &[u8]) -> Option<Id> {
        let envelope: Envelope<'_> = serde_json::from_slice(line).ok()?;
        let answers = envelope.method.is_none() && (envelope.result.is_some() || envelope.error.is_some());
        envelope.id.filter(|_| answers && !envelope.id_is_ambiguous).and_then(|id| Id::from_json(id.get()))
    }

    /// The same message under another id, or with other `params`, another `result` or `error`. All else in it is as it
    /// was written. `None`: it has none of what would be replaced.
    pub fn edited(&self, id: Option<&Id>, content: Option<Frame>) -> Option<Frame> {
        let mut edits = Vec::with_capacity(2);
        if let Some(id) = id {
            edits.push((self.places.id.clone()?, Frame::from(id.to_string())));
        }
        if let Some(content) = content {
            edits.push((self.places.content.clone()?, content));
        }
        edits.sort_by_key(|(place, _)| place.start);
        let mut parts = Vec::new();
        let mut from = 0;
        for (place, frame) in edits {
            parts.push(self.bytes.slice(from..place.start));
            parts.extend(frame.parts().iter().cloned());
            from = place.end;
        }
        parts.push(self.bytes.slice(from..));
        Some(Frame::new(parts))
    }

    /// With another `result` or `error`, in an envelope of semel's own.
    pub fn with_body(self, body: Bytes) -> Message {
        Message { body: Some(body), places: Places::default(), ..self }
    }

    pub fn method(&self) -> Option<&str> {
        match &self.kind {
            MessageKind::Request { method, .. } | MessageKind::Notification { method } => Some(method),
            MessageKind::Response { .. } => None,
        }
    }

    /// The id of a request.
    pub fn request_id(&self) -> Option<&Id> {
        match &self.kind {
            MessageKind::Request { id, .. } => Some(id),
            _ => None,
        }
    }
}

/// Where a part of a text stands in it.
fn place(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
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
        assert_eq!(
            request.kind,
            MessageKind::Request { id: Id::from_json("7").unwrap(), method: "tools/call".into() }
        );
        assert_eq!(text(request.params.as_ref().unwrap()), r#"{"name":"x"}"#);
        let note = parse(r#"{"method":"notifications/cancelled"}"#).unwrap();
        assert_eq!(note.method(), Some("notifications/cancelled"));
        let failed = parse(r#"{"id":"a","error":{"code":-1,"message":""}}"#).unwrap();
        assert_eq!(failed.kind, MessageKind::Response { id: Some(Id::text("a")), failed: true });
        let nobody = parse(r#"{"id":null,"error":{"code":-32700}}"#).unwrap();
        assert_eq!(nobody.kind, MessageKind::Response { id: None, failed: true });
    }

    #[test]
    fn ids_are_equal_however_they_are_escaped() {
        let id =
            |text: &str| parse(&format!(r#"{{"id":{text},"method":"m"}}"#)).unwrap().request_id().cloned();
        assert_eq!(id(r#""\u0061b""#), id(r#""ab""#));
        assert_ne!(id("1"), id(r#""1""#));
        assert_eq!(id("1e2"), id("100"));
        assert_eq!(id("18446744073709551616").unwrap().as_json(), "18446744073709551616");
    }

    #[test]
    fn what_another_reader_would_read_otherwise_is_refused() {
        for text in [
            r#"{"id":1,"method":"ping","Method":"tools/call"}"#,
            r#"{"id":1,"result":{},"METHOD":"tools/call"}"#,
            r#"{"id":1,"method":"ping","paramſ":{}}"#,
            r#"{"id":1,"result":{},"error":{"code":1}}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(r#"{"id":1,"result":{},"error":null,"own":1}"#).is_ok());
        assert!(Message::parse(Bytes::from_static(b"{\"id\":1,\"method\":\"m\",\"own\":\"\xff\"}")).is_err());
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_said_to_be_that_under_its_id() {
        let complaint = |text: &str| -> serde_json::Value {
            serde_json::from_slice(&parse(text).unwrap_err().complaint().to_bytes()).unwrap()
        };
        let words = |member: &str| {
            format!("semel passed nothing on: it can be read in two ways: \"{member}\" is named twice")
        };
        let of = |id: serde_json::Value, member: &str| serde_json::json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": words(member)}});
        let twice = r#"{"params":{},"method":"m","params":{"name":"x"},"id":"a"}"#;
        assert_eq!(complaint(twice), of("a".into(), "params"));
        assert_eq!(complaint(r#"{"id":1,"id":2,"method":"m"}"#), of(None::<u8>.into(), "id"));
        assert_eq!(complaint(r#"{"id":1,"result":{},"result":{}}"#), of(None::<u8>.into(), "result"));
    }

    #[test]
    fn an_edit_leaves_the_rest_of_a_message_as_it_was_written() {
        let edited = |text: &str, id: Option<Id>, content: Option<&str>| {
            let content = content.map(|content| Frame::from(content.to_owned()));
            let frame = parse(text).unwrap().edited(id.as_ref(), content)?;
            Some(String::from_utf8(frame.to_bytes().to_vec()).unwrap())
        };
        let answer = r#"{ "\u0078":1.0 ,"result":{"a":1}, "jsonrpc":"2.0","id" : 7 ,"trace":[ ]}"#;
        assert_eq!(
            edited(answer, Some(Id::text("c")), Some("{}")).unwrap(),
            r#"{ "\u0078":1.0 ,"result":{}, "jsonrpc":"2.0","id" : "c" ,"trace":[ ]}"#
        );
        let request = r#"{"id":7,"params":[1], "method":"m","result":3,"x":1,"x":2}"#;
        assert_eq!(
            edited(request, None, Some("[2]")).unwrap(),
            r#"{"id":7,"params":[2], "method":"m","result":3,"x":1,"x":2}"#
        );
        assert_eq!(edited(request, None, None).unwrap(), request);
        assert_eq!(edited(r#"{"method":"m","params":[]}"#, Some(Id::text("c")), None), None);
        assert_eq!(edited(r#"{"id":1,"method":"m"}"#, None, Some("[]")), None);
    }

    #[test]
    fn what_is_no_message_is_refused_in_words() {
        assert_eq!(parse(r#"[{"id":1,"method":"m"}]"#).unwrap_err(), NotAMessage::Batch);
        assert_eq!(parse(r#"{"id":1}"#).unwrap_err(), NotAMessage::NotJsonRpc);
        assert_eq!(parse(r#"{"id":{},"method":"m"}"#).unwrap_err(), NotAMessage::NotJsonRpc);
        for other in ["7", r#""x""#, "null", r#"{"id":1,"method":7}"#] {
            assert_eq!(parse(other).unwrap_err(), NotAMessage::NotJsonRpc, "{other}");
        }
        for bad in ["", "{", "starting up", "{\"id\":1,\"method\":\"\\ud800\"}"] {
            assert!(matches!(parse(bad), Err(NotAMessage::NotJson(_))), "{bad}");
        }
        assert!(Message::parse(Bytes::from_static(b"{\"method\":\"\xff\"}")).is_err());
    }
}
