//! Peers that pip alone can install, each doing the same: a durable claim or journal entry, an effect that does
//! nothing, a durable result.

use super::busy::{Mark, guarded};
use super::house::{self, NamedBy};
use super::report::{Line, figure};
use super::{CALLERS, Effort, child};
use crate::project::{self, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const DBOS: &str = include_str!("../peer_dbos.py");

pub fn run(effort: Effort) -> Result<Vec<Line>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let python = environment()?;
    let script = directory.path().join("peer_dbos.py");
    std::fs::write(&script, DBOS)?;
    let calls = effort.count(800).to_string();
    let mut dbos = Command::new(python);
    dbos.arg(&script).arg(directory.path().join("dbos.sqlite")).args([&CALLERS.to_string(), &calls]);
    let output = dbos.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let result: Value = text
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str(line).ok())
        .ok_or_else(|| format!("DBOS gave no result: {}", String::from_utf8_lossy(&output.stderr)))?;
    let runtime = house::runtime()?;
    let ledger = directory.path().join("ledger.db");
    let ours = guarded(&runtime, &ledger, NamedBy::Key, Mark::Made, CALLERS, effort.span())?.per_second();
    let theirs = child::number(&result, "calls_per_second");
    println!(
        "not measured: Restate (a server of its own), agent-ledger (needs PostgreSQL), Temporal (a server)"
    );
    let made_of = format!("{} calls/s with delivered marks; DBOS {} calls/s", figure(ours), figure(theirs));
    let what = format!("64 callers / DBOS {} on SQLite", result["version"].as_str().unwrap_or("?"));
    Ok(vec![Line::plain(what, ours / theirs, "", made_of).at_least(25.0, None)])
}

/// A private Python environment, made once.
fn environment() -> Result<PathBuf> {
    let directory = project::scratch()?.join("peers");
    let python = directory.join("bin/python");
    if !Path::new(&python).exists() {
        project::must(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
    }
    // The SQLite of older distributions lacks functions that DBOS's tables use by default.
    let mut install = Command::new(&python);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "dbos",
        "pysqlite3-binary",
    ]);
    project::must(&mut install)?;
    Ok(python)
}
