//! Wires: arguments, configuration, commands. Decides nothing.

mod args;
mod commands;
mod config;
mod effect_json;
mod house;
mod means;
mod operator;
mod output;
mod policy_files;
mod served;
mod table;
mod traces;

use args::{Cli, Command};
use clap::Parser;
use commands::run::give::{EXIT_SEMEL_FAILED, not_understood_answer};
use config::Environment;
use output::Output;
use semel_doors::neutral;
use std::io::Write;
use std::process::ExitCode;

/// Usage, configuration or internal error of a command that wraps nothing.
const EXIT_FAILED: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
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
    let house = commands::Context { global: cli.global, environment, output };
    let done = match cli.command {
        Command::Run(run) => return ExitCode::from(commands::run::run(&house, &run)),
        Command::ReadOn => {
            commands::run::read_on();
            return ExitCode::SUCCESS;
        }
        Command::Mcp(mcp) => commands::mcp::run(&house, &mcp),
        Command::Serve(serve) => commands::serve::run(&house, &serve),
        Command::Ledger(ledger) => commands::ledger::run(&house, &ledger),
        Command::Init(init) => commands::init::run(&house, &init),
        Command::Cancel(cancel) => commands::cancel::run(&house, &cancel),
        Command::Key(key) => commands::key::run(&house, &key),
        Command::Stats(stats) => commands::stats::run(&house, &stats),
        Command::Token(token) => commands::token::run(&house, &token),
        Command::Policy(policy) => commands::policy::run(&house, &policy),
        Command::Explain(explain) => commands::explain::run(&house, &explain),
        Command::Doctor(doctor) => commands::doctor::run(&house, &doctor),
        Command::Completions(completions) => commands::completions::run(&house, &completions),
        Command::Man(man) => commands::man::run(&house, &man),
        Command::Demo(demo) => commands::demo::demo(&house, &demo),
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

/// A call that could not be understood. Of `semel run` it starts nothing, and says so as every wrapper does: 125.
fn usage(error: &clap::Error) -> ExitCode {
    let help = !error.use_stderr();
    let words: Vec<_> = std::env::args_os().collect();
    let wraps = words.get(1).is_some_and(|word| word == "run");
    let own_words = words.split(|word| word == "--").next().unwrap_or_default();
    if wraps && !help && own_words.iter().any(|word| word == "--json") {
        let why = error.render().to_string();
        let why = why.trim().trim_start_matches("error: ").lines().next().unwrap_or_default();
        Output { json: true, quiet: false }.document(&not_understood_answer(why));
        return ExitCode::from(EXIT_SEMEL_FAILED);
    }
    let _nobody_listens = error.print();
    if wraps && !help && own_words.len() == words.len() {
        let _nobody_listens =
            writeln!(anstream::stderr(), "hint: the command stands after two dashes: semel run -- COMMAND");
    }
    ExitCode::from(match (help, wraps) {
        (true, _) => 0,
        (false, true) => EXIT_SEMEL_FAILED,
        (false, false) => EXIT_FAILED,
    })
}
