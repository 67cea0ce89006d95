//! `semel policy`: check it, explain it, describe its form.

mod explain;
mod presets;

use crate::args::{PolicyArgs, PolicyCommand};
use crate::context::{Context, EXIT_FINDINGS};
use crate::output::counted;
use crate::policy_files;
use semel_core::policy::diagnostic::Severity;
use semel_core::policy::{Diagnostics, Policy, PolicyFile, schema};
use std::path::PathBuf;
use std::process::ExitCode;

pub fn run(context: &Context, args: &PolicyArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        PolicyCommand::Check { files } => check(context, files),
        PolicyCommand::Explain(args) => explain::run(context, args),
        PolicyCommand::Presets { name } => presets::run(context, name.as_deref()),
        PolicyCommand::Schema => {
            context.output.document(&schema::schema());
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check(context: &Context, files: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let sets: Vec<Vec<PolicyFile>> = if files.is_empty() {
        let here = policy_files::read(&context.environment, context.global.policy.as_deref())?;
        if here.is_empty() { Vec::new() } else { vec![here] }
    } else {
        let one = |path: &PathBuf| {
            policy_files::read_one(&context.environment.cwd.join(path)).map(|file| vec![file])
        };
        files.iter().map(one).collect::<Result<_, _>>()?
    };
    let checked: Vec<String> = sets.iter().flatten().map(|file| file.path.display().to_string()).collect();
    let mut found = Diagnostics::default();
    for set in sets {
        found.extend(match Policy::load(set) {
            Ok(policy) => policy.warnings,
            Err(errors) => errors,
        });
    }
    let failed = found.has_errors();
    if context.output.json {
        let none: Option<&str> = None;
        context.output.document(
            &serde_json::json!({"schema_version": 1, "items": found, "next": none, "ok": !failed, "files": checked}),
        );
    } else if !found.is_empty() {
        context.output.data(found.render(true));
    }
    let errors = found.iter().filter(|finding| finding.severity == Severity::Error).count();
    let warnings = found.len() - errors;
    if !context.output.json {
        context.output.say(match checked.as_slice() {
            [] => "no semel.toml from here upward: the defaults hold".to_owned(),
            files => format!(
                "{}: {}, {}",
                files.join(", "),
                counted(errors, "error", "errors"),
                counted(warnings, "warning", "warnings")
            ),
        });
    }
    Ok(if failed { ExitCode::from(EXIT_FINDINGS) } else { ExitCode::SUCCESS })
}
