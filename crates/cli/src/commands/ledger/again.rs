//! `semel ledger again`: somebody wants it once more.

use super::{named, ruling};
use crate::commands::Context;
use crate::effect_json;
use crate::output::Hinted;
use semel_core::lifecycle::Illegal;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::Error;
use std::process::ExitCode;

pub fn run(context: &Context, name: &str, reason: &str) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let ledger = context.existing_ledger(&clock)?;
    let (key, effect) = named::find(ledger.as_ref(), name)?;
    let ledger = ledger.expect("an effect was found in it");
    let id = effect.id;
    let ruling = ruling(context, reason, clock.now())?;
    let changed = block_on(ledger.release(id, ruling)).map_err(|error| match error {
        Error::Illegal(Illegal { state, .. }) => Hinted::error(
            format!("{id} is {state}; only what was done can be done again"),
            format!("semel ledger show {id}"),
        ),
        error => error.into(),
    })?;
    let effect = changed.found.effect().expect("it was just released");
    if context.output.json {
        context.output.document(&effect_json::read(&ledger, key, effect)?);
    } else {
        context.output.data(format_args!("{id} may happen once more: the next equal call runs."));
    }
    Ok(ExitCode::SUCCESS)
}
