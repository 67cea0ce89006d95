//! An answer as the ledger keeps it: how it began, and its very bytes.

use super::live_answer::{AnswerForm, AnswerHead};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};

/// Headers that a replay carries: what the answer is, and how to ask its maker about it. Nothing that speaks of one
/// connection, one moment or one client.
const KEPT_HEADERS: [HeaderName; 8] = [
    header::CONTENT_TYPE,
    header::RETRY_AFTER,
    HeaderName::from_static("retry-after-ms"),
    HeaderName::from_static("x-should-retry"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("openai-version"),
    HeaderName::from_static("openai-model"),
];

/// A header longer than this is not kept.
const HEADER_BYTES_MAX: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    pub head: AnswerHead,
    pub body: Bytes,
}

/// The line before the body. A member that is not known is of a newer semel, and is passed over.
#[derive(Debug, Serialize, Deserialize)]
struct RecordingHead {
    status: u16,
    events: bool,
    headers: Vec<(String, String)>,
}

/// The bytes to keep, from the pieces as they came.
pub fn written(head: &AnswerHead, pieces: &[Bytes]) -> Vec<u8> {
    let short = |name: &HeaderName| {
        let value = head.headers.get(name)?.to_str().ok()?;
        (value.len() <= HEADER_BYTES_MAX).then(|| (name.to_string(), value.to_owned()))
    };
    let line = RecordingHead {
        status: head.status.as_u16(),
        events: head.form == AnswerForm::Events,
        headers: KEPT_HEADERS.iter().filter_map(short).collect(),
    };
    let mut bytes = serde_json::to_vec(&line).expect("a line has only string keys");
    bytes.reserve_exact(1 + pieces.iter().map(Bytes::len).sum::<usize>());
    bytes.push(b'\n');
    pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
    bytes
}

/// `None`: these are no recording of this door.
pub fn read(bytes: Vec<u8>) -> Option<Recording> {
    let bytes = Bytes::from(bytes);
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line: RecordingHead = serde_json::from_slice(&bytes[..end]).ok()?;
    let mut headers = HeaderMap::new();
    for (name, value) in &line.headers {
        headers.insert(name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?);
    }
    let form = if line.events { AnswerForm::Events } else { AnswerForm::Document };
    let head = AnswerHead { status: StatusCode::from_u16(line.status).ok()?, headers, form };
    Some(Recording { head, body: bytes.slice(end + 1..) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_back_byte_for_byte_without_what_was_said_to_one_client() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "text/event-stream; charset=utf-8"),
            ("request-id", "req_1"),
            ("set-cookie", "session=secret"),
            ("cf-ray", "1"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let head = AnswerHead { status: StatusCode::OK, headers, form: AnswerForm::Events };
        let pieces = [Bytes::from_static(b"data: {\n"), Bytes::from_static(b"\n\xff"), Bytes::new()];
        let read = read(written(&head, &pieces)).expect("a recording");
        assert_eq!(read.body, b"data: {\n\n\xff"[..]);
        assert_eq!((read.head.status, read.head.form), (StatusCode::OK, AnswerForm::Events));
        let mut names: Vec<&str> = read.head.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-type", "request-id"]);
    }

    #[test]
    fn what_is_no_recording_is_not_taken_for_one() {
        for bytes in [&b""[..], b"{}", b"{}\n", b"\n", b"{\"status\":20,\"events\":true,\"headers\":[]}\nx"] {
            assert_eq!(read(bytes.to_vec()), None);
        }
    }
}
