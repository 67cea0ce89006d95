//! The entries of a transcript, whatever program wrote it.

use crate::formats::text_of;
use semel_core::json::Json;
use semel_core::time::At;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// One entry, in the order of its file.
#[derive(Debug, Clone)]
pub struct TranscriptEntry<'a> {
    /// The conversation that it belongs to, if the entry says so.
    pub session: Option<Cow<'a, str>>,
    pub at: Option<At>,
    pub event: TranscriptEvent<'a>,
}

impl<'a> TranscriptEntry<'a> {
    pub fn new(event: TranscriptEvent<'a>) -> TranscriptEntry<'a> {
        TranscriptEntry { session: None, at: None, event }
    }
}

#[derive(Debug, Clone)]
pub enum TranscriptEvent<'a> {
    RecordedCall(RecordedCall<'a>),
    ToolAnswer(ToolAnswer<'a>),
    UserMessage,
    /// The person stopped the agent.
    UserStop,
    /// The agent's history was replaced by a summary.
    Compaction,
    /// The model spoke. The last of a turn may claim a success.
    ModelText(Cow<'a, str>),
}

/// A call as the model, or the layer that was traced, made it.
#[derive(Debug, Clone)]
pub struct RecordedCall<'a> {
    /// Pairs it with its answer.
    pub id: Cow<'a, str>,
    /// The model's message that it stands in; calls of one message were made at once.
    pub turn: Option<Cow<'a, str>>,
    /// The actions that it carries out: one for a tool, each command of a shell line, none for a tool that only works on
    /// local files.
    pub actions: Vec<ActionCall>,
    /// How many times the layer below had sent it before, where a trace counts that.
    pub resends: u32,
}

/// One action, as rules know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionCall {
    /// The full name, such as `mcp:github/create_issue`.
    pub action: String,
    /// One object with the roots that rules speak of: `args`, `argv`, ….
    pub arguments: Json,
}

impl ActionCall {
    /// A tool that a transcript calls by one word. Agents write `mcp__server__tool`.
    pub fn of_tool(name: &str, arguments: Json) -> ActionCall {
        let mcp = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        let action = match mcp {
            Some((server, tool)) => format!("mcp:{server}/{tool}"),
            None => format!("fn:{name}"),
        };
        ActionCall { action, arguments: Json::object([("args", arguments)]) }
    }
}

#[derive(Debug, Clone)]
pub struct ToolAnswer<'a> {
    pub id: Cow<'a, str>,
    /// The mark of an error. `None`: the format has none.
    pub is_error: Option<bool>,
    pub text: AnswerText<'a>,
    /// The person stopped the agent while the tool ran.
    pub interrupted: bool,
}

/// The text of an answer. Most answers are long and of calls that change nothing, so they are read only when asked for.
#[derive(Debug, Clone)]
pub enum AnswerText<'a> {
    Read(Cow<'a, str>),
    /// A content as models know it: a text, or a list of blocks with texts.
    Content(Option<&'a RawValue>),
}

impl AnswerText<'_> {
    pub fn read(&self) -> Cow<'_, str> {
        match self {
            AnswerText::Read(text) => Cow::Borrowed(text),
            AnswerText::Content(content) => Cow::Owned(text_of(*content)),
        }
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for AnswerText<'a> {
    fn from(text: T) -> Self {
        AnswerText::Read(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_servers_are_named_as_rules_name_them() {
        let named = |name: &str| ActionCall::of_tool(name, Json::Null).action;
        assert_eq!(named("mcp__billing__create_charge"), "mcp:billing/create_charge");
        assert_eq!(named("mcp__billing__get__all"), "mcp:billing/get__all");
        assert_eq!(named("charge"), "fn:charge");
        assert_eq!(named("mcp__odd"), "fn:mcp__odd");
    }
}
