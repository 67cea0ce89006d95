//! Wires: arguments, configuration, commands. Decides nothing.

mod args;
mod change;
mod commands;
mod config;
mod context;
mod effect_json;
mod mcp_servers;
mod notify;
mod open;
mod operator;
mod output;
mod probe_access;
mod server_access;
mod server_identity;
mod server_runtime;
mod table;
mod traces;
mod unread_effects;

use args::{Cli, Command};
use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use commands::run::respond::{EXIT_SEMEL_FAILED, not_understood_answer};
use config::Environment;
use output::Output;
use semel_doors::terminal_text;
use std::io::Write;
use std::process::ExitCode;

/// Usage, configuration or internal error of a command that wraps nothing.
const EXIT_FAILED: u8 = 2;

fn main() -> ExitCode {
    if asks_for_version() {
        Output { json: false, quiet: false }.data(concat!("semel ", env!("CARGO_PKG_VERSION")));
        return ExitCode::SUCCESS;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(error),
    };
    let output = Output::new(&cli.global);
    let environment = match Environment::read() {
        Ok(environment) => environment,
        Err(error) => {
            output.error(&error);
            return ExitCode::from(if matches!(cli.command, Command::Run(_)) { 125 } else { EXIT_FAILED });
        }
    };
    if let Some(spec) = &environment.failpoints
        && let Err(error) = semel_ledger::failpoint::install(spec)
    {
        output.error(&anyhow::anyhow!("SEMEL_FAILPOINTS: {error}"));
        return ExitCode::from(125);
    }
    // A file that may grow no further is an error to hear of, not the end of a process that has something in flight.
    let unheard = std::sync::Arc::default();
    let _then_it_ends_us = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, unheard);
    let context = context::Context { global: cli.global, environment, output };
    let done = match cli.command {
        Command::Run(run) => return ExitCode::from(commands::run::run(&context, &run)),
        Command::Hook(_) => return commands::hook::event(&context),
        Command::Began(bracket) => return ExitCode::from(commands::hook::began(&context, &bracket.id)),
        Command::Ended(bracket) => {
            commands::hook::ended(&context, &bracket.id);
            return ExitCode::SUCCESS;
        }
        Command::Again(_) => return ExitCode::from(commands::hook::again(&context)),
        Command::DrainOutput => {
            commands::run::drain_output();
            return ExitCode::SUCCESS;
        }
        Command::Mcp(mcp) => Ok(commands::mcp::run(&context, &mcp)),
        Command::Serve(serve) => commands::serve::run(&context, &serve),
        Command::Sdk(_) => commands::sdk::run(&context),
        Command::Ledger(ledger) => commands::ledger::run(&context, &ledger),
        Command::Init(init) => commands::init::run(&context, &init).map(|change| context.answer(change)),
        Command::Cancel(cancel) => {
            commands::cancel::run(&context, &cancel).map(|change| context.answer(change))
        }
        Command::Key(key) => commands::key::run(&context, &key),
        Command::Stats(stats) => commands::stats::run(&context, &stats),
        Command::Token(token) => commands::token::run(&context, &token),
        Command::Audit(audit) => commands::audit::run(&context, &audit),
        Command::Reconcile(reconcile) => {
            commands::reconcile::run(&context, &reconcile).map(|change| context.answer(change))
        }
        Command::Eval(eval) => commands::eval::run(&context, &eval),
        Command::Check(check) => commands::check::run(&context, &check),
        Command::EvalWorld(world) => commands::eval::world(&world),
        Command::Policy(policy) => commands::policy::run(&context, &policy),
        Command::Explain(explain) => commands::explain::run(&context, &explain),
        Command::Doctor(doctor) => commands::doctor::run(&context, &doctor),
        Command::Completions(completions) => commands::completions::run(&context, &completions),
        Command::Man(man) => commands::man::run(&man).map(|change| context.answer(change)),
        Command::Demo(demo) => commands::demo::demo(&context, &demo),
    };
    // An export that a full disk cut off must not look like a whole one.
    let done = done.and_then(|code| match output::lost() {
        Some(error) => Err(anyhow::anyhow!("standard output could not be written: {error}")),
        None => Ok(code),
    });
    done.unwrap_or_else(|error: anyhow::Error| {
        output.error(&error);
        ExitCode::from(EXIT_FAILED)
    })
}

/// Scripts ask for it to see whether semel is there; it needs no command line to be built.
fn asks_for_version() -> bool {
    let mut words = std::env::args_os().skip(1);
    words.next().is_some_and(|word| word == "--version" || word == "-V") && words.next().is_none()
}

/// Commands that delete or act: a mistyped word must not lead to them.
const NEVER_SUGGESTED: [&str; 5] = ["prune", "restore", "revoke", "rotate-secret", "undo"];

fn without_dangerous_suggestions(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::Strings(names)) = error.get(ContextKind::SuggestedSubcommand) {
        let harmless = names.iter().filter(|name| !NEVER_SUGGESTED.contains(&name.as_str()));
        let harmless: Vec<String> = harmless.cloned().collect();
        let kept = if harmless.is_empty() { ContextValue::None } else { ContextValue::Strings(harmless) };
        error.insert(ContextKind::SuggestedSubcommand, kept);
    }
    error
}

/// A command line that semel does not understand. `semel run` starts nothing then, and exits with 125 as other wrappers do.
fn usage(error: clap::Error) -> ExitCode {
    let error = without_dangerous_suggestions(error);
    let help = !error.use_stderr();
    let words: Vec<_> = std::env::args_os().collect();
    let wraps = words.get(1).is_some_and(|word| word == "run");
    let own_words = words.split(|word| word == "--").next().unwrap_or_default();
    if wraps && !help && own_words.iter().any(|word| word == "--json") {
        let why = error.render().to_string();
        let why = why.trim().trim_start_matches("error: ").lines().map(str::trim);
        let why: Vec<&str> = why.take_while(|line| !line.is_empty()).collect();
        Output { json: true, quiet: false }.document(&not_understood_answer(&why.join(" ")));
        return ExitCode::from(EXIT_SEMEL_FAILED);
    }
    let _nobody_listens = error.print();
    if wraps && !help && own_words.len() == words.len() {
        let _nobody_listens =
            writeln!(anstream::stderr(), "hint: put the command after two dashes: semel run -- COMMAND");
    }
    ExitCode::from(match (help, wraps) {
        (true, _) => 0,
        (false, true) => EXIT_SEMEL_FAILED,
        (false, false) => EXIT_FAILED,
    })
}
