//! `semel man`: a page for every command.

use crate::args::{Cli, ManArgs};
use crate::context::Context;
use anyhow::Context as _;
use clap::CommandFactory;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

pub fn run(context: &Context, args: &ManArgs) -> anyhow::Result<ExitCode> {
    let directory = &args.directory;
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut files = Vec::new();
    write(&root, directory, &mut files)
        .with_context(|| format!("cannot write into {}", directory.display()))?;
    if context.output.json {
        context.output.list(&files, None);
    } else {
        context.output.say(format_args!("{} pages in {}", files.len(), directory.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn write(command: &clap::Command, directory: &Path, files: &mut Vec<String>) -> std::io::Result<()> {
    for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
        write(part, directory, files)?;
    }
    let page = clap_mangen::Man::new(command.clone()).generate_to(directory)?;
    files.push(page.display().to_string());
    Ok(())
}
