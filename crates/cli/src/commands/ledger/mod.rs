//! `semel ledger`: what was done, what nobody knows, and rulings on it.

mod attention;
mod epoch;
mod export;
mod get;
mod journal;
mod list;
mod markdown;
mod named;
mod prune;
mod resolve;
mod rule;
mod show;
mod tail;
mod undo;
mod walk;

use super::Context;
use crate::args::{Ledger, LedgerCommand};
use crate::neutral;
use crate::output::Hinted;
use anyhow::Context as _;
use semel_core::effect::{Effect, Ruling};
use semel_core::ids::{Reason, Run};
use semel_core::time::At;
use semel_doors::command::render::Output as CommandOutput;
use semel_doors::proxy::reply::Kept;
use semel_doors::run_summary::first_line;
use std::process::ExitCode;

pub fn run(context: &Context, args: &Ledger) -> anyhow::Result<ExitCode> {
    // clap could refuse this itself, but then it would refuse `semel ledger --json list` too.
    if args.command.is_some() && (args.run.is_some() || args.markdown) {
        return Err(Hinted::error(
            "--run and --markdown belong to `semel ledger` alone",
            "semel ledger list --run RUN",
        ));
    }
    if let Some(run) = &args.run {
        // An empty variable would else be answered with "nothing is recorded", which a model believes.
        Run::named(run).context("--run")?;
    }
    match &args.command {
        None if args.markdown => markdown::run(context, args.run.as_deref()),
        None => attention::run(context, args.run.as_deref()),
        Some(LedgerCommand::List(list)) => list::run(context, list),
        Some(LedgerCommand::Show { effect }) => show::run(context, effect),
        Some(LedgerCommand::Get(get)) => get::run(context, get),
        Some(LedgerCommand::Tail(tail)) => tail::run(context, tail),
        Some(LedgerCommand::Resolve(resolve)) => resolve::run(context, resolve),
        Some(LedgerCommand::Reopen(because)) => rule::reopen(context, because),
        Some(LedgerCommand::Again(because)) => rule::again(context, because),
        Some(LedgerCommand::Undo(undo)) => undo::run(context, undo),
        Some(LedgerCommand::Export { no_replies }) => export::run(context, !no_replies),
        Some(LedgerCommand::Prune { replies, clock_is_right }) => {
            prune::run(context, replies.as_deref(), *clock_is_right)
        }
        Some(LedgerCommand::Epoch { command }) => epoch::run(context, command.as_ref()),
    }
}

fn ruling(by: String, reason: &str, at: At) -> anyhow::Result<Ruling> {
    Ok(Ruling { by, reason: Reason::parse(reason).context("--reason")?, at })
}

/// An effect, as a person who is asked about it recognises it.
fn recognisable(effect: &Effect) -> String {
    neutral::line(&format!("{} {} ({})", effect.id, effect.facts.action, effect.facts.subject))
}

/// A recorded reply as JSON. Whatever is neither a command's output nor an answer over HTTP is shown as the text it is.
fn reply_data(bytes: &[u8]) -> serde_json::Value {
    if let Some(output) = CommandOutput::decode(bytes) {
        return output.data();
    }
    let answer = Kept::decode(bytes.to_vec()).and_then(|kept| serde_json::from_str(&kept.data()).ok());
    answer.unwrap_or_else(|| serde_json::json!({"text": String::from_utf8_lossy(bytes)}))
}
