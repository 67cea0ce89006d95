//! Which requests generate, and in the words of which API.

use crate::http::sse::Fields;
use crate::proxy::Opened;
use http::Method;
use semel_core::policy::file::Speaks;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Api {
    Chat,
    Responses,
    Messages,
}

/// What an event says about its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The answer goes on.
    On,
    /// The answer is whole.
    Whole,
    /// The API gave up.
    Failed,
}

/// Whether a request makes a model generate. Counting tokens, batches, embeddings and the rest do not.
pub fn is_generation(Opened { offer, parts, .. }: &Opened<'_>) -> bool {
    let path = path_behind(parts.uri.path(), &offer.name);
    parts.method == Method::POST && Api::of(offer.speaks, path).is_some()
}

/// What follows `/p/NAME`.
pub fn path_behind<'a>(path: &'a str, name: &str) -> &'a str {
    path.strip_prefix("/p/").and_then(|path| path.strip_prefix(name)).unwrap_or(path)
}

impl Api {
    /// `path` is what follows the upstream's own address.
    pub fn of(speaks: Speaks, path: &str) -> Option<Api> {
        let ends = |last: &str| path.strip_suffix(last).filter(|before| !before.ends_with('/'));
        match speaks {
            Speaks::Openai if ends("/chat/completions").is_some() => Some(Api::Chat),
            Speaks::Openai if ends("/responses").is_some_and(is_base) => Some(Api::Responses),
            Speaks::Anthropic if ends("/messages").is_some_and(is_base) => Some(Api::Messages),
            _ => None,
        }
    }

    pub fn action(self) -> &'static str {
        match self {
            Api::Chat => "llm:openai/chat.completions",
            Api::Responses => "llm:openai/responses",
            Api::Messages => "llm:anthropic/messages",
        }
    }

    /// What an event means for the answer. Only its name is looked at, or its type if it has no name of its own:
    /// `message` is what every event is called that has none. Chat names nothing but errors.
    pub fn turn(self, fields: &Fields) -> Turn {
        let Some(data) = &fields.data else { return Turn::On };
        let named = match &fields.event {
            Some(name)
                if name == "error" || self != Api::Chat && !matches!(name.as_str(), "" | "message") =>
            {
                Cow::Borrowed(name.as_str())
            }
            _ => Cow::Owned(kind(data)),
        };
        match (self, &*named) {
            (Api::Chat, DONE) => Turn::Whole,
            (Api::Responses, "response.completed" | "response.incomplete" | "response.failed") => Turn::Whole,
            (Api::Messages, "message_stop") => Turn::Whole,
            (_, "error") => Turn::Failed,
            _ => Turn::On,
        }
    }
}

/// What the end of a stream of chat completions says.
pub const DONE: &str = "[DONE]";

/// A path of these names no resource, so that what follows is the API's own.
fn is_base(before: &str) -> bool {
    before.is_empty() || before.ends_with("/v1") || before.ends_with("/openai")
}

/// The type of an event without a name. Chat has no types: there it is the end, an error, or nothing of note.
fn kind(data: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Typed<'a> {
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
    match serde_json::from_slice::<Typed<'_>>(data) {
        // Types of responses tell their errors themselves, and hold them in a member of that name.
        Ok(Typed { kind: Some(kind), .. }) if kind.starts_with("response.") => kind.into_owned(),
        Ok(Typed { error, .. }) if says_something(&error) => "error".to_owned(),
        Ok(Typed { object: Some(object), .. }) if object == "error" => "error".to_owned(),
        Ok(Typed { kind: Some(kind), .. }) => kind.into_owned(),
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
            assert_eq!(Api::of(Speaks::Openai, path), Some(Api::Chat), "{path}");
            assert_eq!(Api::of(Speaks::Anthropic, path), None, "{path}");
            assert_eq!(Api::of(Speaks::Nothing, path), None, "{path}");
        }
        for path in ["/v1/responses", "/responses", "/openai/responses"] {
            assert_eq!(Api::of(Speaks::Openai, path), Some(Api::Responses), "{path}");
        }
        for path in ["/v1/messages", "/messages", "/proxy/v1/messages"] {
            assert_eq!(Api::of(Speaks::Anthropic, path), Some(Api::Messages), "{path}");
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
            assert_eq!(Api::of(Speaks::Openai, path).or(Api::of(Speaks::Anthropic, path)), None, "{path}");
        }
    }

    #[test]
    fn the_end_of_a_stream_is_told_from_an_error_and_from_all_else() {
        let turn = |api: Api, event: Option<&str>, data: &'static str| {
            let fields = Fields {
                event: event.map(str::to_owned),
                data: Some(Bytes::from_static(data.as_bytes())),
                ..Fields::default()
            };
            api.turn(&fields)
        };
        for (api, event, data, expected) in [
            (Api::Chat, None, "[DONE]", Turn::Whole),
            (Api::Chat, None, " [DONE] ", Turn::Whole),
            (Api::Chat, None, r#"{"choices":[{"delta":{"content":"[DONE]"}}]}"#, Turn::On),
            (Api::Chat, None, r#"{"error":{"message":"overloaded"}}"#, Turn::Failed),
            (Api::Chat, None, r#"{"error":"overloaded"}"#, Turn::Failed),
            (Api::Chat, None, r#"{"choices":[],"error":null}"#, Turn::On),
            (Api::Chat, None, r#"{"choices":[],"error":""}"#, Turn::On),
            (Api::Chat, None, r#"{"choices":[],"error":{}}"#, Turn::On),
            (Api::Chat, None, r#"{"choices":[],"error":[]}"#, Turn::On),
            (Api::Chat, None, r#"{"choices":[],"error":false}"#, Turn::On),
            (Api::Chat, None, r#"{"choices":[],"error":0}"#, Turn::On),
            (Api::Chat, Some("error"), r#"{"error":{}}"#, Turn::Failed),
            (Api::Chat, None, "not json", Turn::On),
            (Api::Responses, Some("response.completed"), "{}", Turn::Whole),
            (Api::Responses, Some("response.failed"), "{}", Turn::Whole),
            (Api::Responses, None, r#"{"type":"response.incomplete","response":{}}"#, Turn::Whole),
            (Api::Responses, Some("response.created"), r#"{"type":"response.completed"}"#, Turn::On),
            (Api::Responses, Some("error"), r#"{"type":"error"}"#, Turn::Failed),
            (Api::Responses, None, "[DONE]", Turn::On),
            (Api::Responses, Some("message"), r#"{"type":"response.completed"}"#, Turn::Whole),
            (
                Api::Responses,
                Some(""),
                r#"{"type":"response.failed","response":{"error":{"code":"x"}}}"#,
                Turn::Whole,
            ),
            (Api::Responses, Some("message"), r#"{"type":"error","message":"x"}"#, Turn::Failed),
            (Api::Messages, Some("message"), r#"{"type":"message_stop"}"#, Turn::Whole),
            (Api::Messages, Some(""), r#"{"type":"message_stop"}"#, Turn::Whole),
            (Api::Messages, Some(""), r#"{"type":"message_start"}"#, Turn::On),
            (Api::Messages, Some("message_stop"), r#"{"type":"message_stop"}"#, Turn::Whole),
            (Api::Messages, None, r#"{"type":"message_stop"}"#, Turn::Whole),
            (Api::Messages, Some("message_delta"), r#"{"type":"message_delta"}"#, Turn::On),
            (
                Api::Messages,
                Some("error"),
                r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
                Turn::Failed,
            ),
        ] {
            assert_eq!(turn(api, event, data), expected, "{api:?} {event:?} {data}");
        }
        assert_eq!(Api::Chat.turn(&Fields::default()), Turn::On);
    }
}
