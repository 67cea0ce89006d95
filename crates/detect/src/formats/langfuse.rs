//! Exports of Langfuse: observations, alone or within a trace, of which those of type `TOOL` are calls.

use super::{ReaderContext, UnreadablePiece, arguments, arguments_in_text, parsed, text_of, time};
use crate::transcript::{ActionCall, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use semel_core::json::Json;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct LangfuseExport<'a> {
    #[serde(borrow)]
    observations: Option<Vec<Observation<'a>>>,
    #[serde(borrow, rename = "sessionId")]
    session: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Observation<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, rename = "traceId")]
    trace: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "parentObservationId")]
    parent: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "startTime")]
    start: Option<Cow<'a, str>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    level: Cow<'a, str>,
    #[serde(borrow, rename = "statusMessage")]
    status_message: Option<Cow<'a, str>>,
}

pub(super) fn read(
    piece: &[u8],
    _context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let export: LangfuseExport<'_> = parsed(piece)?;
    match export.observations {
        Some(mut observations) => {
            observations.sort_by(|one, other| one.start.cmp(&other.start));
            observations.iter().for_each(|one| read_observation(one, export.session.as_deref(), sink));
        }
        None => read_observation(&parsed(piece)?, None, sink),
    }
    Ok(())
}

fn read_observation(
    observation: &Observation<'_>,
    session: Option<&str>,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) {
    if observation.kind != "TOOL" {
        return;
    }
    let session = session.map(Cow::Borrowed).or_else(|| observation.trace.clone());
    let at = time(observation.start.as_deref());
    let input = match arguments(observation.input) {
        Json::String(text) => arguments_in_text(&text),
        input => input,
    };
    let name = observation.name.as_deref().unwrap_or_default();
    let event = TranscriptEvent::RecordedCall(RecordedCall {
        id: observation.id.clone(),
        turn: observation.parent.clone(),
        actions: vec![ActionCall::of_tool(name, input)],
        resends: 0,
    });
    sink(TranscriptEntry { session: session.clone(), at, event });
    let is_error = observation.level == "ERROR";
    let output = text_of(observation.output);
    if is_error || !output.is_empty() {
        let said = observation.status_message.as_deref().filter(|_| is_error);
        let text = said.map_or(output, str::to_owned).into();
        let answer =
            ToolAnswer { id: observation.id.clone(), is_error: Some(is_error), text, interrupted: false };
        sink(TranscriptEntry { session, at, event: TranscriptEvent::ToolAnswer(answer) });
    }
}
