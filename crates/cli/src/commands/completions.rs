//! `semel completions`: for a shell to read.

use crate::args::{Cli, CompletionsArgs};
use crate::context::Context;
use clap::CommandFactory;
use std::process::ExitCode;

pub fn run(context: &Context, args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "semel", &mut script);
    let script = String::from_utf8(script)?;
    if context.output.json {
        context.output.document(&serde_json::json!({"shell": args.shell.to_string(), "script": script}));
    } else {
        context.output.data(script.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}
