//! `semel policy lint`: errors, and what is probably not meant.

use crate::context::{Context, EXIT_FINDINGS};
use crate::output::counted;
use crate::unread_effects;
use semel::policy_files;
use semel_core::policy::diagnostic::Severity;
use semel_core::policy::{Diagnostics, Policy, PolicyFile};
use std::path::PathBuf;
use std::process::ExitCode;

pub fn run(context: &Context, files: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let sets: Vec<Vec<PolicyFile>> = if files.is_empty() {
        let here = policy_files::read(&context.environment.settings, context.global.policy.as_deref())?;
        if here.is_empty() { Vec::new() } else { vec![here] }
    } else {
        let one = |path: &PathBuf| {
            policy_files::read_one(&context.environment.settings.cwd.join(path)).map(|file| vec![file])
        };
        files.iter().map(one).collect::<Result<_, _>>()?
    };
    let checked: Vec<String> = sets.iter().flatten().map(|file| file.path.display().to_string()).collect();
    let mut found = Diagnostics::default();
    let mut unread = None;
    for set in sets {
        found.extend(match Policy::load(set) {
            Ok(policy) => {
                if files.is_empty() {
                    unread = unread_effects::of_file(context, &policy);
                }
                policy.warnings
            }
            Err(errors) => errors,
        });
    }
    let [errors, warnings, notes] =
        [Severity::Error, Severity::Warning, Severity::Note].map(|severity| found.count(severity));
    let failed = errors + warnings > 0;
    if context.output.json {
        let none: Option<&str> = None;
        context.output.document(
            &serde_json::json!({"schema_version": 1, "items": found, "next": none, "ok": !failed, "files": checked}),
        );
    } else if !found.is_empty() {
        context.output.data(found.render(true));
    }
    if !context.output.json {
        context.output.say(match checked.as_slice() {
            [] => "no semel.toml from here upward: the defaults hold".to_owned(),
            files => format!(
                "{}: {}, {}, {}",
                files.join(", "),
                counted(errors, "error", "errors"),
                counted(warnings, "warning", "warnings"),
                counted(notes, "note", "notes")
            ),
        });
    }
    if let Some(unread) = unread {
        context.output.warn(format_args!("semel: {unread}; see semel ledger"));
    }
    Ok(if failed { ExitCode::from(EXIT_FINDINGS) } else { ExitCode::SUCCESS })
}
