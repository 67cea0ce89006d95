//! `semel ledger`: reading what was done, and ruling on what nobody knows.

mod attention;
mod backup;
mod copy;
mod export;
mod find;
mod journal;
mod list;
mod markdown;
pub mod named;
mod progress;
mod prune;
mod quarantine;
mod reply;
mod resolve;
mod restore;
mod rotate_secret;
pub mod rule;
mod runs;
mod same_server;
pub mod scan;
mod show;
mod tail;
mod undo;

use crate::args::{LedgerArgs, LedgerCommand};
use crate::context::Context;
use crate::output::Hinted;
use anyhow::Context as _;
use semel_core::ids::Run;
use std::process::ExitCode;

pub fn run(context: &Context, args: &LedgerArgs) -> anyhow::Result<ExitCode> {
    // clap could refuse this itself, but then it would refuse `semel ledger --json list` too.
    let lists = matches!(args.command, None | Some(LedgerCommand::List(_)));
    if args.run.is_some() && !lists {
        return Err(Hinted::error("--run chooses the effects of a list", "semel ledger list --run RUN"));
    }
    if args.markdown && args.command.is_some() {
        return Err(Hinted::error("--markdown belongs to `semel ledger` alone", "semel ledger --markdown"));
    }
    if let Some(run) = &args.run {
        // An empty variable would else be answered with "nothing is recorded", which a model believes.
        Run::named(run).context("--run")?;
    }
    match &args.command {
        None if args.markdown => markdown::run(context, args.run.as_deref()),
        None => attention::run(context, args.run.as_deref()),
        Some(LedgerCommand::List(list)) => {
            list::run(context, list, list.run.as_deref().or(args.run.as_deref()))
        }
        Some(LedgerCommand::Find(find)) => find::run(context, find),
        Some(LedgerCommand::Runs(runs)) => runs::run(context, runs),
        Some(LedgerCommand::Show(name)) => show::run(context, name),
        Some(LedgerCommand::Reply(name)) => reply::run(context, name),
        Some(LedgerCommand::Tail(tail)) => tail::run(context, tail),
        Some(LedgerCommand::Resolve(resolve)) => Ok(context.answer(resolve::run(context, resolve)?)),
        Some(LedgerCommand::Reopen(because)) => Ok(context.answer(rule::reopen(context, because)?)),
        Some(LedgerCommand::AllowRepeat(because)) => {
            Ok(context.answer(rule::allow_repeat(context, because)?))
        }
        Some(LedgerCommand::Undo(undo)) => undo::run(context, undo),
        Some(LedgerCommand::Export { no_replies }) => export::run(context, !no_replies),
        Some(LedgerCommand::Copy(copy)) => Ok(context.answer(copy::run(context, copy)?)),
        Some(LedgerCommand::Backup(backup)) => Ok(context.answer(backup::run(context, backup)?)),
        Some(LedgerCommand::Restore(restore)) => Ok(context.answer(restore::run(context, restore)?)),
        Some(LedgerCommand::Prune(prune)) => Ok(context.answer(prune::run(context, prune)?)),
        Some(LedgerCommand::SameServer(server)) => Ok(context.answer(same_server::run(context, server)?)),
        Some(LedgerCommand::Quarantine) => quarantine::show(context),
        Some(LedgerCommand::MarkRestored(restored)) => {
            Ok(context.answer(quarantine::begin(context, restored)?))
        }
        Some(LedgerCommand::EndQuarantine(end)) => Ok(context.answer(quarantine::end(context, end)?)),
        Some(LedgerCommand::RotateSecret(rotate)) => Ok(context.answer(rotate_secret::run(context, rotate)?)),
    }
}
