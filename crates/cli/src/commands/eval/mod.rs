//! `semel eval`: agents try a guard, semel itself unless told otherwise.

mod endpoint;
mod guard;
mod screen;

use crate::args::{EvalArgs, EvalWorldArgs};
use crate::context::{Context, EXIT_FINDINGS};
use crate::output::{Hinted, stderr_is_terminal};
use crate::server_access;
use anyhow::{Context as _, bail};
use endpoint::Endpoint;
use guard::Guard;
use semel_detect::eval::model::ChatModel;
use semel_detect::eval::run::{EvalTrial, run as try_all};
use semel_detect::eval::scenario::{self, EvalDoor, Scenario};
use semel_detect::eval::score::{Numbers, ScenarioResult};
use semel_detect::eval::world::World;
use semel_detect::eval::{command_world, golden, mcp_world};
use semel_detect::report::junit;
use serde::Serialize;
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// How a guard did at one door.
#[derive(Debug, Serialize)]
struct DoorReport {
    door: &'static str,
    guard: String,
    numbers: Numbers,
    results: Vec<ScenarioResult>,
    /// The options that repeat the run at this door.
    #[serde(skip)]
    options: Vec<String>,
}

pub fn run(context: &Context, args: &EvalArgs) -> anyhow::Result<ExitCode> {
    if context.global.policy.is_some() {
        bail!("semel eval tries semel without a policy, so --policy has no place here");
    }
    // It tries semel on ledgers of its own.
    server_access::refuse(context)?;
    let endpoint = Endpoint::of(context, args)?;
    let all = match &endpoint {
        Some(_) => scenario::for_model(),
        None => scenario::shipped().into_iter().chain(golden::scenarios()).collect(),
    };
    let is_named = |scenario: &Scenario| args.only.as_ref().is_none_or(|text| scenario.name.contains(text));
    let scenarios: Vec<Scenario> = all.into_iter().filter(is_named).collect();
    let directory = tempfile::tempdir()?;
    let mut reports = Vec::new();
    for (door, guard) in guard::chosen(args) {
        let fits = |scenario: &&Scenario| scenario.door.is_none_or(|own| own == door);
        let scenarios: Vec<Scenario> = scenarios.iter().filter(fits).cloned().collect();
        if scenarios.is_empty() {
            continue;
        }
        let below = directory.path().join(door.word());
        std::fs::create_dir_all(&below)?;
        let model = endpoint.as_ref().map(|endpoint| endpoint as &dyn ChatModel);
        reports.push(try_door(context, args, (door, &guard), &scenarios, &below, model)?);
    }
    if reports.is_empty() {
        return Err(Hinted::error(
            "no scenario has such a name".to_owned(),
            "semel eval --json lists them all",
        ));
    }
    if let Some(path) = &args.junit {
        let cases = reports.iter().flat_map(|report| {
            let named = |result: &ScenarioResult| {
                let why = (!result.is_right()).then(|| screen::wrong(result));
                (format!("{}: {}", report.door, result.name), why)
            };
            report.results.iter().map(named).collect::<Vec<_>>()
        });
        std::fs::write(path, junit::cases("semel eval", &cases.collect::<Vec<_>>()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if context.output.json {
        context.output.document(&serde_json::json!({"schema_version": 1, "doors": reports}));
    } else {
        for report in &reports {
            context.output.data(screen::shown(report).trim_end());
        }
    }
    let is_right = reports.iter().flat_map(|report| &report.results).all(ScenarioResult::is_right);
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FINDINGS) })
}

fn try_door(
    context: &Context,
    args: &EvalArgs,
    (door, guard): (EvalDoor, &Guard),
    scenarios: &[Scenario],
    directory: &Path,
    model: Option<&dyn ChatModel>,
) -> anyhow::Result<DoorReport> {
    // The server of the HTTP door lives as long as this.
    let (subject, _served) = guard.stand_at(door, args, directory)?;
    let is_shown = stderr_is_terminal() && !context.output.quiet;
    let all = scenarios.len();
    let progress = |done: usize| {
        if is_shown {
            let _nobody_looks = write!(std::io::stderr(), "\r{} door: {done} of {all}", door.word());
        }
    };
    let results = try_all(scenarios, &EvalTrial { subject: &subject, directory, model }, &progress);
    if is_shown {
        let _nobody_looks = write!(std::io::stderr(), "\r{:40}\r", "");
    }
    let guard_name = guard.to_string();
    let results =
        results.with_context(|| format!("{guard_name} could not be tried at the {} door", door.word()))?;
    Ok(DoorReport {
        door: door.word(),
        guard: guard_name,
        numbers: Numbers::of(&results),
        results,
        options: guard.options(door, args),
    })
}

/// The hidden command that is the world's tool.
pub fn world(args: &EvalWorldArgs) -> anyhow::Result<ExitCode> {
    let world = World::open(&args.directory);
    match &args.tool {
        None => {
            mcp_world::serve(&world, std::io::stdin().lock(), std::io::stdout())?;
            Ok(ExitCode::SUCCESS)
        }
        Some(tool) => {
            let args: Value = serde_json::from_str(args.args.as_deref().unwrap_or("{}"))?;
            let (output, errors) = (std::io::stdout().lock(), std::io::stderr().lock());
            Ok(ExitCode::from(command_world::run(&world, tool, &args, output, errors)?))
        }
    }
}
