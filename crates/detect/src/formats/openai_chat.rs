//! OpenAI chat completions: requests with their `messages`, single messages, and responses with `choices`.

use super::{ReaderContext, UnreadablePiece, arguments_in_text, parsed, text_of, user_message};
use crate::transcript::{ActionCall, AnswerText, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct ChatDocument<'a> {
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Option<ChatMessage<'a>>,
}

#[derive(Deserialize)]
struct ChatMessage<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ChatFunctionCall<'a>>>,
    #[serde(borrow)]
    tool_call_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ChatFunctionCall<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Cow<'a, str>,
}

pub(super) fn read(
    piece: &[u8],
    context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let document: ChatDocument<'_> = parsed(piece)?;
    match (document.messages, document.choices) {
        (None, None) => read_message(parsed(piece)?, context, sink),
        (messages, choices) => {
            let chosen = choices.into_iter().flatten().filter_map(|choice| choice.message);
            for message in context.new_messages(messages.unwrap_or_default()) {
                let message = serde_json::from_str(message.get()).map_err(UnreadablePiece::NotJson)?;
                read_message(message, context, sink);
            }
            chosen.for_each(|message| read_message(message, context, sink));
        }
    }
    Ok(())
}

fn read_message(
    message: ChatMessage<'_>,
    context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) {
    context.messages += 1;
    let turn = context.messages.to_string();
    match message.role.as_ref() {
        "user" => sink(user_message()),
        "tool" => sink(TranscriptEntry::new(TranscriptEvent::ToolAnswer(ToolAnswer {
            id: message.tool_call_id.unwrap_or_default(),
            is_error: None,
            text: AnswerText::Content(message.content),
            interrupted: false,
        }))),
        _ => {
            let text = text_of(message.content);
            if !text.is_empty() {
                sink(TranscriptEntry::new(TranscriptEvent::ModelText(Cow::Owned(text))));
            }
            for call in message.tool_calls.into_iter().flatten() {
                let Some(function) = call.function else { continue };
                sink(TranscriptEntry::new(TranscriptEvent::RecordedCall(RecordedCall {
                    id: call.id,
                    turn: Some(Cow::Borrowed(&turn)),
                    actions: vec![ActionCall::of_tool(
                        &function.name,
                        arguments_in_text(&function.arguments),
                    )],
                    resends: 0,
                })));
            }
        }
    }
}
