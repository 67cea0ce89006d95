//! `semel ledger --markdown`: what was done, for a model that has forgotten it.

use super::scan::{self, Which};
use crate::context::Context;
use crate::open::TENANT;
use semel_doors::run_summary::{self, RunName, SortedEffects};
use semel_gate::clock::{Clock, SystemClock, block_on};
use std::ops::ControlFlow;
use std::process::ExitCode;

pub fn run(context: &Context, run: Option<&str>) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let mut sorted = SortedEffects::default();
    let ledger = context.existing_ledger(&clock)?;
    if let Some(ledger) = &ledger {
        let damaged = scan::effects(ledger, Which { run, open: false }, clock.now(), |key, effect| {
            sorted.push(key, effect);
            Ok(ControlFlow::Continue(()))
        })?;
        scan::say_left_out(context.output, damaged);
    }
    let of = run.map(|run| RunName { tenant: TENANT, run });
    let text = block_on(run_summary::markdown(ledger.as_ref(), &sorted, of, None))?;
    if context.output.json {
        context.output.document(&serde_json::json!({"schema_version": 1, "run": run, "markdown": text}));
    } else {
        context.output.data(text.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}
