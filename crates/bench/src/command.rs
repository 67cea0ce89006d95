//! `semel run -- true`: what wrapping a command costs, beside the plainest wrapper there is.

use super::Effort;
use super::measure::{Times, time};
use super::report::{ReportLine, figure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::project::{self, Result};

/// At least so many runs of each command, in turns.
const RUNS: usize = 300;
const RUNS_QUICK: usize = 200;

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let semel = installed(&release_binary()?, directory.path())?;
    let runs = if effort.quick { RUNS_QUICK } else { RUNS };
    let (mut fresh, mut replayed, mut locked, mut bare) =
        (Times::default(), Times::default(), Times::default(), Times::default());
    run_once(&mut guarded(&semel, directory.path(), "known"))?;
    for n in 0..runs {
        fresh.add(run_once(&mut guarded(&semel, directory.path(), &format!("key-{n}")))?);
        locked.add(run_once(Command::new("flock").arg(directory.path().join("lock")).arg("true"))?);
        replayed.add(run_once(&mut guarded(&semel, directory.path(), "known"))?);
        bare.add(run_once(&mut Command::new("true"))?);
    }
    let floor = locked.median();
    let made_of = |times: &mut Times| {
        format!(
            "p50 {} us, p99 {} us; flock {} us",
            figure(times.median()),
            figure(times.micros(0.99)),
            figure(floor)
        )
    };
    let line =
        |what: &str, times: &mut Times| ReportLine::plain(what, times.median() / floor, "", made_of(times));
    Ok(vec![
        line("semel run -- true, fresh / flock", &mut fresh).at_most(2.8, 2.2),
        line("semel run -- true, replayed / flock", &mut replayed).at_most(1.8, 1.3),
        line("true / flock", &mut bare),
    ])
}

pub fn release_binary() -> Result<PathBuf> {
    project::must(project::cargo().args(["build", "--quiet", "--release", "--package", "semel-cli"]))?;
    Ok(project::target().join("release/semel"))
}

/// A copy, as a package leaves it on the disk. What a linker wrote piece by piece lies in the system's cache in smaller
/// pieces, and takes a tenth longer to start.
fn installed(program: &Path, directory: &Path) -> Result<PathBuf> {
    let copy = directory.join("semel");
    std::fs::copy(program, &copy)?;
    Ok(copy)
}

fn guarded(semel: &Path, directory: &Path, key: &str) -> Command {
    let mut command = Command::new(semel);
    command
        .args(["run", "--quiet", "--key", key, "--ledger"])
        .arg(directory.join("ledger.db"))
        .args(["--", "true"]);
    leave_environment(&mut command, directory);
    command
}

/// Nothing of whoever runs the bench may change what is measured.
pub fn leave_environment(command: &mut Command, directory: &Path) {
    command.current_dir(directory).env("HOME", directory);
    for name in [
        "SEMEL_POLICY",
        "SEMEL_CONFIG",
        "SEMEL_RUN_ID",
        "SEMEL_FAILPOINTS",
        "SEMEL_LEDGER",
        "SEMEL_SERVER",
        "SEMEL_BIN",
        "SEMEL_SDK",
        "XDG_CONFIG_HOME",
        "BAGGAGE",
        "PYTHONPATH",
    ] {
        command.env_remove(name);
    }
}

fn run_once(command: &mut Command) -> Result<std::time::Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let (status, took) = time(|| command.status());
    let status = status.map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(took) } else { Err(format!("{command:?}: {status}").into()) }
}
