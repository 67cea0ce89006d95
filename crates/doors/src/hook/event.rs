//! The event that a client tells its hook, read from its JSON. Who the client is can be seen from the event itself: several
//! clients read the same project file.

use super::client::Client;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Beyond this a line of shell is data.
pub const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub struct HookEvent {
    pub client: Client,
    pub session: String,
    pub cwd: Option<PathBuf>,
    /// The client's own record of the session.
    pub transcript: Option<PathBuf>,
    pub kind: EventKind,
}

#[derive(Debug)]
pub enum EventKind {
    BeforeTool(ToolCall),
    AfterTool {
        call: ToolCall,
        /// The answer of the tool, in its own form.
        response: Value,
    },
    ToolFailed {
        call: ToolCall,
        error: String,
        interrupted: bool,
    },
    /// A session begins, or goes on.
    SessionStarted(SessionSource),
    /// Anything that needs no answer, and is an occasion to look after calls that have no end yet.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionSource {
    New,
    /// It goes on with a conversation that another process had.
    Resumed,
    /// Its conversation was shortened.
    Compacted,
}

#[derive(Debug)]
pub struct ToolCall {
    pub tool: String,
    /// The model's id of the call. Gemini CLI has none.
    pub id: Option<String>,
    pub input: Map<String, Value>,
}

impl ToolCall {
    /// The line of shell that it is about to run.
    pub fn line(&self) -> Option<&str> {
        self.input.get("command")?.as_str()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Form {
    client: Option<Client>,
    hook_event_name: String,
    session_id: String,
    transcript_path: Option<PathBuf>,
    cwd: Option<PathBuf>,
    turn_id: Option<Value>,
    tool_name: String,
    tool_input: Map<String, Value>,
    tool_use_id: Option<String>,
    tool_call_id: Option<String>,
    tool_response: Value,
    error: Value,
    is_interrupt: bool,
    source: String,
}

impl HookEvent {
    pub fn read(bytes: &[u8]) -> Result<HookEvent, String> {
        let form: Form =
            serde_json::from_slice(bytes).map_err(|error| format!("the event is not understood: {error}"))?;
        if form.hook_event_name.is_empty() || form.session_id.is_empty() {
            return Err("the event names no hook_event_name or no session_id".to_owned());
        }
        let client = form.client.unwrap_or_else(|| form.guess_client());
        let call = ToolCall {
            tool: form.tool_name,
            // Of Qwen Code's two, this one is the same before and after.
            id: form.tool_call_id.or(form.tool_use_id),
            input: form.tool_input,
        };
        let kind = match form.hook_event_name.as_str() {
            "PreToolUse" | "BeforeTool" => EventKind::BeforeTool(call),
            "PostToolUse" | "AfterTool" => EventKind::AfterTool { call, response: form.tool_response },
            "PostToolUseFailure" => {
                let error = form.error.as_str().map_or_else(|| form.error.to_string(), str::to_owned);
                EventKind::ToolFailed { call, error, interrupted: form.is_interrupt }
            }
            "SessionStart" => EventKind::SessionStarted(match form.source.as_str() {
                "compact" => SessionSource::Compacted,
                "resume" | "fork" => SessionSource::Resumed,
                _ => SessionSource::New,
            }),
            _ => EventKind::Other,
        };
        Ok(HookEvent {
            client,
            session: form.session_id,
            cwd: form.cwd,
            transcript: form.transcript_path,
            kind,
        })
    }

    /// The run of its calls, where nobody has named one.
    pub fn run(&self) -> String {
        format!("{}-{}", self.client.word(), self.session)
    }
}

impl Form {
    fn guess_client(&self) -> Client {
        match self.hook_event_name.as_str() {
            "BeforeTool" | "AfterTool" | "BeforeAgent" | "AfterAgent" | "PreCompress" | "BeforeModel" => {
                Client::Gemini
            }
            _ if self.turn_id.is_some() => Client::Codex,
            _ if self.tool_name == "run_shell_command" => Client::Qwen,
            _ => Client::ClaudeCode,
        }
    }
}
