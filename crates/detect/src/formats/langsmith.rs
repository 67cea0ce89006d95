//! Exports of LangSmith: runs, of which those of type `tool` are calls.

use super::{ReaderContext, UnreadablePiece, arguments, arguments_in_text, parsed, text_of, time};
use crate::transcript::{ActionCall, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use semel_core::json::Json;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct RunJson<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    run_type: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    inputs: Option<&'a RawValue>,
    #[serde(borrow)]
    outputs: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<Cow<'a, str>>,
    #[serde(borrow)]
    start_time: Option<Cow<'a, str>>,
    #[serde(borrow)]
    end_time: Option<Cow<'a, str>>,
    #[serde(borrow)]
    trace_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    parent_run_id: Option<Cow<'a, str>>,
}

pub(super) fn read(
    piece: &[u8],
    _context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let run: RunJson<'_> = parsed(piece)?;
    if run.run_type != "tool" {
        return Ok(());
    }
    let session = run.trace_id.clone();
    // Written without a zone, in UTC.
    let written = |text: &Option<Cow<'_, str>>| {
        let text = text.as_deref()?;
        time(Some(text)).or_else(|| time(Some(&format!("{text}Z"))))
    };
    let event = TranscriptEvent::RecordedCall(RecordedCall {
        id: run.id.clone(),
        turn: run.parent_run_id.clone(),
        actions: vec![ActionCall::of_tool(&run.name, inputs(run.inputs))],
        resends: 0,
    });
    sink(TranscriptEntry { session: session.clone(), at: written(&run.start_time), event });
    let has_ended = run.outputs.is_some_and(|outputs| outputs.get() != "null") || run.error.is_some();
    if has_ended {
        let is_error = run.error.is_some();
        let text = match run.error {
            Some(error) => message(&error).to_owned(),
            None => output(run.outputs),
        };
        let event = TranscriptEvent::ToolAnswer(ToolAnswer {
            id: run.id,
            is_error: Some(is_error),
            text: text.into(),
            interrupted: false,
        });
        sink(TranscriptEntry { session, at: written(&run.end_time), event });
    }
    Ok(())
}

/// LangChain hands some tools one text that holds their arguments.
fn inputs(raw: Option<&RawValue>) -> Json {
    let inputs = arguments(raw);
    match inputs.as_object().filter(|members| members.len() == 1).and_then(|members| members.get("input")) {
        Some(Json::String(text)) if text.trim_start().starts_with('{') => arguments_in_text(text),
        _ => inputs,
    }
}

fn output(raw: Option<&RawValue>) -> String {
    #[derive(Deserialize)]
    struct Outputs<'a> {
        #[serde(borrow)]
        output: Option<&'a RawValue>,
    }
    let inner = raw.and_then(|raw| serde_json::from_str::<Outputs<'_>>(raw.get()).ok()?.output);
    text_of(inner.or(raw))
}

/// The message within `ToolException('card declined')` and the traceback below it: the type's name says that it was
/// an error, not which.
fn message(error: &str) -> &str {
    let first = error.split("\n\nTraceback").next().unwrap_or(error).trim();
    let inner = first.split_once('(').and_then(|(name, rest)| {
        let is_type = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
        rest.strip_suffix(')').filter(|_| is_type)
    });
    inner.map_or(first, |inner| inner.trim_matches(['"', '\'']))
}
