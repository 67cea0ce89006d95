//! `semel policy test`: the policy on its examples, on pairs of calls and on recorded calls.

use crate::args::PolicyTest;
use crate::context::{Context, EXIT_FINDINGS};
use crate::output::{Hinted, counted, stderr_is_terminal};
use crate::table;
use crate::terminal_text;
use anyhow::Context as _;
use semel::policy_files;
use semel_core::policy::{Policy, PolicyFile};
use semel_detect::audit::SkippedCounts;
use semel_detect::judge::Judge;
use semel_detect::policy_test::examples::{self, ExampleReport};
use semel_detect::policy_test::pairs::{self, PairReport};
use semel_detect::policy_test::recorded::{self, CALLS_MAX};
use semel_detect::policy_test::{RecordedReport, TreatmentCounts, rehearse};
use semel_detect::source::discover;
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

pub fn run(context: &Context, args: &PolicyTest) -> anyhow::Result<ExitCode> {
    let files = policy_files::read(&context.environment.settings, context.global.policy.as_deref())?;
    let judge = load(context, files.clone())?;
    let against = match &args.against {
        Some(path) => {
            let file = policy_files::read_one(&context.environment.settings.cwd.join(path))?;
            Some(load(context, vec![file])?)
        }
        None => None,
    };
    let examples = examples::test(&files, &judge);
    let (mut pairs, mut transcripts) = (None, Vec::new());
    for path in args.paths.iter().map(|path| context.environment.settings.cwd.join(path)) {
        let shown = path.display();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).with_context(|| shown.to_string())?;
            pairs::test(&text, &judge, pairs.get_or_insert_default())
                .with_context(|| format!("{shown} has no pairs of calls"))?;
        } else {
            transcripts.extend(discover::candidates(&path).with_context(|| shown.to_string())?);
        }
    }
    if !args.paths.is_empty() && pairs.is_none() && transcripts.is_empty() {
        let what = "no file there may be a transcript".to_owned();
        return Err(Hinted::error(what, "name files, such as *.jsonl, or pairs of calls, *.toml"));
    }
    let mut skipped = SkippedCounts::default();
    let recorded = (!transcripts.is_empty()).then(|| {
        let calls = recorded::read(&transcripts, &mut skipped);
        let paths: Vec<PathBuf> = transcripts.into_iter().map(|file| file.path).collect();
        rehearse(&calls, &paths, &judge, against.as_ref())
    });
    let failed = !examples.wrong.is_empty() || pairs.as_ref().is_some_and(|pairs| !pairs.wrong.is_empty());
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "ok": !failed,
            "examples": {"tried": examples.tried, "wrong": examples.wrong},
            "pairs": pairs,
            "recorded": recorded,
            "skipped": skipped,
        }));
    } else {
        context.output.data(text(&examples, pairs.as_ref(), recorded.as_ref(), &skipped).trim_end());
    }
    Ok(if failed { ExitCode::from(EXIT_FINDINGS) } else { ExitCode::SUCCESS })
}

fn load(context: &Context, files: Vec<PolicyFile>) -> anyhow::Result<Judge> {
    Policy::load(files).map(Judge::of).map_err(|found| {
        context.output.warn(found.render(stderr_is_terminal()));
        Hinted::error("the policy does not hold together".to_owned(), "semel policy lint")
    })
}

fn text(
    examples: &ExampleReport,
    pairs: Option<&PairReport>,
    recorded: Option<&RecordedReport>,
    skipped: &SkippedCounts,
) -> String {
    let mut text = String::new();
    if !examples.wrong.is_empty() {
        let _ = writeln!(text, "{}\n", examples.wrong.render(true));
    }
    let tried = counted(examples.tried, "example", "examples");
    let _ = writeln!(text, "{tried}, {} wrong.", examples.wrong.len());
    if let Some(pairs) = pairs {
        let _ = writeln!(
            text,
            "{}, {} wrong, {} need more than a rehearsal.",
            counted(pairs.tried, "pair", "pairs"),
            pairs.wrong.len(),
            pairs.not_tried
        );
        for wrong in &pairs.wrong {
            let name = terminal_text::line(&wrong.name);
            let expected = serde_json::json!(wrong.expected);
            let expected = expected.as_str().unwrap_or_default();
            let _ = writeln!(text, "  {name}, {}: {expected} expected, {}", wrong.side, wrong.got);
        }
    }
    if let Some(recorded) = recorded {
        recorded_text(recorded, &mut text);
    }
    for name in &skipped.named {
        let _ = writeln!(text, "skipped {}", terminal_text::line(name));
    }
    text
}

fn recorded_text(report: &RecordedReport, text: &mut String) {
    let calls = usize::try_from(report.calls).unwrap_or(usize::MAX);
    let most = if calls >= CALLS_MAX { ", the most that are tried" } else { "" };
    let _ = writeln!(text, "{}{most}.", counted(calls, "recorded call", "recorded calls"));
    if report.groups.is_empty() {
        return;
    }
    let count = |now: u64, before: Option<u64>| match before {
        Some(before) if before != now => format!("{before} -> {now}"),
        _ => now.to_string(),
    };
    let rows = report.groups.iter().map(|group| {
        let counted =
            |of: fn(&TreatmentCounts) -> u64| count(of(&group.counts), group.before.as_ref().map(of));
        vec![
            terminal_text::line(&group.action),
            terminal_text::line(&group.rule),
            group.class.to_string(),
            counted(|counts| counts.let_through),
            counted(|counts| counts.collapsed),
            counted(|counts| counts.held),
        ]
    });
    text.push('\n');
    for line in table::plain(&["ACTION", "RULE", "CLASS", "LET THROUGH", "COLLAPSED", "HELD"], rows) {
        let _ = writeln!(text, "{line}");
    }
    if report.changed > 0 {
        let _ = writeln!(text, "\n{} treated differently:", counted_calls(report.changed));
    }
    for change in &report.changes {
        let _ = writeln!(
            text,
            "  {}:{} {} {}: {} -> {}",
            change.file.display(),
            change.line,
            terminal_text::line(&change.action),
            terminal_text::line(&change.subject),
            change.before,
            change.after
        );
    }
}

fn counted_calls(calls: u64) -> String {
    counted(usize::try_from(calls).unwrap_or(usize::MAX), "call is", "calls are")
}
