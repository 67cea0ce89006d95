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
        Some(LedgerCommand::Resolve(resolve)) => Ok(resolve::run(context, resolve)?.answer(context)),
        Some(LedgerCommand::Reopen(because)) => Ok(rule::reopen(context, because)?.answer(context)),
        Some(LedgerCommand::AllowRepeat(because)) => {
            Ok(rule::allow_repeat(context, because)?.answer(context))
        }
        Some(LedgerCommand::Undo(undo)) => undo::run(context, undo),
        Some(LedgerCommand::Export { no_replies }) => export::run(context, !no_replies),
        Some(LedgerCommand::Copy(copy)) => Ok(copy::run(context, copy)?.answer(context)),
        Some(LedgerCommand::Backup(backup)) => Ok(backup::run(context, backup)?.answer(context)),
        Some(LedgerCommand::Restore(restore)) => Ok(restore::run(context, restore)?.answer(context)),
        Some(LedgerCommand::Prune(prune)) => Ok(prune::run(context, prune)?.answer(context)),
        Some(LedgerCommand::SameServer(server)) => Ok(same_server::run(context, server)?.answer(context)),
        Some(LedgerCommand::Quarantine) => quarantine::show(context),
        Some(LedgerCommand::MarkRestored(restored)) => {
            Ok(quarantine::begin(context, restored)?.answer(context))
        }
        Some(LedgerCommand::EndQuarantine(end)) => Ok(quarantine::end(context, end)?.answer(context)),
        Some(LedgerCommand::RotateSecret(rotate)) => Ok(rotate_secret::run(context, rotate)?.answer(context)),
    }
}
