//! `semel audit`: finds effects that ran twice, in the records of agents.

mod follow;
mod screen;

use crate::args::{AuditArgs, AuditForm};
use crate::context::{Context, EXIT_FINDINGS};
use crate::output::{Hinted, stderr_is_terminal};
use anyhow::Context as _;
use semel::policy_files;
use semel_core::time::At;
use semel_detect::audit::AuditReport;
use semel_detect::audit::run::{AuditOptions, run as read_and_audit};
use semel_detect::formats::mapped::Mapping;
use semel_detect::judge::Judge;
use semel_detect::report::{html, junit, sarif};
use semel_detect::source::discover::{self, TranscriptFile};
use semel_gate::clock::{Clock, SystemClock};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// How far back the sessions of this machine are looked at unless told.
const LATELY: Duration = Duration::from_secs(30 * 86_400);

pub fn run(context: &Context, args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let mapping = args.map.as_deref().map(Mapping::parse).transpose()?;
    let policy = policy_files::read(&context.environment.settings, context.global.policy.as_deref())?;
    let judge = Judge::new(policy).map_err(|found| {
        context.output.warn(found.render(stderr_is_terminal()));
        Hinted::error("the policy has errors".to_owned(), "semel policy lint")
    })?;
    let since = args.since.or_else(|| args.paths.is_empty().then_some(LATELY));
    let now = SystemClock::start().now();
    let since =
        since.map(|span| At(now.0.saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))));
    let options = AuditOptions {
        mapping,
        since,
        workers: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    };
    let paths = paths(context, args)?;
    if args.follow {
        return follow::follow(context, &paths, &judge, &options);
    }
    let files = files(args, &paths, since)?;
    let all: u64 = files.iter().map(|file| file.bytes).sum();
    let mut bar = ProgressLine::new(context, all);
    let report = read_and_audit(files, &judge, &options, |read| bar.show(read));
    bar.end();
    write(context, args, &report)?;
    // Nothing was found because nothing was read: that must not pass for a clean record.
    if !args.paths.is_empty() && report.skipped.files == report.files {
        let what = match report.skipped.named.first() {
            Some(first) => format!("nothing could be read: {first}"),
            None => "there is no file to read".to_owned(),
        };
        return Err(Hinted::error(
            what,
            "semel audit --help names the formats; --map reads other JSON lines",
        ));
    }
    if report.effects == 0 && report.without_arguments > 0 {
        let what = "nothing could be compared: the records have no arguments".to_owned();
        return Err(Hinted::error(
            what,
            "switch on the recording of tool arguments, or check args= in --map",
        ));
    }
    let is_reached = args.fail_on.is_some_and(|level| report.reaches(level));
    Ok(if is_reached { ExitCode::from(EXIT_FINDINGS) } else { ExitCode::SUCCESS })
}

/// The places to look at: those that were named, or where agents keep their sessions.
fn paths(context: &Context, args: &AuditArgs) -> anyhow::Result<Vec<PathBuf>> {
    if !args.paths.is_empty() {
        return Ok(args.paths.clone());
    }
    let environment = &context.environment;
    let home = environment.settings.home.as_deref().unwrap_or_else(|| Path::new("/"));
    let (claude, codex) = (environment.claude_config_dir.as_deref(), environment.codex_home.as_deref());
    let places = discover::agent_directories(home, claude, codex);
    if places.is_empty() {
        let what = "no sessions of Claude Code, Codex or Gemini CLI were found".to_owned();
        return Err(Hinted::error(what, "name files or directories: semel audit PATH"));
    }
    Ok(places.into_iter().map(|(_, place)| place).collect())
}

fn files(args: &AuditArgs, paths: &[PathBuf], since: Option<At>) -> anyhow::Result<Vec<TranscriptFile>> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(discover::candidates(path).with_context(|| path.display().to_string())?);
    }
    // A session that was last written before has nothing newer in it.
    let oldest = since.map(|since| SystemTime::UNIX_EPOCH + Duration::from_micros(since.0));
    files.retain(|file| {
        let is_old = file.modified.zip(oldest).is_some_and(|(modified, oldest)| modified < oldest);
        !(args.paths.is_empty() && is_old)
    });
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
        AuditForm::Text => screen::screen(report),
        AuditForm::Html => html::page(report),
        AuditForm::Sarif => pretty(&sarif::document(report)),
        AuditForm::Junit => junit::document(report),
    };
    match &args.output {
        Some(path) => {
            let plain = anstream::adapter::strip_str(&text).to_string();
            std::fs::write(path, plain + "\n").with_context(|| format!("cannot write {}", path.display()))?;
            context.output.say(format_args!(
                "{} It is written to {}.",
                screen::summary(report),
                path.display()
            ));
        }
        None => {
            context.output.data(text.trim_end());
        }
    }
    Ok(())
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
