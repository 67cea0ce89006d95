//! A protected function of a program, with the packages that a release has: what a replay and a fresh call cost beside
//! the language's own SQLite and the bare disk, and how long an import takes.

mod libraries;

use super::Effort;
use super::child::number;
use super::command::leave_environment;
use super::measure::{Times, own_seconds, time};
use super::report::{ReportLine, figure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use xtask::dist::{self, Build};
use xtask::peers;
use xtask::project::{self, Result};

pub use libraries::compare;

/// Fresh calls of one language; and four times as many replays.
const CALLS: usize = 2_000;

/// Starts of an interpreter with semel, and as many without.
const STARTS: usize = 20;

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let (python, node, scripts) = (python()?, node()?, scripts());
    let mut in_python = Command::new(&python);
    in_python.arg(scripts.join("measure.py"));
    let mut lines = in_language(&mut in_python, ("Python", "sqlite3", 3.0), effort)?;
    // Node looks for packages from where the script lies.
    let script = node.join("measure.mjs");
    fs::copy(scripts.join("measure.mjs"), &script)?;
    let mut in_node = Command::new(node.join("node"));
    in_node.arg("--disable-warning=ExperimentalWarning").arg(script);
    lines.extend(in_language(&mut in_node, ("Node", "node:sqlite", 10.0), effort)?);
    lines.push(import(&python)?);
    lines.push(lines_of_protection()?);
    Ok(lines)
}

fn in_language(
    program: &mut Command,
    (language, sqlite, replay_at_most): (&str, &str, f64),
    effort: Effort,
) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    leave_environment(program, directory.path());
    let output = program.arg(effort.count(CALLS).to_string()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{program:?}: {}", output.status).into());
    }
    let found: Value = serde_json::from_slice(&output.stdout)?;
    let [replay, read, fresh, flushes] =
        ["replay", "read", "fresh", "flushes"].map(|name| number(&found, name));
    let (effects, versions) = (&found["effects"], found["versions"].as_str().unwrap_or("?"));
    let replays = format!("{} us; {} us; {effects} effects; {versions}", figure(replay), figure(read));
    let calls = format!("{} us; two 4 KiB fdatasyncs {} us", figure(fresh), figure(flushes));
    let reads = format!("{language}: a replay / a point read by {sqlite}");
    let flushed = format!("{language}: a fresh call / two fdatasyncs");
    Ok(vec![
        ReportLine::plain(reads, replay / read, "", replays).at_most(replay_at_most, None),
        ReportLine::plain(flushed, fresh / flushes, "", calls).at_most(1.5, None),
    ])
}

fn import(python: &Path) -> Result<ReportLine> {
    let start = |code: &str| -> Result<_> {
        let (mut python, before) = (Command::new(python), own_seconds());
        let (status, took) = time(|| python.args(["-c", code]).status());
        let processor_ms = (own_seconds() - before) * 1e3;
        if status?.success() { Ok((took, processor_ms)) } else { Err(format!("{python:?} failed").into()) }
    };
    // The first one compiles.
    start("import semel")?;
    let (mut with, mut without, mut processor_ms) = (Times::default(), Times::default(), 0.0);
    for _ in 0..STARTS {
        let (took, with_it) = start("import semel")?;
        with.add(took);
        let (took, without_it) = start("pass")?;
        without.add(took);
        processor_ms += (with_it - without_it) / STARTS as f64;
    }
    let [with, without] = [with.median(), without.median()].map(|micros| micros / 1e3);
    let made_of = format!(
        "p50 {} ms; {} ms without it; {} ms of processor time more; {STARTS} starts each",
        figure(with),
        figure(without),
        figure(processor_ms)
    );
    Ok(ReportLine::plain("Python: `import semel` adds", with - without, " ms", made_of).at_most(30.0, None))
}

fn lines_of_protection() -> Result<ReportLine> {
    let lines = lines_that_protect("with_semel")?;
    Ok(ReportLine::plain("lines that protect a function", lines as f64, "", "crates/bench/sdk/with_semel.py")
        .at_most(3.0, None))
}

/// Those that a program would not have without the library are marked.
fn lines_that_protect(module: &str) -> Result<usize> {
    let text = fs::read_to_string(scripts().join(format!("{module}.py")))?;
    Ok(text.lines().filter(|line| line.ends_with("# protects")).count())
}

fn scripts() -> PathBuf {
    project::root().join("crates/bench/sdk")
}

/// The interpreter that has semel and nothing else.
fn python() -> Result<PathBuf> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    once_a_run(&PYTHON, || {
        let home = project::scratch()?.join("sdk/python");
        let wheel = dist::python(Build::Bench)?;
        peers::install_with_pip(&[&wheel.display().to_string()], &home)?;
        Ok(home.join("bin/python"))
    })
}

/// The directory that has Node and both packages.
fn node() -> Result<PathBuf> {
    static NODE: OnceLock<PathBuf> = OnceLock::new();
    once_a_run(&NODE, || {
        let home = project::scratch()?.join("sdk/node");
        peers::install_with_node(&dist::npm(Build::Bench)?, &home)?;
        Ok(home)
    })
}

fn once_a_run(place: &OnceLock<PathBuf>, install: impl FnOnce() -> Result<PathBuf>) -> Result<PathBuf> {
    match place.get() {
        Some(installed) => Ok(installed.clone()),
        None => {
            let installed = install()?;
            Ok(place.get_or_init(|| installed).clone())
        }
    }
}
