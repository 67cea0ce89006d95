//! `semel audit`: what ran twice, as the records of agents tell.

use crate::args::{AuditArgs, AuditForm, AuditLevel};
use crate::context::{Context, EXIT_FINDINGS};
use crate::output::{Hinted, counted, stderr_is_terminal};
use crate::policy_files;
use crate::terminal_text;
use anyhow::Context as _;
use owo_colors::{OwoColorize, Style};
use semel_core::time::At;
use semel_detect::audit::AuditReport;
use semel_detect::audit::finding::{AuditFinding, FindingLevel};
use semel_detect::audit::run::{AuditOptions, run as read_and_audit};
use semel_detect::audit::tracker::RemarkKind;
use semel_detect::formats::mapped::Mapping;
use semel_detect::judge::Judge;
use semel_detect::report::{html, junit, sarif};
use semel_detect::source::discover::{self, TranscriptFile};
use semel_gate::clock::{Clock, SystemClock};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// How far back the sessions of this machine are looked at unless told.
const LATELY: Duration = Duration::from_secs(30 * 86_400);
/// How many findings the screen shows.
const SHOWN_MAX: usize = 20;
const SUBJECT_CHARACTERS: usize = 60;

pub fn run(context: &Context, args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let mapping = args.map.as_deref().map(Mapping::parse).transpose()?;
    let policy = policy_files::read(&context.environment, context.global.policy.as_deref())?;
    let judge = Judge::new(policy).map_err(|found| {
        context.output.warn(found.render(stderr_is_terminal()));
        Hinted::error("the policy does not hold together".to_owned(), "semel policy check")
    })?;
    let since = args.since.or_else(|| args.paths.is_empty().then_some(LATELY));
    let now = SystemClock::start().now();
    let since =
        since.map(|span| At(now.0.saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))));
    let files = files(context, args, since)?;
    let options = AuditOptions {
        mapping,
        since,
        workers: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    };
    let all: u64 = files.iter().map(|file| file.bytes).sum();
    let mut bar = ProgressLine::new(context, all);
    let report = read_and_audit(files, &judge, &options, |read| bar.show(read));
    bar.end();
    write(context, args, &report)?;
    let is_reached = args.fail_on.is_some_and(|level| report.reaches(as_level(level)));
    Ok(if is_reached { ExitCode::from(EXIT_FINDINGS) } else { ExitCode::SUCCESS })
}

fn as_level(level: AuditLevel) -> FindingLevel {
    match level {
        AuditLevel::Possible => FindingLevel::Possible,
        AuditLevel::Likely => FindingLevel::Likely,
        AuditLevel::Proven => FindingLevel::Proven,
    }
}

fn files(context: &Context, args: &AuditArgs, since: Option<At>) -> anyhow::Result<Vec<TranscriptFile>> {
    let mut files = Vec::new();
    if args.paths.is_empty() {
        let environment = &context.environment;
        let home = environment.home.as_deref().unwrap_or_else(|| std::path::Path::new("/"));
        let (claude, codex) = (environment.claude_config_dir.as_deref(), environment.codex_home.as_deref());
        let places = discover::agent_directories(home, claude, codex);
        if places.is_empty() {
            return Err(Hinted::error(
                "no sessions of Claude Code, Codex or Gemini CLI were found".to_owned(),
                "name files or directories: semel audit PATH",
            ));
        }
        for (_, place) in places {
            files.extend(discover::candidates(&place).with_context(|| place.display().to_string())?);
        }
        // A session that was last written before has nothing newer in it.
        let oldest = since.map(|since| SystemTime::UNIX_EPOCH + Duration::from_micros(since.0));
        files.retain(|file| file.modified.zip(oldest).is_none_or(|(modified, oldest)| modified >= oldest));
    }
    for path in &args.paths {
        files.extend(discover::candidates(path).with_context(|| path.display().to_string())?);
    }
    Ok(files)
}

fn write(context: &Context, args: &AuditArgs, report: &AuditReport) -> anyhow::Result<()> {
    let pretty =
        |value: &serde_json::Value| serde_json::to_string_pretty(value).expect("documents have string keys");
    let text = match args.form {
        _ if context.output.json => {
            let mut document = serde_json::to_value(report)?;
            document["schema_version"] = serde_json::json!(1);
            pretty(&document)
        }
        AuditForm::Text => screen(report),
        AuditForm::Html => html::page(report),
        AuditForm::Sarif => pretty(&sarif::document(report)),
        AuditForm::Junit => junit::document(report),
    };
    match &args.output {
        Some(path) => {
            let plain = anstream::adapter::strip_str(&text).to_string();
            std::fs::write(path, plain + "\n").with_context(|| format!("cannot write {}", path.display()))?;
            context.output.say(format_args!("{} It is written to {}.", summary(report), path.display()));
        }
        None => {
            context.output.data(text.trim_end());
        }
    }
    Ok(())
}

/// "23 sessions, 4,112 tool calls, 3 effects ran twice, 2 look like it."
fn summary(report: &AuditReport) -> String {
    let proven = report.count(FindingLevel::Proven);
    let likely = report.count(FindingLevel::Likely) + report.count(FindingLevel::Possible);
    let twice = match (proven, likely) {
        (0, 0) => "no effect ran twice".to_owned(),
        (0, likely) => format!("{} to have run twice", plural(likely, "effect seems", "effects seem")),
        (proven, 0) => format!("{} twice", plural(proven, "effect ran", "effects ran")),
        (proven, likely) => {
            format!(
                "{} twice, {} like it",
                plural(proven, "effect ran", "effects ran"),
                plural(likely, "looks", "look")
            )
        }
    };
    let sessions = plural(report.sessions, "session", "sessions");
    format!("{sessions}, {}, {twice}.", plural(report.tool_calls, "tool call", "tool calls"))
}

fn screen(report: &AuditReport) -> String {
    let mut text = format!("{}\n", summary(report).bold());
    for finding in report.findings.iter().take(SHOWN_MAX) {
        text.push('\n');
        text.push_str(&shown(finding));
    }
    let hidden = report.counts.values().sum::<u64>().saturating_sub(SHOWN_MAX as u64);
    if hidden > 0 {
        let _ = writeln!(text, "\n{} more; --as html --output FILE shows all.", grouped(hidden));
    }
    text.push_str(&beside(report));
    text
}

fn shown(finding: &AuditFinding) -> String {
    let style = match finding.level {
        FindingLevel::Proven => Style::new().red().bold(),
        FindingLevel::Likely => Style::new().yellow().bold(),
        FindingLevel::Possible => Style::new().cyan(),
    };
    let subject = terminal_text::shortened(&finding.subject, SUBJECT_CHARACTERS);
    let level = finding.level.word().to_uppercase();
    let mut text = format!(
        "{}  {} {subject}\n",
        format!("{level:<8}").style(style),
        terminal_text::line(&finding.action)
    );
    let gap =
        finding.gap.map_or_else(String::new, |gap| format!(", {} apart", semel_core::time::in_words(gap)));
    let _ = writeln!(text, "          {} calls{gap}: {}.", finding.calls.len(), finding.why);
    for call in finding.calls.iter().take(4) {
        let at = call.at.map_or_else(String::new, |at| format!("  {at}"));
        let _ = writeln!(
            text,
            "          {}:{}{at}  {}",
            terminal_text::line(&call.file),
            call.line,
            call.ending.word()
        );
    }
    let _ = writeln!(
        text,
        "          Probably {}. To prevent it, {}.",
        finding.layer.in_words(),
        finding.prevention
    );
    text
}

fn beside(report: &AuditReport) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        let _ = writeln!(text, "{words}");
    };
    let retries = report.blind_retries + report.verified_retries;
    if retries > 0 {
        line(format!(
            "\nAfter a lost answer the agent looked first in {} of {} retries; {} did no harm.",
            grouped(report.verified_retries),
            grouped(retries),
            plural(report.blind_retries_without_harm, "blind one", "blind ones"),
        ));
    }
    let remarks = |kind: RemarkKind| report.remarks.iter().filter(move |remark| remark.kind == kind);
    for (kind, words) in [
        (RemarkKind::EffectAfterStop, "An effect happened after the user had stopped the agent"),
        (RemarkKind::ClaimWithoutEffect, "The model claimed a success, and every try had failed"),
    ] {
        for remark in remarks(kind).take(5) {
            let (action, file) = (terminal_text::line(&remark.action), terminal_text::line(&remark.file));
            line(format!("{words}: {action} at {file}:{}.", remark.line));
        }
    }
    let skipped = &report.skipped;
    if skipped.lines + skipped.files > 0 {
        line(format!(
            "\n{} and {} could not be read:",
            plural(skipped.lines, "line", "lines"),
            plural(skipped.files, "file", "files")
        ));
        for named in skipped.named.iter().take(5) {
            line(format!("  {}", terminal_text::line(named)));
        }
    }
    text
}

fn plural(count: u64, one: &str, many: &str) -> String {
    match usize::try_from(count) {
        Ok(small @ 0..=999) => counted(small, one, many),
        _ => format!("{} {many}", grouped(count)),
    }
}

/// `4,112`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A line on the terminal that grows while files are read.
struct ProgressLine {
    all: u64,
    shown: Option<u64>,
}

impl ProgressLine {
    /// Less than this is read before anybody would look.
    const WORTH_SHOWING: u64 = 64 * 1024 * 1024;

    fn new(context: &Context, all: u64) -> ProgressLine {
        let is_wanted = all >= Self::WORTH_SHOWING && stderr_is_terminal() && !context.output.quiet;
        ProgressLine { all, shown: is_wanted.then_some(u64::MAX) }
    }

    fn show(&mut self, read: u64) {
        let Some(shown) = &mut self.shown else { return };
        let percent = read.saturating_mul(100) / self.all.max(1);
        if *shown != percent {
            *shown = percent;
            let filled = "#".repeat((percent / 4) as usize);
            let _nobody_looks =
                write!(std::io::stderr(), "\r[{filled:<25}] {percent} % of {} MB", self.all >> 20);
        }
    }

    fn end(self) {
        if self.shown.is_some() {
            let _nobody_looks = write!(std::io::stderr(), "\r{:60}\r", "");
        }
    }
}
