//! The events of a stream, read and written.

use super::exact;
use crate::http::sse::Parser;
use bytes::Bytes;
use serde_json::Value;

/// The data of each event of a stream that ended by itself.
pub fn data_events(stream: &[u8]) -> impl Iterator<Item = Bytes> {
    let mut parser = Parser::default();
    parser.push(stream);
    std::iter::from_fn(move || {
        loop {
            let piece = parser.next_piece().ok()?.or_else(|| parser.last_piece())?;
            if let Some(data) = piece.fields.data {
                return Some(data);
            }
        }
    })
}

/// One event of a stream whose events have names.
pub fn event(kind: &str, mut data: Value) -> String {
    data["type"] = Value::from(kind);
    format!("event: {kind}\ndata: {}\n\n", exact::written(&data))
}

/// Whether a piece of a stream may say something, before it is parsed.
pub fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
