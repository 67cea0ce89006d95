//! semel's own journal, as `semel ledger tail --json` prints it. It tells subjects, not arguments.
//!
//! A record carries the state of its effect. A doubt is no answer yet: a probe or a ruling may still give it, and a claim
//! that finds none repeats a call whose outcome nobody knew.

use super::{ReaderContext, UnreadablePiece, parsed, time};
use crate::transcript::{ActionCall, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use semel_core::json::{Json, Number};
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Deserialize)]
struct JournalRecord<'a> {
    #[serde(borrow)]
    at: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    effect_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    data: Option<LineData<'a>>,
}

#[derive(Deserialize)]
struct LineData<'a> {
    #[serde(borrow, default)]
    action: Cow<'a, str>,
    #[serde(borrow, default)]
    subject: Cow<'a, str>,
    #[serde(borrow, default)]
    state: Cow<'a, str>,
    #[serde(default)]
    attempt: u32,
    #[serde(default)]
    occurrence: u32,
}

pub(super) fn read(
    piece: &[u8],
    _context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let line: JournalRecord<'_> = parsed(piece)?;
    let (Some(effect), Some(data)) = (line.effect_id, line.data) else { return Ok(()) };
    let (id, at) = (effect, time(line.at.as_deref()));
    let answer = |id, is_error, text: &'static str| {
        let text = text.into();
        TranscriptEvent::ToolAnswer(ToolAnswer { id, is_error: Some(is_error), text, interrupted: false })
    };
    let event = match (line.kind.as_ref(), data.state.as_ref()) {
        ("claimed" | "resent", _) => {
            let occurrence = Json::Number(Number::from_u64(u64::from(data.occurrence)));
            let subject = Json::object([("subject", Json::str(&data.subject)), ("occurrence", occurrence)]);
            let arguments = Json::object([("args", subject)]);
            let actions = vec![ActionCall { action: data.action.into_owned(), arguments }];
            TranscriptEvent::RecordedCall(RecordedCall {
                id,
                turn: None,
                actions,
                resends: data.attempt.saturating_sub(1),
            })
        }
        (_, "applied") => answer(id, false, ""),
        (_, "not_applied") => answer(id, true, "request denied"),
        _ => return Ok(()),
    };
    sink(TranscriptEntry { session: None, at, event });
    Ok(())
}
