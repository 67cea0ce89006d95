//! OpenAI responses: items alone, requests with `input`, and responses with `output`.

use super::{ReaderContext, UnreadablePiece, arguments_in_text, parsed, text_of, user_message};
use crate::transcript::{ActionCall, AnswerText, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct ResponsesDocument<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

/// An item of a conversation, of any kind.
#[derive(Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub role: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub content: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub call_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    server_label: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub arguments: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Item<'_> {
    /// The function that it calls, as rules name it.
    pub(super) fn function(&self) -> ActionCall {
        let name = self.name.as_deref().unwrap_or_default();
        let arguments = arguments_in_text(self.arguments.as_deref().unwrap_or_default());
        match &self.namespace {
            Some(namespace) => ActionCall::of_tool(&format!("{namespace}__{name}"), arguments),
            None => ActionCall::of_tool(name, arguments),
        }
    }
}

pub(super) fn read(
    piece: &[u8],
    context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let document: ResponsesDocument<'_> = parsed(piece)?;
    let (input, output) = (items(document.input)?, items(document.output)?);
    if input.is_none() && output.is_none() {
        read_item(&parsed(piece)?, None, context, sink);
    }
    let input = context.new_messages(input.unwrap_or_default());
    for item in input.into_iter().chain(output.into_iter().flatten()) {
        let item = serde_json::from_str(item.get()).map_err(UnreadablePiece::NotJson)?;
        read_item(&item, document.id.as_deref(), context, sink);
    }
    Ok(())
}

/// `None`: it is no list.
fn items(list: Option<&RawValue>) -> Result<Option<Vec<&RawValue>>, UnreadablePiece> {
    let list = list.filter(|list| list.get().starts_with('['));
    list.map(|list| serde_json::from_str(list.get())).transpose().map_err(UnreadablePiece::NotJson)
}

fn read_item(
    item: &Item<'_>,
    response: Option<&str>,
    context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) {
    let answer = |id: &Option<Cow<'_, str>>, is_error, text| ToolAnswer {
        id: Cow::Owned(id.as_deref().unwrap_or_default().to_owned()),
        is_error,
        text,
        interrupted: false,
    };
    match item.kind.as_ref() {
        "function_call" | "mcp_call" => {
            let is_mcp = item.kind == "mcp_call";
            let id = if is_mcp { &item.id } else { &item.call_id };
            let mut call = item.function();
            if let Some(server) = item.server_label.as_deref().filter(|_| is_mcp) {
                call.action = format!("mcp:{server}/{}", item.name.as_deref().unwrap_or_default());
            }
            let turn = response.map_or_else(|| context.messages.to_string(), str::to_owned);
            sink(TranscriptEntry::new(TranscriptEvent::RecordedCall(RecordedCall {
                id: Cow::Borrowed(id.as_deref().unwrap_or_default()),
                turn: Some(Cow::Owned(turn)),
                actions: vec![call],
                resends: 0,
            })));
            // A call of a hosted server carries its own answer.
            let error = item.error.map(|error| text_of(Some(error))).filter(|text| !text.is_empty());
            if is_mcp && (item.output.is_some() || error.is_some()) {
                let is_error = error.is_some();
                let text = error.map_or(AnswerText::Content(item.output), AnswerText::from);
                sink(TranscriptEntry::new(TranscriptEvent::ToolAnswer(answer(id, Some(is_error), text))));
            }
        }
        "function_call_output" => {
            context.messages += 1;
            sink(TranscriptEntry::new(TranscriptEvent::ToolAnswer(answer(
                &item.call_id,
                None,
                AnswerText::Content(item.output),
            ))));
        }
        _ if item.role.as_deref() == Some("user") => {
            context.messages += 1;
            sink(user_message());
        }
        _ if item.role.as_deref() == Some("assistant") => {
            context.messages += 1;
            sink(TranscriptEntry::new(TranscriptEvent::ModelText(Cow::Owned(text_of(item.content)))));
        }
        _ => {}
    }
}
