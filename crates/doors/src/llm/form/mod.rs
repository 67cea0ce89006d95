//! One answer in two forms: a document and a stream of events, converted into each other.
//!
//! What is converted is whole: a stream with its terminal event, a document to its last byte. What a form cannot say
//! exactly is not converted, and the answer stays as it came.

mod chat;
mod exact;
mod merge;
mod messages;
mod responses;
#[cfg(test)]
mod tests;

pub use chat::{says_only_usage, without_usage};

use super::api::ModelApi;
use super::live_answer::AnswerForm;
use crate::http::sse::Parser;
use bytes::Bytes;
use serde_json::Value;

/// The answer in the form `to`. `None`: it is not what this API says, or cannot be said in that form.
pub fn converted(api: ModelApi, to: AnswerForm, body: &[u8], include_usage: bool) -> Option<Bytes> {
    match (api, to) {
        (ModelApi::Chat, AnswerForm::Document) => chat::assembled(body),
        (ModelApi::Chat, AnswerForm::Events) => chat::split(body, include_usage),
        (ModelApi::Responses, AnswerForm::Document) => responses::assembled(body),
        (ModelApi::Responses, AnswerForm::Events) => responses::split(body),
        (ModelApi::Messages, AnswerForm::Document) => messages::assembled(body),
        (ModelApi::Messages, AnswerForm::Events) => messages::split(body),
    }
}

/// The data of each event of a stream that ended by itself.
pub(super) fn data_events(stream: &[u8]) -> impl Iterator<Item = Bytes> {
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
fn event(kind: &str, mut data: Value) -> String {
    data["type"] = Value::from(kind);
    format!("event: {kind}\ndata: {}\n\n", exact::written(&data))
}

/// The element of this index, made if there is none.
fn indexed<T>(list: &mut Vec<(u64, T)>, index: u64, make: impl FnOnce() -> T) -> &mut T {
    let at = list.iter().position(|(known, _)| *known == index).unwrap_or_else(|| {
        list.push((index, make()));
        list.len() - 1
    });
    &mut list[at].1
}
