//! The formats of transcripts: which one a document is of, and a reader for each.

mod anthropic;
mod claude_code;
mod codex;
mod gemini;
mod journal;
mod langfuse;
mod langsmith;
pub mod mapped;
mod mcp_log;
mod openai_chat;
mod openai_responses;
mod otlp;

use crate::transcript::{TranscriptEntry, TranscriptEvent};
use mapped::Mapping;
use semel_core::json::{self, Json};
use semel_core::time::At;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TranscriptFormat {
    ClaudeCode,
    Codex,
    Gemini,
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    Otlp,
    LangSmith,
    Langfuse,
    McpLog,
    Journal,
    Mapped,
}

impl TranscriptFormat {
    /// Whether the file tells what a model asked for. The others tell what was sent.
    pub fn is_conversation(self) -> bool {
        !matches!(
            self,
            TranscriptFormat::Otlp
                | TranscriptFormat::LangSmith
                | TranscriptFormat::Langfuse
                | TranscriptFormat::McpLog
                | TranscriptFormat::Journal
                | TranscriptFormat::Mapped
        )
    }
}

/// A document that its format's reader cannot read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadablePiece {
    /// The parser's own words may quote the line, and a line may hold a secret.
    #[error("not JSON of this format, at column {}", .0.column())]
    NotJson(serde_json::Error),
    #[error("not a {0}")]
    OtherShape(&'static str),
}

/// A reader of one file, with what the file has said so far.
#[derive(Debug)]
pub struct FormatReader<'m> {
    format: TranscriptFormat,
    mapping: Option<&'m Mapping>,
    context: ReaderContext,
}

/// Facts that hold for all later entries of a file.
#[derive(Debug, Default)]
struct ReaderContext {
    session: Option<String>,
    /// Counts the connections of an MCP log: ids begin anew with each.
    connection: u32,
    /// Counts the messages of a conversation, as the turns of its calls.
    messages: u64,
    /// Hashes of the beginnings that requests had so far, each up to one of its messages.
    beginnings: HashSet<u64>,
}

/// So many beginnings are remembered.
const BEGINNINGS_MAX: usize = 65_536;

impl ReaderContext {
    /// The messages of a request that no earlier request began with: each one recounts its whole conversation.
    fn new_messages<'a>(&mut self, mut messages: Vec<&'a RawValue>) -> Vec<&'a RawValue> {
        if self.beginnings.len() > BEGINNINGS_MAX {
            self.beginnings.clear();
        }
        let mut hasher = DefaultHasher::new();
        let mut known = 0;
        for (at, message) in messages.iter().enumerate() {
            message.get().hash(&mut hasher);
            if !self.beginnings.insert(hasher.finish()) && known == at {
                known = at + 1;
            }
        }
        messages.split_off(known)
    }
}

/// The format of a document, by its members. `None`: it does not say, as a request that holds no call yet.
pub fn detect(piece: &[u8]) -> Option<TranscriptFormat> {
    let members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(piece).ok()?;
    let has = |name: &str| members.contains_key(name);
    let written = |name: &str| members.get(name).map_or("", |value| value.get());
    let is_list = |name: &str| written(name).starts_with('[');
    let kind = written("type").trim_matches('"');
    if has("resourceSpans") || has("resource_spans") {
        Some(TranscriptFormat::Otlp)
    } else if has("run_type") {
        Some(TranscriptFormat::LangSmith)
    } else if has("observations")
        || (has("traceId") && !kind.is_empty() && kind.chars().all(|c| c.is_ascii_uppercase()))
    {
        Some(TranscriptFormat::Langfuse)
    } else if has("jsonrpc") || written("message").contains("\"jsonrpc\"") {
        Some(TranscriptFormat::McpLog)
    } else if has("payload") && !kind.is_empty() {
        Some(TranscriptFormat::Codex)
    } else if has("projectHash") && has("messages") {
        Some(TranscriptFormat::Gemini)
    } else if (has("sessionId") && !kind.is_empty()) || has("leafUuid") || (has("uuid") && has("message")) {
        Some(TranscriptFormat::ClaudeCode)
    } else if has("effect_id") && has("kind") {
        Some(TranscriptFormat::Journal)
    } else if has("choices") || has("tool_calls") || written("role") == "\"tool\"" {
        Some(TranscriptFormat::OpenAiChat)
    } else if is_list("messages") {
        let has_any = |names: [&str; 2]| names.iter().any(|name| written("messages").contains(name));
        match () {
            () if has_any(["\"tool_calls\"", "\"tool_call_id\""]) => Some(TranscriptFormat::OpenAiChat),
            () if has_any(["tool_use\"", "tool_result\""]) => Some(TranscriptFormat::Anthropic),
            () => None,
        }
    } else if has("call_id") || is_list("output") || (is_list("input") && !has("role")) {
        Some(TranscriptFormat::OpenAiResponses)
    } else if has("role") && is_list("content") {
        Some(TranscriptFormat::Anthropic)
    } else {
        None
    }
}

/// Whether it is a request with messages, of whichever model API.
pub fn is_request(piece: &[u8]) -> bool {
    let members: Option<HashMap<Cow<'_, str>, &RawValue>> = serde_json::from_slice(piece).ok();
    members.is_some_and(|members| members.get("messages").is_some_and(|list| list.get().starts_with('[')))
}

impl<'m> FormatReader<'m> {
    pub fn new(format: TranscriptFormat, mapping: Option<&'m Mapping>) -> FormatReader<'m> {
        FormatReader { format, mapping, context: ReaderContext::default() }
    }

    /// Whether a line that is read by a mapping held a call so far.
    pub fn has_found_call(&self) -> bool {
        self.context.messages > 0
    }

    /// Hands each entry of a document to `sink`.
    pub fn read(
        &mut self,
        piece: &[u8],
        sink: &mut dyn FnMut(TranscriptEntry<'_>),
    ) -> Result<(), UnreadablePiece> {
        let context = &mut self.context;
        match self.format {
            TranscriptFormat::ClaudeCode => claude_code::read(piece, context, sink),
            TranscriptFormat::Codex => codex::read(piece, context, sink),
            TranscriptFormat::Gemini => gemini::read(piece, context, sink),
            TranscriptFormat::OpenAiChat => openai_chat::read(piece, context, sink),
            TranscriptFormat::OpenAiResponses => openai_responses::read(piece, context, sink),
            TranscriptFormat::Anthropic => anthropic::read(piece, context, sink),
            TranscriptFormat::Otlp => otlp::read(piece, context, sink),
            TranscriptFormat::LangSmith => langsmith::read(piece, context, sink),
            TranscriptFormat::Langfuse => langfuse::read(piece, context, sink),
            TranscriptFormat::McpLog => mcp_log::read(piece, context, sink),
            TranscriptFormat::Journal => journal::read(piece, context, sink),
            TranscriptFormat::Mapped => match self.mapping {
                Some(mapping) => mapped::read(piece, mapping, context, sink),
                None => Err(UnreadablePiece::OtherShape("document that a mapping is given for")),
            },
        }
    }
}

fn parsed<'a, T: Deserialize<'a>>(piece: &'a [u8]) -> Result<T, UnreadablePiece> {
    serde_json::from_slice(piece).map_err(UnreadablePiece::NotJson)
}

/// Arguments that stand as JSON. Broken ones are a text: they still tell equal calls.
fn arguments(raw: Option<&RawValue>) -> Json {
    raw.map_or(Json::Null, |raw| {
        json::parse_bounded(raw.get().as_bytes()).unwrap_or_else(|_| Json::str(raw.get()))
    })
}

/// Arguments that stand as JSON in a text.
fn arguments_in_text(text: &str) -> Json {
    json::parse_bounded(text.as_bytes()).unwrap_or_else(|_| Json::str(text))
}

/// The text of a content that is a text, a list of blocks with texts, or any other JSON.
pub(crate) fn text_of(raw: Option<&RawValue>) -> String {
    #[derive(Deserialize)]
    struct TextPart<'a> {
        #[serde(borrow)]
        text: Option<Cow<'a, str>>,
    }
    let Some(raw) = raw else { return String::new() };
    let written = raw.get();
    if written.starts_with('"') {
        return serde_json::from_str(written).unwrap_or_default();
    }
    if written.starts_with('[')
        && let Ok(blocks) = serde_json::from_str::<Vec<TextPart<'_>>>(written)
        && blocks.iter().any(|block| block.text.is_some())
    {
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block.text.as_deref()).collect();
        return texts.join("\n");
    }
    if written == "null" { String::new() } else { written.to_owned() }
}

fn time(text: Option<&str>) -> Option<At> {
    text.and_then(At::parse)
}

fn user_message() -> TranscriptEntry<'static> {
    TranscriptEntry::new(TranscriptEvent::UserMessage)
}
