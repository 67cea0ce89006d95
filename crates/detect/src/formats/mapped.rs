//! JSON lines of any program, read by a mapping: which member is the tool, which its arguments, and so on.

use super::{ReaderContext, UnreadablePiece};
use crate::transcript::{ActionCall, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use semel_core::json::{self, Json, Path, PathError};
use semel_core::time::At;
use std::borrow::Cow;

/// The paths of a record's members.
#[derive(Debug, Clone, Default)]
pub struct Mapping {
    tool: Option<Path>,
    arguments: Option<Path>,
    result: Option<Path>,
    error: Option<Path>,
    id: Option<Path>,
    session: Option<Path>,
    time: Option<Path>,
}

#[derive(Debug, thiserror::Error)]
pub enum BadMapping {
    #[error("`{0}` is not of the form name=path")]
    Form(String),
    #[error("there is no `{0}` to map; use tool, args, result, error, id, session or time")]
    Name(String),
    #[error("`{0}` is no path: {1}")]
    Path(String, PathError),
    #[error("a mapping needs tool and args")]
    Incomplete,
}

impl Mapping {
    /// `tool=event.tool,args=event.input,result=event.output,time=ts`.
    pub fn parse(text: &str) -> Result<Mapping, BadMapping> {
        let mut mapping = Mapping::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, written) = part.split_once('=').ok_or_else(|| BadMapping::Form(part.to_owned()))?;
            let path =
                Path::parse(written.trim()).map_err(|error| BadMapping::Path(written.to_owned(), error))?;
            let member = match name.trim() {
                "tool" => &mut mapping.tool,
                "args" => &mut mapping.arguments,
                "result" => &mut mapping.result,
                "error" => &mut mapping.error,
                "id" => &mut mapping.id,
                "session" => &mut mapping.session,
                "time" => &mut mapping.time,
                other => return Err(BadMapping::Name(other.to_owned())),
            };
            *member = Some(path);
        }
        match (&mapping.tool, &mapping.arguments) {
            (Some(_), Some(_)) => Ok(mapping),
            _ => Err(BadMapping::Incomplete),
        }
    }
}

pub(super) fn read(
    piece: &[u8],
    mapping: &Mapping,
    context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let record = json::parse_bounded(piece).map_err(|_| UnreadablePiece::OtherShape("JSON document"))?;
    let find = |path: &Option<Path>| {
        let found = path.as_ref()?.find(&record);
        found.into_iter().next().map(|(_, value)| value.clone())
    };
    let text = |path: &Option<Path>| find(path).filter(|value| *value != Json::Null).map(written);
    let Some(tool) = text(&mapping.tool) else { return Ok(()) };
    context.messages += 1;
    let id = text(&mapping.id).unwrap_or_else(|| context.messages.to_string());
    let session = text(&mapping.session).map(Cow::Owned);
    let at = find(&mapping.time).and_then(|value| match &value {
        Json::String(text) => At::parse(text),
        Json::Number(number) => number.as_f64().map(seconds),
        _ => None,
    });
    let arguments = match find(&mapping.arguments).unwrap_or(Json::Null) {
        Json::String(text) => super::arguments_in_text(&text),
        value => value,
    };
    // A full name is taken as it is.
    let call = ActionCall::of_tool(&tool, arguments);
    let call = if tool.contains(':') { ActionCall { action: tool, ..call } } else { call };
    let event = RecordedCall { id: Cow::Borrowed(&id), turn: None, actions: vec![call], resends: 0 };
    sink(TranscriptEntry { session: session.clone(), at, event: TranscriptEvent::RecordedCall(event) });
    let error = text(&mapping.error).filter(|text| !matches!(text.as_str(), "" | "false"));
    // A mere mark leaves the words to the result.
    let words = error.clone().filter(|text| text != "true").or_else(|| text(&mapping.result));
    if let Some(said) = words.or_else(|| error.clone()) {
        let is_error = mapping.error.as_ref().map(|_| error.is_some());
        let answer = ToolAnswer { id: Cow::Borrowed(&id), is_error, text: said.into(), interrupted: false };
        sink(TranscriptEntry { session, at, event: TranscriptEvent::ToolAnswer(answer) });
    }
    Ok(())
}

fn written(value: Json) -> String {
    match value {
        Json::String(text) => text,
        value => value.canonical(),
    }
}

/// A time in seconds or milliseconds since 1970; later than the year 5000 in seconds, it is milliseconds.
fn seconds(number: f64) -> At {
    const MILLIS_FROM: f64 = 1e11;
    let millis = if number > MILLIS_FROM { number } else { number * 1e3 };
    At::from_millis(millis.max(0.0) as u64)
}
