//! Sessions of Codex: `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-*.jsonl`, whose payloads are items of OpenAI responses.

use super::openai_responses::Item;
use super::{ReaderContext, UnreadablePiece, parsed, text_of, time};
use crate::shell;
use crate::transcript::{ActionCall, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use semel_core::json::Json;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct RolloutLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SessionMeta<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct EventMessage<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
}

/// The result of the shell tool: its text, and how the command ended.
#[derive(Deserialize)]
struct ShellResult<'a> {
    #[serde(borrow)]
    output: Cow<'a, str>,
    metadata: Option<ShellEnd>,
}

#[derive(Deserialize)]
struct ShellEnd {
    exit_code: i64,
}

pub(super) fn read(
    piece: &[u8],
    context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let line: RolloutLine<'_> = parsed(piece)?;
    let at = time(line.timestamp.as_deref());
    let payload = line.payload.map_or("null", RawValue::get);
    if line.kind == "session_meta" {
        context.session = serde_json::from_str::<SessionMeta<'_>>(payload)
            .ok()
            .and_then(|meta| meta.id.map(Cow::into_owned));
        return Ok(());
    }
    let session = context.session.clone();
    let mut emit = |event: TranscriptEvent<'_>| {
        sink(TranscriptEntry { session: session.as_deref().map(Cow::Borrowed), at, event })
    };
    match line.kind.as_ref() {
        "compacted" => emit(TranscriptEvent::Compaction),
        "event_msg" => {
            let message: EventMessage<'_> =
                serde_json::from_str(payload).map_err(UnreadablePiece::NotJson)?;
            match message.kind.as_ref() {
                "user_message" => {
                    context.messages += 1;
                    emit(TranscriptEvent::UserMessage);
                }
                "turn_aborted" => emit(TranscriptEvent::UserStop),
                _ => {}
            }
        }
        "response_item" => {
            let item: Item<'_> = serde_json::from_str(payload).map_err(UnreadablePiece::NotJson)?;
            match item.kind.as_ref() {
                "function_call" => emit(TranscriptEvent::RecordedCall(RecordedCall {
                    id: Cow::Borrowed(item.call_id.as_deref().unwrap_or_default()),
                    turn: Some(Cow::Owned(context.messages.to_string())),
                    actions: actions(&item),
                    resends: 0,
                })),
                "function_call_output" => {
                    context.messages += 1;
                    let (is_error, text) = answer(item.output);
                    let id = Cow::Borrowed(item.call_id.as_deref().unwrap_or_default());
                    let text = text.into();
                    emit(TranscriptEvent::ToolAnswer(ToolAnswer { id, is_error, text, interrupted: false }));
                }
                "message" if item.role.as_deref() == Some("assistant") => {
                    emit(TranscriptEvent::ModelText(Cow::Owned(text_of(item.content))));
                }
                _ => {}
            }
        }
        _ => {}
    }
    Ok(())
}

/// Of the shell tools the commands of their line, and nothing of the tool that edits local files.
fn actions(item: &Item<'_>) -> Vec<ActionCall> {
    let call = item.function();
    let arguments = call.arguments.get("args").cloned().unwrap_or(Json::Null);
    let line = ["cmd", "command"].into_iter().find_map(|name| arguments.get(name));
    match (item.name.as_deref().unwrap_or_default(), line) {
        ("apply_patch" | "update_plan" | "view_image" | "write_stdin", _) => Vec::new(),
        ("shell" | "exec_command" | "shell_command" | "local_shell", Some(Json::String(line))) => {
            shell::actions(line)
        }
        ("shell" | "exec_command" | "local_shell", Some(Json::Array(words))) => {
            let words: Vec<String> =
                words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect();
            shell::actions_of_argv(&words)
        }
        _ => vec![call],
    }
}

/// The text of an answer, and its mark of an error where a command's exit code gives one.
fn answer(output: Option<&RawValue>) -> (Option<bool>, String) {
    let text = text_of(output);
    if let Ok(ShellResult { output, metadata: Some(end) }) = serde_json::from_str(&text) {
        return (Some(end.exit_code != 0), output.into_owned());
    }
    let (code, output) = shell::ended(&text);
    (code.map(|code| code != 0), output.to_owned())
}
