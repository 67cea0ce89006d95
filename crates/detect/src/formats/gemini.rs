//! Sessions of Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json`, one document with all messages.

use super::{ReaderContext, UnreadablePiece, arguments, parsed, text_of, time};
use crate::shell;
use crate::transcript::{ActionCall, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use semel_core::json::Json;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct GeminiSession<'a> {
    #[serde(borrow, rename = "sessionId")]
    session: Option<Cow<'a, str>>,
    #[serde(borrow)]
    messages: Vec<GeminiMessage<'a>>,
}

#[derive(Deserialize)]
struct GeminiMessage<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, rename = "toolCalls")]
    tool_calls: Option<Vec<GeminiCall<'a>>>,
}

#[derive(Deserialize)]
struct GeminiCall<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
}

/// The tools that work on local files, or only read.
const LOCAL_TOOLS: &[&str] = &[
    "read_file",
    "write_file",
    "replace",
    "list_directory",
    "glob",
    "search_file_content",
    "grep_search",
    "read_many_files",
    "save_memory",
    "web_fetch",
    "google_web_search",
    "write_todos",
    "ask_user",
];

pub(super) fn read(
    piece: &[u8],
    _context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let conversation: GeminiSession<'_> = parsed(piece)?;
    for message in &conversation.messages {
        let at = time(message.timestamp.as_deref());
        let mut emit = |at, event: TranscriptEvent<'_>| {
            sink(TranscriptEntry { session: conversation.session.clone(), at, event })
        };
        match message.kind.as_ref() {
            "user" => emit(at, TranscriptEvent::UserMessage),
            "gemini" => {
                for call in message.tool_calls.iter().flatten() {
                    let at = time(call.timestamp.as_deref()).or(at);
                    emit(
                        at,
                        TranscriptEvent::RecordedCall(RecordedCall {
                            id: call.id.clone(),
                            turn: message.id.clone(),
                            actions: actions(&call.name, arguments(call.args)),
                            resends: 0,
                        }),
                    );
                    if call.result.is_some() || !call.status.is_empty() {
                        // A command that failed is a success of the shell tool.
                        let text = result_text(call.result);
                        let (code, output) = shell::ended(&text);
                        let is_error = call.status == "error" || code.is_some_and(|code| code != 0);
                        emit(
                            at,
                            TranscriptEvent::ToolAnswer(ToolAnswer {
                                id: call.id.clone(),
                                is_error: Some(is_error),
                                text: output.into(),
                                interrupted: call.status == "cancelled",
                            }),
                        );
                    }
                }
                let text = text_of(message.content);
                if !text.is_empty() {
                    emit(at, TranscriptEvent::ModelText(Cow::Owned(text)));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn actions(name: &str, arguments: Json) -> Vec<ActionCall> {
    if LOCAL_TOOLS.contains(&name) {
        return Vec::new();
    }
    match (name, arguments.get("command").and_then(Json::as_str)) {
        ("run_shell_command", Some(line)) => shell::actions(line),
        // A server's tool stands as `server__tool`, or alone where no other has its name.
        _ => match name.split_once("__") {
            Some((server, tool)) if !name.starts_with("mcp__") => {
                let call = ActionCall::of_tool(tool, arguments);
                vec![ActionCall { action: format!("mcp:{server}/{tool}"), ..call }]
            }
            _ => vec![ActionCall::of_tool(name, arguments)],
        },
    }
}

/// The text within `[{"functionResponse":{"response":{"output":"…"}}}]`.
fn result_text(result: Option<&RawValue>) -> String {
    #[derive(Deserialize)]
    struct Part<'a> {
        #[serde(borrow, rename = "functionResponse")]
        response: Option<FunctionResponse<'a>>,
    }
    #[derive(Deserialize)]
    struct FunctionResponse<'a> {
        #[serde(borrow)]
        response: Option<FunctionOutput<'a>>,
    }
    #[derive(Deserialize)]
    struct FunctionOutput<'a> {
        #[serde(borrow)]
        output: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    let parts: Vec<Part<'_>> =
        result.and_then(|result| serde_json::from_str(result.get()).ok()).unwrap_or_default();
    let outputs = parts.into_iter().filter_map(|part| part.response?.response);
    outputs.map(|output| text_of(output.error.or(output.output))).collect::<Vec<_>>().join("\n")
}
