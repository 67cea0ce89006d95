//! Answers an event of a client.

use super::client::Client;
use super::ending;
use super::event::{EventKind, HookEvent, SessionSource, ToolCall};
use super::plan::{FoundFrom, Plan, Plans, Stage};
use super::render;
use super::shell::{Begun, ShellCall, recorded};
use crate::reply::CommandOutput;
use crate::run_summary::{self, CharactersMax, RunName};
use semel_core::class::Class;
use semel_core::policy::{Mode, Policy};
use semel_core::shell::{Guarded, Judgement, judge};
use semel_core::time::At;
use semel_gate::Gate;
use semel_gate::clock::block_on;
use semel_ledger::memory_boundary::ForgottenBy;
use serde_json::Value;
use serde_json::value::RawValue;
use std::path::Path;

/// The words before a deliberate repeat.
const AGAIN: &str = "semel again ";

/// Where the hook of a client finds what it needs.
#[allow(missing_debug_implementations, reason = "it holds a function")]
pub struct HookDoor<'a> {
    /// With the pack for shells.
    pub policy: &'a Policy,
    pub plans: Plans,
    /// Opens the ledger. Most lines need none.
    pub open: &'a dyn Fn() -> Result<Gate, String>,
    /// The run that the environment names.
    pub named_run: Option<String>,
    /// Where the ledger and the policy were found, for `semel began`: it may run in another directory.
    pub found: FoundFrom,
    /// The path of this program, as a word of a shell.
    pub program: String,
    pub now: At,
}

impl HookDoor<'_> {
    /// The client's instructions; none for most events.
    pub fn answer(&self, event: HookEvent) -> Option<Value> {
        let HookEvent { client, kind, .. } = &event;
        let client = *client;
        match kind {
            EventKind::BeforeTool(call) if client.is_shell(&call.tool) => {
                ending::settle_earlier(self, &event);
                self.before(&event, call)
            }
            EventKind::AfterTool { call, response } if client.is_shell(&call.tool) => {
                ending::after(self, &event, call, response)
            }
            EventKind::ToolFailed { call, error, interrupted } if client.is_shell(&call.tool) => {
                ending::failed(self, &event, call, error, *interrupted);
                None
            }
            EventKind::SessionStarted(source) => self.session_started(&event, *source),
            EventKind::Other => {
                ending::settle_earlier(self, &event);
                None
            }
            EventKind::BeforeTool(_) | EventKind::AfterTool { .. } | EventKind::ToolFailed { .. } => None,
        }
    }

    fn before(&self, event: &HookEvent, call: &ToolCall) -> Option<Value> {
        let written = without_brackets(call.line()?);
        let (line, again) = match repeated(&written) {
            Some((effect, line)) => (line.to_owned(), Some(effect.to_owned())),
            None => (written, None),
        };
        let cwd = event.cwd.as_deref().unwrap_or(&self.found.cwd);
        let guarded = match judge(&line, &cwd.to_string_lossy(), self.policy) {
            // The words before it are semel's own.
            Judgement::Pass if again.is_some() => {
                return Some(render::rewritten(event.client, call.input.clone(), line));
            }
            Judgement::Pass => return None,
            Judgement::Deny(_) if self.policy.mode == Mode::Observe => return None,
            Judgement::Deny(denial) => return Some(render::denied(event.client, &render::denial(&denial))),
            Judgement::Bracket(guarded) => guarded,
        };
        let plan = self.plan(event, call, &line, &guarded, again);
        match self.decide(plan, &guarded, &line, cwd) {
            Ok(Decided::Run(plan)) => {
                // A login shell, which Codex starts, may not find it by its name.
                let semel = if event.client == Client::Codex { &self.program } else { "semel" };
                let (before, behind) =
                    (format!("{semel} began {}", plan.id), format!("{semel} ended {}", plan.id));
                let command = guarded.bracketed(&line, &before, &behind);
                Some(match self.plans.write(&plan) {
                    Ok(()) => render::rewritten(event.client, call.input.clone(), command),
                    Err(error) => render::denied(event.client, &unavailable(&error.to_string())),
                })
            }
            Ok(Decided::AsItIs) => None,
            Ok(Decided::Show(plan)) => Some(match self.plans.write(&plan) {
                Ok(()) => render::skipped(event.client, call.input.clone()),
                Err(error) => render::denied(event.client, &unavailable(&error.to_string())),
            }),
            Ok(Decided::Deny(reason)) => Some(render::denied(event.client, &reason)),
            Err(why) => Some(render::denied(event.client, &unavailable(&why))),
        }
    }

    fn plan(
        &self,
        event: &HookEvent,
        call: &ToolCall,
        line: &str,
        guarded: &Guarded,
        again: Option<String>,
    ) -> Plan {
        let named = call.id.as_deref().unwrap_or(line);
        let seconds = |name: &str| call.input.get(name)?.as_u64().map(|millis| millis / 1_000);
        Plan {
            id: Plans::id_of(event.client, &event.session, named),
            client: event.client,
            session: event.session.clone(),
            call_id: call.id.clone(),
            run: self.named_run.clone().unwrap_or_else(|| event.run()),
            run_is_named: self.named_run.is_some(),
            line: line.to_owned(),
            action: guarded.action.clone(),
            arguments: RawValue::from_string(guarded.arguments.canonical()).unwrap_or_default(),
            again,
            timeout_seconds: seconds("timeout").or_else(|| seconds("timeout_ms")),
            found: self.found.clone(),
            stage: Stage::Planned,
        }
    }

    fn decide(&self, plan: Plan, guarded: &Guarded, line: &str, cwd: &Path) -> Result<Decided, String> {
        let mut call = ShellCall::of(&plan, self.policy, Some(cwd))?;
        // Such a call may always run again, unless it is under way: `semel began` meets that.
        let may_repeat = call.rule.class == Class::Convergent;
        if self.policy.mode != Mode::Observe && (may_repeat || moves(&line[..guarded.range.start])) {
            return Ok(Decided::Run(plan));
        }
        let gate = (self.open)()?;
        let begun = block_on(call.look(&gate)).map_err(|error| error.to_string())?;
        Ok(match begun {
            Begun::Run(_) => Decided::Run(plan),
            Begun::Unrecorded => Decided::AsItIs,
            Begun::Held(answer) => Decided::Deny(render::held(&answer, line)),
            Begun::Done(passed) if !guarded.is_known => Decided::Deny(render::looks_done(&passed, line)),
            Begun::Done(passed) => {
                let output = recorded(&passed).and_then(CommandOutput::decode);
                let is_alone = guarded.range == (0..line.len());
                match output {
                    Some(output) if plan.client.shows_records() && is_alone => {
                        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
                        Decided::Show(Plan { stage: Stage::Recorded { stdout, stderr }, ..plan })
                    }
                    output => Decided::Deny(render::done(&passed, output.as_ref(), line)),
                }
            }
        })
    }

    fn session_started(&self, event: &HookEvent, source: SessionSource) -> Option<Value> {
        self.plans.sweep(self.now);
        let by = match source {
            SessionSource::New => return None,
            SessionSource::Resumed => ForgottenBy::Resumption,
            SessionSource::Compacted => ForgottenBy::Compaction,
        };
        ending::settle_earlier(self, event);
        let gate = (self.open)().ok()?;
        let run = self.named_run.clone().unwrap_or_else(|| event.run());
        block_on(async {
            let now = gate.clock.now();
            gate.ledger.mark_memory_boundary(semel::LOCAL, &run, by, now).await.ok()?;
            let of = RunName { tenant: semel::LOCAL, run: &run };
            let max = CharactersMax(event.client.context_characters_max());
            let list = run_summary::of_run(&gate.ledger, of, max).await.ok()??;
            Some(render::session_context(&list))
        })
    }
}

/// The decision about a guarded command.
enum Decided {
    Run(Plan),
    AsItIs,
    /// The record in the place of the command's own output.
    Show(Plan),
    Deny(String),
}

/// `semel again EFFECT -- LINE`
fn repeated(line: &str) -> Option<(&str, &str)> {
    let (effect, line) = line.trim_start().strip_prefix(AGAIN)?.split_once(" -- ")?;
    Some((effect.trim(), line.trim_start()))
}

/// Some clients show their model the changed line, and it may come back.
fn without_brackets(line: &str) -> String {
    let mut parts: Vec<&str> = line.split(" && ").collect();
    parts.retain(|part| !is_bracket(part));
    parts.join(" && ")
}

/// `semel began ID` or `semel ended ID`, the program perhaps with its path.
fn is_bracket(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    matches!(words.as_slice(), [program, "began" | "ended", id]
        if program.trim_end_matches('\'').ends_with("semel") && Plans::is_id(id))
}

/// Whether the commands before it may change the directory. `semel began` knows where it is.
fn moves(before: &str) -> bool {
    before.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| matches!(word, "cd" | "pushd" | "popd"))
}

fn unavailable(why: &str) -> String {
    format!(
        "Not run: semel's ledger is not available ({why}). Safe to retry: yes. Tell the user to run `semel doctor`."
    )
}
