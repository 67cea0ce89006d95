//! Sessions of Claude Code: `~/.claude/projects/<project>/<session>.jsonl`, one line for each block of a message.

use super::anthropic::blocks;
use super::{ReaderContext, UnreadablePiece, arguments, parsed, text_of, time};
use crate::shell;
use crate::transcript::{ActionCall, RecordedCall, TranscriptEntry, TranscriptEvent};
use semel_core::json::Json;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct SessionLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    subtype: Cow<'a, str>,
    #[serde(borrow, rename = "sessionId")]
    session: Option<Cow<'a, str>>,
    /// A subagent has a conversation of its own.
    #[serde(borrow, rename = "agentId")]
    agent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(default, rename = "isMeta")]
    is_meta: bool,
    #[serde(default, rename = "isCompactSummary")]
    is_compact_summary: bool,
    #[serde(borrow)]
    message: Option<SessionMessage<'a>>,
}

#[derive(Deserialize)]
struct SessionMessage<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// The tools that only read, or work on this machine: the same edit again changes nothing or is refused.
const LOCAL_TOOLS: &[&str] = &[
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "Write",
    "Read",
    "Glob",
    "Grep",
    "LS",
    "TodoWrite",
    "TodoRead",
    "WebFetch",
    "WebSearch",
    "Task",
    "Agent",
    "ExitPlanMode",
    "EnterPlanMode",
    "BashOutput",
    "KillShell",
    "TaskOutput",
    "Skill",
    "AskUserQuestion",
    "ToolSearch",
    "TaskCreate",
    "TaskUpdate",
    "TaskList",
    "TaskGet",
];

pub(super) fn read(
    piece: &[u8],
    _context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let line: SessionLine<'_> = parsed(piece)?;
    let session = match (&line.session, &line.agent) {
        (Some(session), Some(agent)) => Some(Cow::Owned(format!("{session}/{agent}"))),
        (session, _) => session.clone(),
    };
    let at = time(line.timestamp.as_deref());
    let mut emit = |event: TranscriptEvent<'_>| sink(TranscriptEntry { session: session.clone(), at, event });
    if line.is_compact_summary || line.subtype == "compact_boundary" {
        emit(TranscriptEvent::Compaction);
        return Ok(());
    }
    let Some(message) = line.message.filter(|_| !line.is_meta) else { return Ok(()) };
    match line.kind.as_ref() {
        "assistant" => {
            for block in blocks(message.content) {
                match block.kind.as_ref() {
                    "text" => emit(TranscriptEvent::ModelText(block.text.unwrap_or_default())),
                    "tool_use" => {
                        let name = block.name.unwrap_or_default();
                        emit(TranscriptEvent::RecordedCall(RecordedCall {
                            id: block.id.unwrap_or_default(),
                            turn: message.id.clone(),
                            actions: actions(&name, block.input),
                            resends: 0,
                        }));
                    }
                    _ => {}
                }
            }
        }
        "user" => {
            let mut spoke = String::new();
            match message.content {
                Some(content) if content.get().starts_with('[') => {
                    for block in blocks(Some(content)) {
                        match block.kind.as_ref() {
                            "text" => spoke.push_str(&block.text.unwrap_or_default()),
                            "tool_result" => emit(TranscriptEvent::ToolAnswer(block.into_answer())),
                            _ => {}
                        }
                    }
                }
                content => spoke = text_of(content),
            }
            if spoke.starts_with("[Request interrupted by user") {
                emit(TranscriptEvent::UserStop);
            } else if !spoke.is_empty() && !spoke.starts_with('<') {
                // Texts that begin with a tag are put there by the program.
                emit(TranscriptEvent::UserMessage);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Of the shell tool the commands of its line, and nothing of tools that work on local files.
fn actions(name: &str, input: Option<&RawValue>) -> Vec<ActionCall> {
    if LOCAL_TOOLS.contains(&name) {
        return Vec::new();
    }
    let input = arguments(input);
    match (name, input.get("command").and_then(Json::as_str)) {
        ("Bash", Some(line)) => shell::actions(line),
        _ => vec![ActionCall::of_tool(name, input)],
    }
}
