//! How a guarded command went, where `semel ended` did not say: by the client's own word, or by its transcript.

use super::client::Client;
use super::event::{HookEvent, ToolCall};
use super::plan::{Plan, Plans, Stage};
use super::render;
use super::serve::HookDoor;
use super::shell::{self, Begun, ShellCall};
use super::transcript;
use crate::command::classify::{self, CommandExit, ExitMeaning};
use crate::command::render::word_by_verb;
use crate::redact::SecretParts;
use crate::reply::{CommandOutput, REPLY_BYTES_MAX};
use semel_core::answer::EffectWord;
use semel_core::class::{Class, Tier};
use semel_core::effect::{Evidence, NotAppliedWhy, Reply};
use semel_core::outcome::Outcome;
use semel_gate::clock::block_on;
use semel_gate::upstream::Sent;
use serde_json::Value;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// How a command ended, as its client tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientReport {
    pub exit_code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A tool has answered. Its output is recorded, and the answer counts as delivered.
pub(super) fn after(
    door: &HookDoor<'_>,
    event: &HookEvent,
    call: &ToolCall,
    response: &Value,
) -> Option<Value> {
    let plan = plan_of(door, event, call)?;
    let goes_on = ["backgroundTaskId", "timedOutAfterMs"].iter().any(|name| response.get(name).is_some());
    match &plan.stage {
        Stage::Recorded { stdout, stderr } => {
            door.plans.forget(&plan.id);
            Some(render::shown(response.clone(), stdout, stderr))
        }
        Stage::Ended { .. } => {
            report(door, &plan, &report_in(event.client, response));
            None
        }
        // Codex tells an end whatever the exit code was, and does not tell that.
        Stage::Began { .. } if goes_on || event.client == Client::Codex => None,
        Stage::Began { .. } => {
            report(door, &plan, &report_in(event.client, response));
            None
        }
        Stage::Planned if goes_on => None,
        // Another hook has put its own command in the place of ours.
        Stage::Planned
            if !call.line().is_some_and(|line| line.contains(&format!("semel began {}", plan.id))) =>
        {
            unguarded(door, event, &plan, &report_in(event.client, response))
        }
        Stage::Planned => {
            door.plans.forget(&plan.id);
            None
        }
    }
}

/// A tool has failed, or was stopped.
pub(super) fn failed(
    door: &HookDoor<'_>,
    event: &HookEvent,
    call: &ToolCall,
    error: &str,
    interrupted: bool,
) {
    let Some(plan) = plan_of(door, event, call) else { return };
    match &plan.stage {
        Stage::Began { .. } | Stage::Ended { .. } => match exit_code_in(error) {
            Some(exit_code) if !interrupted => {
                let said = ClientReport { exit_code, stdout: String::new(), stderr: error.to_owned() };
                report(door, &plan, &said);
            }
            _ => doubt(door, &plan, "the client stopped it"),
        },
        Stage::Planned | Stage::Recorded { .. } => door.plans.forget(&plan.id),
    }
}

/// Looks into the client's transcript for commands that began and have no end.
pub(super) fn settle_earlier(door: &HookDoor<'_>, event: &HookEvent) {
    let begun = door.plans.begun(event.client, &event.session);
    let Some(path) = event.transcript.as_deref().filter(|_| !begun.is_empty()) else { return };
    for plan in begun {
        let Some(id) = &plan.call_id else { continue };
        if let Some(said) = transcript::ending(event.client, path, id) {
            report(door, &plan, &said);
        }
    }
}

fn plan_of(door: &HookDoor<'_>, event: &HookEvent, call: &ToolCall) -> Option<Plan> {
    let named = call.id.as_deref().or(call.line())?;
    // Clients without ids show the line as it was changed.
    let id = match &call.id {
        Some(id) => Plans::id_of(event.client, &event.session, id),
        None => named.split("semel began ").nth(1)?.split_whitespace().next()?.to_owned(),
    };
    door.plans.read(&id)
}

/// Settles by the client's word, or adds the output to a success that is on record.
fn report(door: &HookDoor<'_>, plan: &Plan, said: &ClientReport) {
    let (claim, has_ended) = match &plan.stage {
        Stage::Began { claim } => (claim, false),
        Stage::Ended { claim } => (claim, true),
        Stage::Planned | Stage::Recorded { .. } => return,
    };
    let Ok(call) = ShellCall::of(plan, door.policy, None) else { return };
    // A command behind it in its line may have failed afterwards.
    let exit_code = if has_ended { 0 } else { said.exit_code };
    let sent = sent(&call, &ClientReport { exit_code, ..said.clone() });
    let Ok(gate) = (door.open)() else { return };
    let settled = block_on(async {
        let passed = shell::settle(&gate, claim, sent).await.ok()?;
        if let Some(delivery) = passed.and_then(|passed| passed.delivery) {
            // Losing the mark is safe: it means undelivered.
            let _undelivered = gate.delivered(&delivery).await;
        }
        Some(())
    });
    if settled.is_some() {
        door.plans.forget(&plan.id);
    }
}

fn doubt(door: &HookDoor<'_>, plan: &Plan, why: &str) {
    let (Stage::Began { claim }, Ok(gate)) = (&plan.stage, (door.open)()) else { return };
    // `semel ended` may still come. What cannot be written now is a doubt at the claim's deadline.
    let _lapses = block_on(shell::settle(&gate, claim, shell::in_doubt(why)));
}

/// A command that ran without its claim is put on record all the same, so that its repeat is known.
fn unguarded(door: &HookDoor<'_>, event: &HookEvent, plan: &Plan, said: &ClientReport) -> Option<Value> {
    let call = ShellCall::of(plan, door.policy, None).ok()?;
    let gate = (door.open)().ok()?;
    block_on(async {
        if let Ok(Begun::Run(claim)) = call.begin(&gate).await {
            let _a_doubt_at_its_deadline = shell::settle(&gate, &claim, sent(&call, said)).await;
        }
    });
    door.plans.forget(&plan.id);
    let text =
        "semel: this command ran without its guard, because another hook changed it. It is on record now.";
    Some(render::told_after(event.client, text))
}

/// The outcome of a command by its exit code and output: the table of `semel run`.
fn sent(call: &ShellCall<'_>, said: &ClientReport) -> Sent {
    let argv = call.argv();
    let exit = CommandExit {
        status: ExitStatus::from_raw(said.exit_code << 8),
        timed_out: false,
        stdout: said.stdout.as_bytes(),
        stderr: said.stderr.as_bytes(),
    };
    let must_happen_once = call.rule.class == Class::Consequential || call.rule.tier() == Tier::Keyed;
    let reading = classify::read(&argv, exit, &call.rule, must_happen_once, || true);
    let output = CommandOutput {
        exit_code: said.exit_code,
        stdout: said.stdout.clone().into_bytes(),
        stderr: said.stderr.clone().into_bytes(),
    };
    let clean = output.scrubbed(&call.secrets(), &SecretParts::of(&call.rule)).ok();
    let kept = clean.map(|clean| clean.encode()).filter(|bytes| bytes.len() <= REPLY_BYTES_MAX);
    let reply = match &kept {
        Some(_) => Reply::Kept,
        None => Reply::TooLarge((said.stdout.len() + said.stderr.len()) as u64),
    };
    let outcome = match reading.meaning {
        ExitMeaning::Succeeded => Outcome::Applied { evidence: Evidence::Reported, word: word(call), reply },
        ExitMeaning::NeverSent | ExitMeaning::Refused => {
            Outcome::NotApplied { why: NotAppliedWhy::Refused(reading.line), reply }
        }
        ExitMeaning::Reported => Outcome::NotApplied { why: NotAppliedWhy::Reported(reading.line), reply },
        ExitMeaning::Ambiguous => Outcome::InDoubt { why: reading.line, sender_gone: false },
    };
    let reply = kept.filter(|_| !matches!(outcome, Outcome::InDoubt { .. }));
    Sent { reply, ..Sent::of(outcome) }
}

pub fn word(call: &ShellCall<'_>) -> EffectWord {
    call.rule.effect_word().unwrap_or_else(|| word_by_verb(&call.argv()))
}

/// `Exit code 3`, as the first line has it.
fn exit_code_in(error: &str) -> Option<i32> {
    let line = error.lines().find_map(|line| {
        ["Exit code ", "Exit Code: ", "Process exited with code "]
            .iter()
            .find_map(|words| line.strip_prefix(words))
    })?;
    line.trim().parse().ok()
}

/// The output in the form of each client's shell tool.
fn report_in(client: Client, response: &Value) -> ClientReport {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match client {
        Client::ClaudeCode | Client::Qwen if response.is_object() => ClientReport {
            exit_code: 0,
            stdout: text(&response["stdout"]),
            stderr: text(&response["stderr"]),
        },
        Client::Gemini => {
            let said = text(&response["llmContent"]);
            ClientReport { exit_code: exit_code_in(&said).unwrap_or(0), stdout: said, stderr: String::new() }
        }
        Client::OpenCode => {
            let code = response["metadata"]["exit"].as_i64().and_then(|code| i32::try_from(code).ok());
            ClientReport {
                exit_code: code.unwrap_or(0),
                stdout: text(&response["output"]),
                stderr: String::new(),
            }
        }
        _ => ClientReport { exit_code: 0, stdout: text(response), stderr: String::new() },
    }
}
