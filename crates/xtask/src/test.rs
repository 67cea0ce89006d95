//! `cargo xtask test`: everything that has to pass, from a fresh machine on.

use crate::peers;
use crate::peers_packs;
use crate::project::{self, Result};
use crate::sdk;
use crate::tools;
use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZero;
use std::ops::AddAssign;
use std::process::{Command, ExitCode, Stdio};

/// What `--long` asks the longer tests for. They take hours of one core, so a commit is not held up by them.
const LONG: [(&str, &str); 7] = [
    ("SEMEL_MODEL_DEEP", "1"),
    ("SEMEL_TORTURE_KILLS", "20000"),
    ("SEMEL_KILLS", "1000"),
    ("SEMEL_POWER_CUTS", "50"),
    ("SEMEL_EVERY_BYTE", "1"),
    ("SEMEL_FLIPS", "1500"),
    ("SEMEL_SIM_SEEDS", "10000"),
];

/// Most tests wait most of the time: for servers, disks and the ends of processes.
const THREADS_A_CORE: usize = 2;

pub fn run(arguments: &[&str]) -> Result<ExitCode> {
    let long = arguments.contains(&"--long");
    let rest: Vec<&str> = arguments.iter().copied().filter(|argument| *argument != "--long").collect();
    tools::c_compiler()?;
    // All targets at once: the features are then the same for the tests, and nothing is compiled twice. What the tests need
    // besides comes over the network meanwhile.
    let mut build = project::cargo();
    build.args(["build", "--workspace", "--all-targets"]);
    let building = std::thread::spawn(move || project::must(&mut build));
    tools::postgresql()?;
    tools::key_value_servers()?;
    tools::deployment_tools()?;
    peers::for_tests()?;
    peers_packs::install()?;
    if long {
        peers::for_long_tests()?;
    }
    if rest.is_empty() {
        sdk::install()?;
    }
    building.join().map_err(|_| "the build panicked")??;
    let chosen = rest.iter().any(|argument| *argument == "-p" || argument.starts_with("--package"));
    let mut tests = project::cargo();
    tests.args(["test", "--no-fail-fast"]).args((!chosen).then_some("--workspace")).args(&rest);
    if long {
        // Those that mount filesystems, which needs root, and the real agents.
        tests.args((!rest.contains(&"--")).then_some("--")).arg("--include-ignored");
    }
    #[allow(clippy::disallowed_methods, reason = "it is the test harness's own")]
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        tests.env("RUST_TEST_THREADS", (cores * THREADS_A_CORE).to_string());
    }
    let asked = if long { &LONG[..] } else { &[] };
    tests.envs(asked.iter().copied());
    // Of one binary or some names, the packages are not meant.
    watch(&mut tests, rest.is_empty(), asked)
}

/// The last large binary. Most of its tests wait, for servers and for processes that are killed: the SDKs are tried meanwhile.
const MOSTLY_WAITS: &str = "tests/testkit/";

/// Passes on what cargo says of its own, and starts the tests of the SDKs beside the binary that mostly waits.
fn with_sdks(cargo: impl Read, asked: &'static [(&str, &str)]) -> Result<()> {
    let mut trying = None;
    for line in BufReader::new(cargo).lines() {
        let line = line?;
        eprintln!("{line}");
        if trying.is_none() && line.contains(MOSTLY_WAITS) {
            trying = Some(std::thread::spawn(|| sdk::test(asked)));
        }
    }
    let trying = trying.ok_or("cargo did not say that it ran the tests of testkit")?;
    trying.join().map_err(|_| "the tests of the SDKs panicked")?
}

/// Shows what cargo says, and adds up what the test binaries report.
fn watch(tests: &mut Command, sdks: bool, asked: &'static [(&str, &str)]) -> Result<ExitCode> {
    if sdks {
        tests.stderr(Stdio::piped());
    }
    let mut child = tests.stdout(Stdio::piped()).spawn()?;
    let trying = child.stderr.take().map(|said| std::thread::spawn(move || with_sdks(said, asked)));
    let output = child.stdout.take().expect("its output was asked for");
    let mut total = TestTally::default();
    let mut shown = std::io::stdout().lock();
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        if let Some(tally) = TestTally::read(&String::from_utf8_lossy(&line)) {
            total += tally;
        }
        shown.write_all(&line)?;
        shown.write_all(b"\n")?;
    }
    let status = child.wait()?;
    let word = if status.success() { "ok" } else { "FAILED" };
    let TestTally { binaries, passed, failed, ignored } = total;
    writeln!(
        shown,
        "test result: {word}. {passed} passed; {failed} failed; {ignored} ignored; in {binaries} test binaries"
    )?;
    drop(shown);
    if let Some(trying) = trying {
        trying.join().map_err(|_| "the tests of the SDKs panicked")??;
    }
    Ok(ExitCode::from(u8::from(!status.success())))
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct TestTally {
    binaries: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl TestTally {
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; …`
    fn read(line: &str) -> Option<TestTally> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |word: &str| {
            let part = counts.split("; ").find_map(|part| part.strip_suffix(word))?;
            part.trim().parse().ok()
        };
        Some(TestTally {
            binaries: 1,
            passed: count("passed")?,
            failed: count("failed")?,
            ignored: count("ignored")?,
        })
    }
}

impl AddAssign for TestTally {
    fn add_assign(&mut self, other: TestTally) {
        self.binaries += other.binaries;
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_test_binary_are_read_and_other_lines_are_not() {
        let line = "test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        assert_eq!(TestTally::read(line), Some(TestTally { binaries: 1, passed: 3, failed: 1, ignored: 2 }));
        assert_eq!(TestTally::read("test a_test ... ok"), None);
    }
}
