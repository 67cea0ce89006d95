//! `semel init`: puts semel in front of the MCP servers that are configured already, and takes it out again.
//!
//! The files belong to other programs. They are shown before they are written, and changed only in a server's start
//! command and headers.

mod backups;
mod clients;
mod decide;
mod edit;
mod edit_json;
mod edit_toml;
mod entry;
mod format;
mod guard;
mod known;
mod names;
mod outcome;
mod packs;
mod places;
mod plan;
mod read_json;
mod read_toml;
mod report;
mod resolve;
mod verify;
mod write;

use crate::args::{ClientChoice, InitArgs};
use crate::context::Context;
use crate::output::Hinted;
use crate::terminal_text;
use backups::Backups;
use clap::ValueEnum;
use clients::McpClient;
use decide::{Surroundings, WordsChoice};
use names::Names;
use outcome::FileOutcome;
use places::Candidate;
use plan::FoundFile;
use semel::command::Change;
use semel_core::answer::EffectWord;
use std::path::Path;
use std::process::ExitCode;
use write::FileSnapshot;

pub fn run(context: &Context, args: &InitArgs) -> anyhow::Result<Change> {
    let environment = &context.environment;
    let around = Surroundings {
        semel: resolve::this_program(&environment.search)?,
        flags: flags(context),
        words: match (args.portable, args.absolute) {
            (true, _) => WordsChoice::Portable,
            (_, true) => WordsChoice::Absolute,
            _ => WordsChoice::ByFile,
        },
        search: &environment.search,
        named: !args.server.is_empty(),
    };
    let backups = Backups::below(&environment.settings.state_directory()?);
    let read = |candidate: Candidate| {
        let (client, path) = (candidate.client, candidate.path.clone());
        let found = FileSnapshot::read(&path).and_then(|snapshot| {
            FoundFile::of(candidate, snapshot).map_err(|error| anyhow::anyhow!("{error}"))
        });
        (client, path, found)
    };
    let found: Vec<_> = places::find(environment)?.into_iter().map(read).collect();
    // Also those of clients that are not chosen: all of them are on one ledger.
    let mut names = Names::default();
    found.iter().filter_map(|(.., found)| found.as_ref().ok()).for_each(|file| file.take_names(&mut names));
    let chosen = |client: &McpClient| args.client.is_empty() || args.client.contains(&client.choice);
    let found = found.into_iter().filter(|(client, ..)| chosen(client));
    let mut outcomes: Vec<FileOutcome> = found
        .map(|(client, path, found)| match found {
            Ok(file) if args.undo => FileOutcome::Planned(plan::undo(file, &backups)),
            Ok(file) => FileOutcome::Planned(plan::guard(file, &args.server, &around, &mut names)),
            Err(error) => FileOutcome::NotRead { client: client.name, path, error },
        })
        .collect();
    every_server_is_there(&outcomes, args)?;
    if args.writes() {
        outcomes = outcomes.into_iter().map(|outcome| write(outcome, &backups, !args.undo)).collect();
    }
    Ok(report(context, args, &outcomes, &around))
}

/// A client starts its servers from wherever it is, so the paths are whole. The address of a server stays as it is.
fn flags(context: &Context) -> Vec<(&'static str, String)> {
    let global = &context.global;
    let given = [("--policy", &global.policy), ("--ledger", &global.ledger)];
    let whole = |path: &Path| match path.to_str() {
        Some(address) if address.contains("://") => address.to_owned(),
        _ => context.environment.settings.cwd.join(path).display().to_string(),
    };
    given.into_iter().filter_map(|(flag, path)| Some((flag, whole(path.as_ref()?)))).collect()
}

/// A name that nobody has is a mistake, and found before anything is written.
fn every_server_is_there(outcomes: &[FileOutcome], args: &InitArgs) -> anyhow::Result<()> {
    let rows = || outcomes.iter().filter_map(FileOutcome::plan).flat_map(|plan| &plan.rows);
    let Some(server) = args.server.iter().find(|server| !rows().any(|row| row.place.server == **server))
    else {
        return Ok(());
    };
    let chosen = args.client.iter().filter_map(ClientChoice::to_possible_value);
    let chosen: Vec<String> = chosen.map(|client| format!("--client {}", client.get_name())).collect();
    Err(match chosen.is_empty() {
        true => Hinted::error(format!("no configuration has a server {server:?}"), "semel init lists them"),
        false => Hinted::error(
            format!("no configuration that {} chooses has a server {server:?}", chosen.join(" ")),
            "semel init lists the servers of all clients",
        ),
    })
}

fn write(outcome: FileOutcome, backups: &Backups, can_be_undone: bool) -> FileOutcome {
    match outcome {
        FileOutcome::Planned(plan) if plan.changes() => {
            match plan.snapshot.replace(&plan.text, backups, can_be_undone) {
                Ok(backup) => FileOutcome::Written(plan, backup),
                Err(error) => FileOutcome::NotWritten(plan, error),
            }
        }
        other => other,
    }
}

fn report(context: &Context, args: &InitArgs, outcomes: &[FileOutcome], around: &Surroundings<'_>) -> Change {
    let output = context.output;
    let changes = outcomes.iter().filter_map(FileOutcome::plan).any(|plan| plan.changes());
    let is_written = outcomes.iter().any(|outcome| matches!(outcome, FileOutcome::Written(..)));
    let effect = match (is_written, changes && !args.writes()) {
        (true, _) => EffectWord::Updated,
        (false, true) => EffectWord::WouldUpdate,
        (false, false) => EffectWord::Noop,
    };
    let (mut document, mut text) = (serde_json::Value::Null, String::new());
    if output.json {
        document = report::document(outcomes, context);
    } else {
        let flags: Vec<String> =
            around.flags.iter().flat_map(|(flag, path)| [(*flag).to_owned(), path.clone()]).collect();
        text = report::text(outcomes, args, &flags, context);
        let plans = outcomes.iter().filter_map(FileOutcome::plan);
        let shared = plans.filter(|plan| plan.candidate.project.is_some() && plan.changes() && !args.undo);
        for plan in shared {
            let path = terminal_text::line(&plan.candidate.path.display().to_string());
            let needs = match around.is_portable(&plan.candidate) {
                true => "whoever uses it needs semel on the PATH",
                false => "the paths in it hold on this machine only",
            };
            output.say(format!("note: {path} belongs to the project; {needs}"));
        }
        for (path, error) in outcomes.iter().filter_map(FileOutcome::error) {
            output.error(&anyhow::anyhow!("{} {error:#}", path.display()));
        }
    }
    let code = match outcomes.iter().any(|outcome| outcome.error().is_some()) {
        true => ExitCode::from(crate::EXIT_FAILED),
        false => ExitCode::SUCCESS,
    };
    Change { code, ..Change::new(effect, document, text) }
}
