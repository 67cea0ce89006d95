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
mod mask;
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
use crate::change::Change;
use crate::context::Context;
use crate::output::Hinted;
use crate::terminal_text;
use backups::Backups;
use clap::ValueEnum;
use decide::Surroundings;
use guard::FrontWords;
use outcome::FileOutcome;
use places::Candidate;
use semel_core::answer::EffectWord;
use std::path::Path;
use std::process::ExitCode;
use write::FileSnapshot;

pub fn run(context: &Context, args: &InitArgs) -> anyhow::Result<Change> {
    let environment = &context.environment;
    let semel = resolve::this_program(&environment.search)?;
    let flags = flags(context);
    let front = FrontWords { semel: &semel, flags: &flags };
    let named = !args.server.is_empty();
    let around = Surroundings { front, search: &environment.search, named };
    let found = places::find(environment, &args.client)?;
    let backups = Backups::below(&environment.state_directory()?);
    let look = |candidate: Candidate| {
        let (client, path) = (candidate.client.name, candidate.path.clone());
        let planned = FileSnapshot::read(&path).and_then(|snapshot| {
            let planned = match args.undo {
                true => plan::undo(candidate, snapshot, &backups),
                false => plan::guard(candidate, snapshot, &args.server, &around),
            };
            planned.map_err(|error| anyhow::anyhow!("{error}"))
        });
        planned.map_or_else(|error| FileOutcome::NotRead { client, path, error }, FileOutcome::Planned)
    };
    let mut outcomes: Vec<FileOutcome> = found.into_iter().map(look).collect();
    every_server_is_there(&outcomes, args)?;
    if args.writes() {
        outcomes = outcomes.into_iter().map(|outcome| write(outcome, &backups, !args.undo)).collect();
    }
    Ok(report(context, args, &outcomes))
}

/// A client starts its servers from wherever it is, so the paths are whole. The address of a server stays as it is.
fn flags(context: &Context) -> Vec<String> {
    let global = &context.global;
    let given = [("--policy", &global.policy), ("--ledger", &global.ledger)];
    let given = given.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?)));
    let whole = |path: &Path| match path.to_str() {
        Some(address) if address.contains("://") => address.to_owned(),
        _ => context.environment.cwd.join(path).display().to_string(),
    };
    given.flat_map(|(flag, path)| [flag.to_owned(), whole(path)]).collect()
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

fn report(context: &Context, args: &InitArgs, outcomes: &[FileOutcome]) -> Change {
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
        text = report::text(outcomes, args, &flags(context), context);
        let shared = outcomes.iter().filter_map(FileOutcome::plan).filter(|plan| plan.candidate.shared);
        for plan in shared.filter(|plan| plan.changes() && !args.undo) {
            let path = terminal_text::line(&plan.candidate.path.display().to_string());
            output.say(format!(
                "note: {path} belongs to the project; the paths in it hold on this machine only"
            ));
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
