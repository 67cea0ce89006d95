//! One answer in two forms: a document and a stream of events, converted into each other.
//!
//! Only whole answers are converted: a stream with its terminal event, a document to its last byte. An answer that a
//! form cannot say exactly is not converted, and the answer stays as it came.

mod chat;
pub mod events;
mod exact;
mod merge;
mod messages;
mod responses;
#[cfg(test)]
mod tests;

pub use chat::{says_only_usage, without_usage};

use super::api::ModelApi;
use super::live_answer::AnswerForm;
use bytes::Bytes;

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
