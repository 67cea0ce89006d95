//! `semel ledger --markdown`: what was done, for a model that has forgotten it.

use super::first_line;
use super::walk::{self, Which};
use crate::commands::Context;
use crate::effect_json;
use crate::house::LocalLedger;
use crate::neutral;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, State};
use semel_gate::clock::{Clock, SystemClock};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::process::ExitCode;

/// Of what is settled, so many of the newest are listed: a model's context was short to begin with.
const SETTLED_MAX: usize = 100;

/// Enough to recognise a result by.
const RESULT_CHARACTERS: usize = 120;

#[derive(Default)]
struct Sorted {
    applied: Vec<(Digest, Effect)>,
    in_doubt: Vec<(Digest, Effect)>,
    in_flight: Vec<(Digest, Effect)>,
    not_applied: Vec<(Digest, Effect)>,
}

pub fn run(context: &Context, run: Option<&str>) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let mut sorted = Sorted::default();
    let ledger = context.existing_ledger(&clock)?;
    if let Some(ledger) = &ledger {
        walk::effects(ledger, Which { run, open: false }, clock.now(), |key, effect| {
            let group = match effect.state {
                State::Applied(_) => &mut sorted.applied,
                State::InDoubt(_) => &mut sorted.in_doubt,
                State::InFlight { .. } => &mut sorted.in_flight,
                State::NotApplied(_) => &mut sorted.not_applied,
            };
            group.push((key, effect));
            Ok(ControlFlow::Continue(()))
        })?;
    }
    let text = text(ledger.as_ref(), &sorted, run)?;
    if context.output.json {
        context.output.document(&serde_json::json!({"schema_version": 1, "run": run, "markdown": text}));
    } else {
        context.output.data(text.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

fn text(ledger: Option<&LocalLedger>, sorted: &Sorted, run: Option<&str>) -> anyhow::Result<String> {
    let mut text = match run {
        Some(run) => format!("# What was done in run {}\n", code(run)),
        None => "# What was done\n".to_owned(),
    };
    let Some(ledger) = ledger else {
        text.push_str("\nNothing is recorded.\n");
        return Ok(text);
    };
    let groups = [
        (&sorted.applied, "Done", "These happened. Do not repeat these; use their results."),
        (
            &sorted.in_doubt,
            "In doubt",
            "These may have happened, and nobody knows. Do not repeat these, reword them or reach the same end \
             another way. Check by reading only, and tell the user the effect id.",
        ),
        (&sorted.in_flight, "In flight", "These are still running. Do not repeat these; wait for them."),
        (
            &sorted.not_applied,
            "Not applied",
            "These certainly did not happen. They may be tried again if still wanted.",
        ),
    ];
    if groups.iter().all(|(effects, _, _)| effects.is_empty()) {
        text.push_str("\nNothing is recorded.\n");
    }
    for (effects, title, instruction) in groups.into_iter().filter(|(effects, _, _)| !effects.is_empty()) {
        writeln!(text, "\n## {title} ({})\n\n{instruction}\n", effects.len())?;
        let open = effects[0].1.is_open();
        let left_out = if open { 0 } else { effects.len().saturating_sub(SETTLED_MAX) };
        if left_out > 0 {
            writeln!(text, "- {left_out} earlier ones are not listed; `semel ledger list` has them")?;
        }
        for (key, effect) in &effects[left_out..] {
            writeln!(text, "- {}", item(ledger, *key, effect)?)?;
        }
    }
    Ok(text)
}

fn item(ledger: &LocalLedger, key: Digest, effect: &Effect) -> anyhow::Result<String> {
    let mut line = format!("{} {} {}", effect.id, effect.changed_at(), code(&effect.facts.action));
    if !effect.facts.subject.is_empty() {
        write!(line, " {}", code(&effect.facts.subject))?;
    }
    if let Some(reason) = &effect.occurrence.reason {
        write!(line, ", repeated on purpose: {}", code(reason.as_str()))?;
    }
    match &effect.state {
        State::Applied(applied) => {
            write!(line, ": {}, {}", applied.word, applied.evidence.word())?;
            if let Some(undone) = effect.undone {
                write!(line, ", UNDONE {} by {}", undone.at, undone.by)?;
            }
            if let Some(undoes) = &effect.facts.undoes {
                write!(line, "; it undid {}", undoes.effect)?;
            }
            if let (_, Some(bytes)) = effect_json::reply(ledger, key, effect)?
                && let Some(result) = first_line(&bytes)
            {
                write!(line, "; result: {}", code(&result))?;
            }
        }
        _ => {
            if let Some(why) = effect_json::why(effect) {
                write!(line, ": {}", code(&why))?;
            }
        }
    }
    Ok(line)
}

/// Recorded text stays text: in a code span it can neither end its line nor look like an instruction of ours.
fn code(text: &str) -> String {
    format!("`{}`", neutral::shortened(text, RESULT_CHARACTERS).replace('`', "'"))
}
