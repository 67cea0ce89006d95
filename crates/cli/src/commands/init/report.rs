//! The report of `semel init`: a diff of each file, a line for each server, and the next step.

use super::edit::EntryChange;
use super::outcome::FileOutcome;
use super::packs::Packs;
use super::plan::FilePlan;
use crate::args::InitArgs;
use crate::config::Environment;
use crate::context::Context;
use crate::{table, terminal_text};
use owo_colors::OwoColorize;
use semel_core::json::{self, Json};
use semel_core::redact::{REDACTED, is_secret_name, redact};
use serde_json::{Map, Value, json};
use std::path::Path;

pub fn text(outcomes: &[FileOutcome], args: &InitArgs, flags: &[String], context: &Context) -> String {
    let environment = &context.environment;
    let mut parts: Vec<String> = Vec::new();
    for plan in outcomes.iter().filter_map(FileOutcome::plan).filter(|plan| plan.changes()) {
        parts.push(coloured(&diff(plan)));
    }
    let rows: Vec<Vec<String>> = outcomes
        .iter()
        .flat_map(FileOutcome::rows)
        .map(|(plan, row)| {
            let file = near(&plan.candidate.path, environment);
            let within = plan.candidate.named_within(&row.place).map(|name| format!(" ({name})"));
            vec![
                terminal_text::line(&row.place.server),
                plan.candidate.client.title.to_owned(),
                terminal_text::line(&format!("{file}{}", within.unwrap_or_default())),
                row.action.words().to_owned(),
                row.pack.unwrap_or("-").to_owned(),
                terminal_text::line(row.why.as_deref().unwrap_or_default()),
            ]
        })
        .collect();
    if !rows.is_empty() {
        let header = ["SERVER", "CLIENT", "FILE", "ACTION", "PACK", "WHY"];
        let mut lines = table::plain(&header, rows);
        lines[0] = lines[0].bold().to_string();
        parts.push(lines.join("\n"));
    }
    if !args.undo {
        let near = |path: &Path| terminal_text::line(&near(path, environment));
        parts.extend(Packs::of(outcomes, context).text(near));
    }
    parts.push(next(outcomes, args, flags));
    parts.join("\n\n")
}

pub fn document(outcomes: &[FileOutcome], context: &Context) -> Value {
    let items: Vec<Value> = outcomes
        .iter()
        .flat_map(FileOutcome::rows)
        .map(|(plan, row)| {
            json!({
                "server": row.place.server,
                "client": plan.candidate.client.name,
                "file": plan.candidate.path,
                "container": row.place.container,
                "action": row.action,
                "reason": row.why,
                "pack": row.pack,
            })
        })
        .collect();
    let files: Vec<Value> = outcomes.iter().map(file).collect();
    let advice = Packs::of(outcomes, context).advice;
    let (include, include_file) = advice.map(|advice| (advice.line, advice.file)).unzip();
    json!({
        "schema_version": 1,
        "items": items,
        "next": null,
        "files": files,
        "include": include,
        "include_file": include_file,
    })
}

fn file(outcome: &FileOutcome) -> Value {
    let (client, path) = match outcome {
        FileOutcome::NotRead { client, path, .. } => (*client, path),
        FileOutcome::Planned(plan) | FileOutcome::Written(plan, _) | FileOutcome::NotWritten(plan, _) => {
            (plan.candidate.client.name, &plan.candidate.path)
        }
    };
    let changing = outcome.plan().filter(|plan| plan.changes());
    let (state, backup) = match outcome {
        FileOutcome::NotRead { .. } | FileOutcome::NotWritten(..) => ("failed", None),
        FileOutcome::Written(_, backup) => ("changed", Some(backup)),
        FileOutcome::Planned(_) if changing.is_some() => ("would_change", None),
        FileOutcome::Planned(_) => ("unchanged", None),
    };
    let error = outcome.error().map(|(_, error)| format!("{error:#}"));
    json!({"file": path, "client": client, "state": state, "diff": changing.map(diff), "backup": backup, "error": error})
}

/// The members that change, of each server, as far as they may be shown.
fn diff(plan: &FilePlan) -> String {
    let path = plan.candidate.path.display();
    let mut lines = vec![format!("--- {path}"), format!("+++ {path}")];
    for row in &plan.rows {
        let Some(EntryChange { before, after, .. }) = &row.change else { continue };
        lines.push(format!("@@ {} @@", row.place.server));
        for (sign, entry, other) in [('-', before, after), ('+', after, before)] {
            let shown = shown(entry);
            let mut members: Vec<_> =
                shown.iter().filter(|(name, _)| entry.get(*name) != other.get(*name)).collect();
            members.sort_by_key(|(name, _)| *name != "command");
            lines.extend(members.iter().map(|(name, value)| format!("{sign} {name:?}: {value}")));
        }
    }
    terminal_text::lines(&lines.join("\n"))
}

const MASK: &str = "***";

/// A server's entry without the values of variables and headers, and without words that look secret.
fn shown(entry: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = entry.clone();
    for member in ["env", "headers", "http_headers"] {
        if let Some(Value::Object(values)) = shown.get_mut(member) {
            values.values_mut().for_each(|value| *value = MASK.into());
        }
    }
    for (name, value) in &mut shown {
        let secret = Json::str(REDACTED);
        let json = json::parse(&value.to_string()).map(|json| redact(&json, &[])).unwrap_or(secret);
        let text =
            if is_secret_name(name) { format!("{MASK:?}") } else { json.canonical().replace(REDACTED, MASK) };
        *value = serde_json::from_str(&text).unwrap_or_else(|_| MASK.into());
    }
    shown
}

fn coloured(diff: &str) -> String {
    let lines = diff.lines().map(|line| match line.as_bytes().first() {
        _ if line.starts_with("--- ") || line.starts_with("+++ ") => line.bold().to_string(),
        Some(b'-') => line.red().to_string(),
        Some(b'+') => line.green().to_string(),
        Some(b'@') => line.cyan().to_string(),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A path as a person would write it here.
fn near(path: &Path, environment: &Environment) -> String {
    if let Ok(inside) = path.strip_prefix(&environment.settings.cwd) {
        return inside.display().to_string();
    }
    match environment.settings.home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(inside) => format!("~/{}", inside.display()),
        None => path.display().to_string(),
    }
}

fn next(outcomes: &[FileOutcome], args: &InitArgs, flags: &[String]) -> String {
    let mut backups = Vec::new();
    for outcome in outcomes {
        if let FileOutcome::Written(_, backup) = outcome {
            backups.push(format!("  {}", terminal_text::line(&backup.display().to_string())));
        }
    }
    let changes = outcomes.iter().filter_map(FileOutcome::plan).any(FilePlan::changes);
    let failed = outcomes.iter().any(|outcome| outcome.error().is_some());
    let back = if args.undo { "semel init --write" } else { "semel init --undo --write" };
    match () {
        () if outcomes.is_empty() => {
            let whose = if args.client.is_empty() { "an MCP client" } else { "such a client" };
            format!("No configuration of {whose} was found here or in your home.\n\n{}", snippet(flags))
        }
        () if !backups.is_empty() => {
            format!("Written; restart the clients. Backups:\n{}\nTo take it back: {back}", backups.join("\n"))
        }
        () if changes && !args.writes() => {
            format!("Nothing is written yet. To write it: {}", command(args, flags))
        }
        () if failed => "Nothing is written; see the errors.".to_owned(),
        () => "Nothing to change.".to_owned(),
    }
}

/// For a client whose file semel does not know.
fn snippet(flags: &[String]) -> String {
    let mut args = vec!["mcp".to_owned()];
    args.extend_from_slice(flags);
    args.extend(["--name", "NAME", "--", "COMMAND", "ARGUMENT"].map(str::to_owned));
    format!(
        "In any other client, let the server's entry start semel with the server's own command behind it:\n  {}",
        json!({"command": "semel", "args": args})
    )
}

/// The same call, writing.
fn command(args: &InitArgs, flags: &[String]) -> String {
    let quoted = |word: &String| {
        let quoted = shlex::try_quote(word).map_or_else(|_| word.clone(), |quoted| quoted.into_owned());
        terminal_text::line(&quoted)
    };
    let mut words = vec!["semel".to_owned(), "init".to_owned()];
    words.extend(flags.iter().map(quoted));
    for (given, flag) in [(args.undo, "--undo"), (args.portable, "--portable"), (args.absolute, "--absolute")]
    {
        words.extend(given.then(|| flag.to_owned()));
    }
    for client in &args.client {
        let client = super::clients::CLIENTS.iter().find(|known| known.choice == *client);
        words.extend(client.map(|client| format!("--client {}", client.name)));
    }
    for server in &args.server {
        words.push(format!("--server {}", quoted(server)));
    }
    words.push("--write".to_owned());
    words.join(" ")
}
