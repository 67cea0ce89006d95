//! The answer as each client wants it.

use super::client::Client;
use crate::reply::CommandOutput;
use semel_core::answer::{Answer, Code, Retry};
use semel_core::shell::{Denial, DenialReason};
use semel_gate::Passed;
use serde_json::{Map, Value, json};

/// Of a recorded output in words; a model that needs more can read the ledger.
const OUTPUT_CHARACTERS_MAX: usize = 4_000;

/// The same call with another command.
pub fn rewritten(client: Client, mut input: Map<String, Value>, command: String) -> Value {
    input.insert("command".to_owned(), command.into());
    let mut answer = match client {
        Client::Gemini => json!({"hookEventName": "BeforeTool", "tool_input": input}),
        _ => json!({"hookEventName": "PreToolUse", "updatedInput": input}),
    };
    // Codex takes a changed command only together with it, and asks its own rules all the same.
    if client == Client::Codex {
        answer["permissionDecision"] = "allow".into();
    }
    json!({"hookSpecificOutput": answer})
}

/// A command that does nothing in its place; its answer is replaced afterwards.
pub fn skipped(client: Client, input: Map<String, Value>) -> Value {
    let mut answer = rewritten(client, input, "true".to_owned());
    answer["hookSpecificOutput"]["permissionDecision"] = "allow".into();
    answer
}

pub fn denied(client: Client, reason: &str) -> Value {
    match client {
        Client::Gemini => json!({"decision": "deny", "reason": reason}),
        _ => json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
        }}),
    }
}

/// Text that the model reads beside the answer of its tool.
pub fn told_after(client: Client, text: &str) -> Value {
    let event = if client == Client::Gemini { "AfterTool" } else { "PostToolUse" };
    json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
}

/// The recorded output in the place of the tool's own answer, in that answer's form.
pub fn shown(mut response: Value, stdout: &str, stderr: &str) -> Value {
    if let Value::Object(members) = &mut response {
        members.insert("stdout".to_owned(), stdout.into());
        members.insert("stderr".to_owned(), stderr.into());
    }
    json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": response}})
}

/// Text that the model reads when its session begins or goes on.
pub fn session_context(text: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})
}

/// Why a line is not run as it is.
pub fn denial(denial: &Denial) -> String {
    let names = denial.names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
    match denial.reason {
        DenialReason::Place => format!(
            "Not run. {names} changes something outside, and this line would not show whether it succeeded. Safe to retry: \
             yes. Run {names} by itself, in a command of its own."
        ),
        DenialReason::Several => format!(
            "Not run. {names} change something outside, and one line has both. Safe to retry: yes. Run each by itself."
        ),
        DenialReason::Unreadable => format!(
            "Not run. semel cannot read this line, and {names} in it may change something outside. Safe to retry: yes. Run \
             {names} by itself."
        ),
    }
}

/// Why a command is held, for a model that has a shell and no flags of semel.
pub fn held(answer: &Answer, line: &str) -> String {
    let Some(trouble) = &answer.trouble else { return answer.reason.clone().unwrap_or_default() };
    let retry = match trouble.is_it_safe_to_retry {
        Retry::Yes => "yes",
        Retry::No => "no",
        Retry::Wait => "wait",
    };
    let next = match (trouble.code, answer.effect_id) {
        (Code::Lookalike | Code::Superseded, Some(effect)) => {
            format!("If it is the same thing, do not run it again. {}", to_repeat(&effect.to_string(), line))
        }
        _ => trouble.next_step.clone(),
    };
    format!("{} Safe to retry: {retry}. {next}", trouble.what_happened)
}

/// A command that was done before.
pub fn done(passed: &Passed, recorded: Option<&CommandOutput>, line: &str) -> String {
    let effect = passed.answer.effect_id.map_or_else(String::new, |id| id.to_string());
    let when =
        passed.answer.reason.as_deref().and_then(|reason| reason.split(';').next()).unwrap_or("done before");
    let output = match recorded {
        Some(output) => format!("Its recorded output:\n{}", in_short(&streams(output))),
        None => "Its output was not recorded.".to_owned(),
    };
    format!(
        "Not run again: it was {when} ({effect}). This is a success; use its result. {output}\n{}",
        to_repeat(&effect, line)
    )
}

/// A line with words that only the shell knows, which was run before.
pub fn looks_done(passed: &Passed, line: &str) -> String {
    let effect = passed.answer.effect_id.map_or_else(String::new, |id| id.to_string());
    format!(
        "Not run: the same line succeeded before ({effect}), and the values in it are not known. If it is the same thing, do \
         not run it again. {}",
        to_repeat(&effect, line)
    )
}

fn to_repeat(effect: &str, line: &str) -> String {
    format!("To do it once more on purpose, run: semel again {effect} -- {line}")
}

fn streams(output: &CommandOutput) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    [text(&output.stdout), text(&output.stderr)]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn in_short(text: &str) -> String {
    match text.char_indices().nth(OUTPUT_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
