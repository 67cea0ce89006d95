//! `semel policy`: check it, explain it, describe its form.

mod accept;
mod presets;

use super::key::{action, arguments};
use super::{Context, EXIT_FINDINGS};
use crate::args::{Policy as Args, PolicyCommand, PolicyExplain};
use crate::output::counted;
use crate::policy_files;
use semel_core::class::{Class, Tier};
use semel_core::json::Json;
use semel_core::policy::diagnostic::Severity;
use semel_core::policy::explain::{Earlier, Explanation, WhyNot};
use semel_core::policy::{ActionFacts, Diagnostics, Policy, PolicyFile, schema};
use semel_doors::command::intent::CommandLine;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

pub fn run(context: &Context, args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        PolicyCommand::Check { files } => check(context, files),
        PolicyCommand::Explain(args) => explain(context, args),
        PolicyCommand::Accept(args) => accept::run(context, args),
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

fn explain(context: &Context, args: &PolicyExplain) -> anyhow::Result<ExitCode> {
    let (action, arguments): (String, Json) = match &args.action {
        Some(name) if args.command.is_empty() => {
            let name = action(name)?;
            (name.to_owned(), arguments(name, args.args.as_deref().unwrap_or("{}"))?)
        }
        Some(_) => anyhow::bail!("either an action or a command after --, not both"),
        None => {
            let line = CommandLine::new(&args.command, &context.environment.cwd, None)?;
            (line.action(), line.arguments())
        }
    };
    let (_, explanation) = context.policy()?.explain(&ActionFacts::new(&action, &arguments));
    if context.output.json {
        context.output.document(&explanation);
    } else {
        context.output.data(text(&explanation)?.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

fn text(it: &Explanation) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let or = |value: &Option<String>, otherwise: &str| value.clone().unwrap_or_else(|| otherwise.to_owned());
    let list = |paths: &[String], otherwise: &str| match paths {
        [] => otherwise.to_owned(),
        paths => paths.join(", "),
    };
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            let _infallible = writeln!(text, "{name:<14}{}", crate::neutral::line(&value));
        }
    };
    fact("action", it.action.clone());
    fact("rule", it.rule.clone());
    fact("class", format!("{}: {}", it.class, it.because));
    fact("tier", word(serde_json::to_value(it.tier).unwrap_or_default()));
    fact("mode", word(serde_json::to_value(it.mode).unwrap_or_default()));
    fact("key", list(&it.identity.key, "all arguments but content and volatile ones"));
    if !it.identity.missing.is_empty() {
        let then =
            if it.identity.key_required { "such a call is refused" } else { "all arguments count instead" };
        fact("missing", format!("{}: {then}", it.identity.missing.join(", ")));
    }
    fact("content", list(&it.identity.content, ""));
    fact("volatile", list(&it.identity.volatile, ""));
    fact("secret", list(&it.identity.secret, ""));
    let scope = it.scope.map(|scope| word(serde_json::to_value(scope).unwrap_or_default()));
    fact("scope", or(&scope, "the run where one is named, else global"));
    fact("caller's key", word(serde_json::to_value(it.caller_key).unwrap_or_default()));
    fact("again", word(serde_json::to_value(it.again).unwrap_or_default()));
    fact("failure", word(serde_json::to_value(it.failure).unwrap_or_default()));
    fact("effect", or(&it.effect, ""));
    fact("refused if", or(&it.refused, ""));
    fact("window", or(&it.window, "24h in a named run, with key fields or on one connection, else 1h"));
    fact("wait", it.wait.clone());
    fact("timeout", or(&it.timeout, if it.class == Class::Generate { "1h" } else { "24h" }));
    fact("budget", it.budget.to_string());
    fact("serialize by", or(&it.serialize_by, ""));
    fact("inject", or(&it.inject, ""));
    let lost = match it.tier {
        Tier::Keyed => "none: a lost call is sent again under its key, while that lives",
        Tier::Convergent => "none: a lost call is sent again",
        _ => "none: a lost answer waits for a person",
    };
    fact("probe", or(&it.probe, lost));
    if let Some(quiet) = &it.probe_quiet {
        fact("quiet", format!("a no of the probe counts {quiet} after the last sending"));
    }
    fact("confirm", or(&it.confirm, ""));
    fact("undo", or(&it.undo, ""));
    // Rules of another door say nothing about this action.
    let door = |name: &str| name.split(':').next().map(str::to_owned);
    let of_this_door = |earlier: &&Earlier| {
        !matches!(earlier.why_not, WhyNot::Match)
            || !earlier.pattern.contains(':')
            || door(&earlier.pattern) == door(&it.action)
    };
    let earlier: Vec<&Earlier> = it.earlier.iter().filter(of_this_door).collect();
    if !earlier.is_empty() {
        writeln!(text, "\nearlier rules that did not take it")?;
        for earlier in earlier {
            let why = match &earlier.why_not {
                WhyNot::Match => format!("match = \"{}\" is another action", earlier.pattern),
                WhyNot::When { condition } => format!("match fits, when does not hold: {condition}"),
            };
            writeln!(text, "  {}  {}", earlier.rule, crate::neutral::line(&why))?;
        }
    }
    Ok(text)
}
