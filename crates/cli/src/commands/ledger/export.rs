//! `semel ledger export`: every effect, one JSON document a line.

use super::reply::reply_data;
use super::scan::{self, Which};
use crate::context::Context;
use crate::effect_json::{self, EffectJson};
use semel_gate::clock::{Clock, SystemClock};
use semel_ledger::Error;
use semel_ledger::place::Place;
use semel_ledger::sqlite::export_older;
use serde::Serialize;
use serde_json::Value;
use std::ops::ControlFlow;
use std::process::ExitCode;

#[derive(Debug, Serialize)]
struct Exported {
    #[serde(flatten)]
    effect: EffectJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

pub fn run(context: &Context, replies: bool) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let ledger = match context.existing_ledger(&clock) {
        Ok(Some(ledger)) => ledger,
        Ok(None) => return Ok(ExitCode::SUCCESS),
        Err(error) => return older(context, replies, error),
    };
    let damaged = scan::effects(&ledger, Which::default(), clock.now(), |key, effect| {
        let (kept, bytes) = effect_json::reply(&ledger, key, &effect)?;
        let data = bytes.filter(|_| replies).map(|bytes| reply_data(&bytes));
        let taken = context.output.line(&Exported { effect: EffectJson::of(&effect, kept), data });
        Ok(if taken { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    scan::say_left_out(context.output, damaged);
    Ok(ExitCode::SUCCESS)
}

/// A ledger of an older format: its tables, as they lie there.
fn older(context: &Context, replies: bool, error: anyhow::Error) -> anyhow::Result<ExitCode> {
    let Some(Error::TooOld { path, has, .. }) = error.downcast_ref() else { return Err(error) };
    export_older(&Place::at(path), replies, |row| context.output.line(&row))?;
    context.output.say(format_args!("semel: these are the tables of format {has}, row by row"));
    Ok(ExitCode::SUCCESS)
}
