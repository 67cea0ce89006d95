//! Which requests generate, and in the words of which API.

use crate::http::sse::Fields;
use crate::proxy::OpenedRequest;
use http::Method;
use semel_core::policy::file::Speaks;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelApi {
    Chat,
    Responses,
    Messages,
}

/// The meaning of an event for its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamStep {
    /// The answer goes on.
    On,
    /// The answer is whole.
    Whole,
    /// The API gave up.
    Failed,
}

/// Whether a request makes a model generate. Counting tokens, batches, embeddings and the rest do not.
pub fn is_generation(OpenedRequest { offer, parts, .. }: &OpenedRequest<'_>) -> bool {
    let path = path_behind(parts.uri.path(), &offer.name);
    parts.method == Method::POST && ModelApi::of(offer.speaks, path).is_some()
}

/// The path behind `/p/NAME`.
pub fn path_behind<'a>(path: &'a str, name: &str) -> &'a str {
    path.strip_prefix("/p/").and_then(|path| path.strip_prefix(name)).unwrap_or(path)
}

impl ModelApi {
    /// `path` is what follows the upstream's own address.
    pub fn of(speaks: Speaks, path: &str) -> Option<ModelApi> {
        let ends = |last: &str| path.strip_suffix(last).filter(|before| !before.ends_with('/'));
        match speaks {
            Speaks::Openai if ends("/chat/completions").is_some() => Some(ModelApi::Chat),
            Speaks::Openai if ends("/responses").is_some_and(is_base) => Some(ModelApi::Responses),
            Speaks::Anthropic if ends("/messages").is_some_and(is_base) => Some(ModelApi::Messages),
            _ => None,
        }
    }

    pub fn action(self) -> &'static str {
        match self {
            ModelApi::Chat => "llm:openai/chat.completions",
            ModelApi::Responses => "llm:openai/responses",
            ModelApi::Messages => "llm:anthropic/messages",
        }
    }

    /// The meaning of an event for the answer. Only its name is looked at, or its type if it has no name of its own:
    /// `message` is what every event is called that has none. Chat names nothing but errors.
    pub fn turn(self, fields: &Fields) -> StreamStep {
        let Some(data) = &fields.data else { return StreamStep::On };
        let named = match &fields.event {
            Some(name)
                if name == "error" || self != ModelApi::Chat && !matches!(name.as_str(), "" | "message") =>
            {
                Cow::Borrowed(name.as_str())
            }
            _ => Cow::Owned(kind(data)),
        };
        match (self, &*named) {
            (ModelApi::Chat, DONE) => StreamStep::Whole,
            (ModelApi::Responses, "response.completed" | "response.incomplete" | "response.failed") => {
                StreamStep::Whole
            }
            (ModelApi::Messages, "message_stop") => StreamStep::Whole,
            (_, "error") => StreamStep::Failed,
            _ => StreamStep::On,
        }
    }
}

/// The data of the event that ends a stream of chat completions.
pub const DONE: &str = "[DONE]";

/// A path of these names no resource, so that what follows is the API's own.
fn is_base(before: &str) -> bool {
    before.is_empty() || before.ends_with("/v1") || before.ends_with("/openai")
}

/// The type of an event without a name. Chat has no types: there it is the end, an error, or nothing of note.
fn kind(data: &[u8]) -> String {
    #[derive(Deserialize)]
    struct TypedEvent<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<Cow<'a, str>>,
        #[serde(borrow)]
        object: Option<Cow<'a, str>>,
        #[serde(default)]
        error: Value,
    }
    if data.trim_ascii() == DONE.as_bytes() {
        return DONE.to_owned();
    }
    match serde_json::from_slice::<TypedEvent<'_>>(data) {
        // Types of responses tell their errors themselves, and hold them in a member of that name.
        Ok(TypedEvent { kind: Some(kind), .. }) if kind.starts_with("response.") => kind.into_owned(),
        Ok(TypedEvent { error, .. }) if says_something(&error) => "error".to_owned(),
        Ok(TypedEvent { object: Some(object), .. }) if object == "error" => "error".to_owned(),
        Ok(TypedEvent { kind: Some(kind), .. }) => kind.into_owned(),
        _ => String::new(),
    }
}

/// SDKs take a member that says nothing for one that is not there.
fn says_something(error: &Value) -> bool {
    match error {
        Value::Null => false,
        Value::Bool(is_one) => *is_one,
        Value::Number(code) => code.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn only_what_generates_is_a_generation() {
        for path in ["/v1/chat/completions", "/chat/completions", "/openai/deployments/x/chat/completions"] {
            assert_eq!(ModelApi::of(Speaks::Openai, path), Some(ModelApi::Chat), "{path}");
            assert_eq!(ModelApi::of(Speaks::Anthropic, path), None, "{path}");
            assert_eq!(ModelApi::of(Speaks::Nothing, path), None, "{path}");
        }
        for path in ["/v1/responses", "/responses", "/openai/responses"] {
            assert_eq!(ModelApi::of(Speaks::Openai, path), Some(ModelApi::Responses), "{path}");
        }
        for path in ["/v1/messages", "/messages", "/proxy/v1/messages"] {
            assert_eq!(ModelApi::of(Speaks::Anthropic, path), Some(ModelApi::Messages), "{path}");
        }
        for path in [
            "/v1/messages/count_tokens",
            "/v1/messages/batches",
            "/v1/embeddings",
            "/v1/responses/resp_1/cancel",
            "/v1/responses/compact",
            "/v1/threads/t/messages",
            "/v1/chat/completions/",
            "/v1/chat/completions/chatcmpl-1",
            "/v1//responses",
            "/v1/xresponses",
            "",
        ] {
            assert_eq!(
                ModelApi::of(Speaks::Openai, path).or(ModelApi::of(Speaks::Anthropic, path)),
                None,
                "{path}"
            );
        }
    }

    #[test]
    fn the_end_of_a_stream_is_told_from_an_error_and_from_all_else() {
        let turn = |api: ModelApi, event: Option<&str>, data: &'static str| {
            let fields = Fields {
                event: event.map(str::to_owned),
                data: Some(Bytes::from_static(data.as_bytes())),
                ..Fields::default()
            };
            api.turn(&fields)
        };
        for (api, event, data, expected) in [
            (ModelApi::Chat, None, "[DONE]", StreamStep::Whole),
            (ModelApi::Chat, None, " [DONE] ", StreamStep::Whole),
            (ModelApi::Chat, None, r#"{"choices":[{"delta":{"content":"[DONE]"}}]}"#, StreamStep::On),
            (ModelApi::Chat, None, r#"{"error":{"message":"overloaded"}}"#, StreamStep::Failed),
            (ModelApi::Chat, None, r#"{"error":"overloaded"}"#, StreamStep::Failed),
            (ModelApi::Chat, None, r#"{"choices":[],"error":null}"#, StreamStep::On),
            (ModelApi::Chat, None, r#"{"choices":[],"error":""}"#, StreamStep::On),
            (ModelApi::Chat, None, r#"{"choices":[],"error":{}}"#, StreamStep::On),
            (ModelApi::Chat, None, r#"{"choices":[],"error":[]}"#, StreamStep::On),
            (ModelApi::Chat, None, r#"{"choices":[],"error":false}"#, StreamStep::On),
            (ModelApi::Chat, None, r#"{"choices":[],"error":0}"#, StreamStep::On),
            (ModelApi::Chat, Some("error"), r#"{"error":{}}"#, StreamStep::Failed),
            (ModelApi::Chat, None, "not json", StreamStep::On),
            (ModelApi::Responses, Some("response.completed"), "{}", StreamStep::Whole),
            (ModelApi::Responses, Some("response.failed"), "{}", StreamStep::Whole),
            (ModelApi::Responses, None, r#"{"type":"response.incomplete","response":{}}"#, StreamStep::Whole),
            (
                ModelApi::Responses,
                Some("response.created"),
                r#"{"type":"response.completed"}"#,
                StreamStep::On,
            ),
            (ModelApi::Responses, Some("error"), r#"{"type":"error"}"#, StreamStep::Failed),
            (ModelApi::Responses, None, "[DONE]", StreamStep::On),
            (ModelApi::Responses, Some("message"), r#"{"type":"response.completed"}"#, StreamStep::Whole),
            (
                ModelApi::Responses,
                Some(""),
                r#"{"type":"response.failed","response":{"error":{"code":"x"}}}"#,
                StreamStep::Whole,
            ),
            (ModelApi::Responses, Some("message"), r#"{"type":"error","message":"x"}"#, StreamStep::Failed),
            (ModelApi::Messages, Some("message"), r#"{"type":"message_stop"}"#, StreamStep::Whole),
            (ModelApi::Messages, Some(""), r#"{"type":"message_stop"}"#, StreamStep::Whole),
            (ModelApi::Messages, Some(""), r#"{"type":"message_start"}"#, StreamStep::On),
            (ModelApi::Messages, Some("message_stop"), r#"{"type":"message_stop"}"#, StreamStep::Whole),
            (ModelApi::Messages, None, r#"{"type":"message_stop"}"#, StreamStep::Whole),
            (ModelApi::Messages, Some("message_delta"), r#"{"type":"message_delta"}"#, StreamStep::On),
            (
                ModelApi::Messages,
                Some("error"),
                r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
                StreamStep::Failed,
            ),
        ] {
            assert_eq!(turn(api, event, data), expected, "{api:?} {event:?} {data}");
        }
        assert_eq!(ModelApi::Chat.turn(&Fields::default()), StreamStep::On);
    }
}
