//! `semel ledger runs`: runs, the one that changed last first.

use super::scan::{self, Which};
use crate::args::RunsArgs;
use crate::context::Context;
use crate::{table, terminal_text};
use semel_core::effect::State;
use semel_core::time::{At, in_words};
use semel_gate::clock::{Clock, SystemClock};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::process::ExitCode;

#[derive(Debug, Serialize)]
struct RunSummary {
    run: String,
    effects: u64,
    /// In flight or in doubt.
    open: u64,
    in_doubt: u64,
    #[serde(serialize_with = "as_text")]
    changed_at: At,
}

fn as_text<S: serde::Serializer>(at: &At, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

pub fn run(context: &Context, args: &RunsArgs) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let now = clock.now();
    let mut runs: BTreeMap<String, RunSummary> = BTreeMap::new();
    if let Some(ledger) = &context.existing_ledger(&clock)? {
        let damaged = scan::effects(ledger, Which::default(), now, |_, effect| {
            if let Some(run) = &effect.facts.run {
                let summary = runs.entry(run.id.clone()).or_insert_with(|| RunSummary {
                    run: run.id.clone(),
                    effects: 0,
                    open: 0,
                    in_doubt: 0,
                    changed_at: effect.changed_at(),
                });
                summary.effects += 1;
                summary.open += u64::from(effect.is_open());
                summary.in_doubt += u64::from(matches!(effect.state, State::InDoubt(_)));
                summary.changed_at = summary.changed_at.max(effect.changed_at());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        scan::say_left_out(context.output, damaged);
    }
    let mut runs: Vec<RunSummary> = runs.into_values().collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.changed_at));
    let all = runs.len();
    runs.truncate(args.limit.get());
    if context.output.json {
        context.output.list(&runs, None);
        return Ok(ExitCode::SUCCESS);
    }
    if runs.is_empty() {
        context.output.say("no effect belongs to a run");
        return Ok(ExitCode::SUCCESS);
    }
    let rows = runs.iter().map(|run| {
        let changed = format!("{} ago", in_words(now.since(run.changed_at)));
        let numbers = [run.effects, run.open, run.in_doubt].map(|number| number.to_string());
        std::iter::once(terminal_text::line(&run.run)).chain(numbers).chain([changed]).collect()
    });
    for line in table::plain(&["RUN", "EFFECTS", "OPEN", "IN DOUBT", "CHANGED"], rows) {
        context.output.data(line);
    }
    if all > runs.len() {
        context.output.say(format_args!("{} of {all} runs; more: --limit {all}", runs.len()));
    }
    Ok(ExitCode::SUCCESS)
}
