//! Anthropic messages: requests with their `messages`, single messages, and responses.

use super::{ReaderContext, UnreadablePiece, arguments, parsed, user_message};
use crate::transcript::{ActionCall, AnswerText, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct MessagesDocument<'a> {
    #[serde(borrow)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
}

/// A block of a message, of any kind.
#[derive(Debug, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    server_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
}

impl<'a> Block<'a> {
    pub(super) fn into_answer(self) -> ToolAnswer<'a> {
        ToolAnswer {
            id: self.tool_use_id.unwrap_or_default(),
            // The mark is left out of answers that are no errors.
            is_error: Some(self.is_error.unwrap_or(false)),
            text: AnswerText::Content(self.content),
            interrupted: false,
        }
    }
}

/// The blocks of a content; a text alone is one block.
pub(super) fn blocks(content: Option<&RawValue>) -> Vec<Block<'_>> {
    let Some(content) = content else { return Vec::new() };
    if content.get().starts_with('"') {
        let text = serde_json::from_str(content.get()).ok();
        let (id, name, server_name, input) = (None, None, None, None);
        let (tool_use_id, content, is_error) = (None, None, None);
        let kind = Cow::Borrowed("text");
        return vec![Block { kind, text, id, name, server_name, input, tool_use_id, content, is_error }];
    }
    serde_json::from_str(content.get()).unwrap_or_default()
}

pub(super) fn read(
    piece: &[u8],
    context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let document: MessagesDocument<'_> = parsed(piece)?;
    match document.messages {
        Some(messages) => {
            for message in context.new_messages(messages) {
                let message = serde_json::from_str(message.get()).map_err(UnreadablePiece::NotJson)?;
                read_message(&message, context, sink);
            }
        }
        None => read_message(&document, context, sink),
    }
    Ok(())
}

fn read_message(
    message: &MessagesDocument<'_>,
    context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) {
    context.messages += 1;
    let turn = context.messages.to_string();
    let is_user = message.role.as_deref() == Some("user");
    let mut spoke = false;
    for block in blocks(message.content) {
        match block.kind.as_ref() {
            "text" if is_user => spoke = true,
            "text" => sink(TranscriptEntry::new(TranscriptEvent::ModelText(block.text.unwrap_or_default()))),
            "tool_use" | "mcp_tool_use" => {
                let mut call =
                    ActionCall::of_tool(block.name.as_deref().unwrap_or_default(), arguments(block.input));
                if let Some(server) = &block.server_name {
                    call.action = format!("mcp:{server}/{}", block.name.as_deref().unwrap_or_default());
                }
                sink(TranscriptEntry::new(TranscriptEvent::RecordedCall(RecordedCall {
                    id: block.id.unwrap_or_default(),
                    turn: Some(Cow::Borrowed(&turn)),
                    actions: vec![call],
                    resends: 0,
                })));
            }
            "tool_result" | "mcp_tool_result" => {
                sink(TranscriptEntry::new(TranscriptEvent::ToolAnswer(block.into_answer())))
            }
            _ => {}
        }
    }
    if spoke {
        sink(user_message());
    }
}
