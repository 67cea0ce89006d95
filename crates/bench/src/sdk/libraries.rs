//! Libraries of Python that protect a function, on the same work in real processes: how many lines it takes, whether a
//! repeat gets the answer, and what happens after an exception, after a crash and with four processes at once. Effects
//! are counted in a file.

use super::{lines_that_protect, scripts};
use crate::Effort;
use crate::child::number;
use crate::command::leave_environment;
use crate::peers::driver::PeerDriver;
use crate::peers::{installed, settle_disk};
use crate::report::{ReportLine, figure};
use semel_testkit::redis_server::RedisServer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::peers;
use xtask::project::{self, Result};
use xtask::tools;

const PACKAGES: [&str; 7] = [
    "call4agents==0.5.0",
    "exactly-once==0.2.1",
    "dbos==3.4.0",
    "pysqlite3-binary==0.5.4.post2",
    "aws-lambda-powertools==3.37.0",
    "boto3==1.44.5",
    "redis==8.1.0",
];

/// All take turns, and each one's median counts.
const TURNS: usize = 3;

const PROCESSES: usize = 4;

struct Library {
    name: &'static str,
    /// In crates/bench/sdk.
    module: &'static str,
    /// Where it keeps what it knows, as it does unless told otherwise.
    kept: &'static str,
}

const LIBRARIES: [Library; 5] = [
    Library { name: "semel", module: "with_semel", kept: "SQLite" },
    Library { name: "call4agents", module: "with_call4agents", kept: "SQLite" },
    Library { name: "exactly-once", module: "with_exactly_once", kept: "SQLite, not flushed" },
    Library { name: "dbos", module: "with_dbos", kept: "SQLite" },
    Library { name: "aws-lambda-powertools", module: "with_powertools", kept: "Redis, each write flushed" },
];

#[derive(Debug, Default)]
struct Findings {
    version: String,
    lines: usize,
    replay: String,
    after_raise: String,
    after_crash: String,
    together: String,
    fresh: Vec<f64>,
    again: Vec<f64>,
}

/// `cargo xtask bench sdk-peers`: prints the table, and gives its rates as ratios.
pub fn compare(effort: Effort) -> Result<Vec<ReportLine>> {
    tools::key_value_servers()?;
    let redis = RedisServer::start(&[]);
    let install = |home: &Path| peers::install_with_pip(&PACKAGES, &home.join("python"));
    let theirs = installed("sdk", &PACKAGES, install)?.join("python/bin/python");
    let ours = super::python()?;
    let trials = LIBRARIES.iter().map(|library| {
        let python = if library.name == "semel" { &ours } else { &theirs };
        Trial { library, python: python.clone(), redis: redis.port() }
    });
    let trials: Vec<Trial> = trials.collect();
    let mut all = trials.iter().map(Trial::behaviour).collect::<Result<Vec<_>>>()?;
    for _ in 0..TURNS {
        for (trial, findings) in trials.iter().zip(&mut all) {
            settle_disk()?;
            let (fresh, again) = trial.rates(effort)?;
            findings.fresh.push(fresh);
            findings.again.push(again);
        }
    }
    print(&all);
    Ok(ratios(&all))
}

struct Trial<'a> {
    library: &'a Library,
    python: PathBuf,
    redis: u16,
}

impl Trial<'_> {
    fn start(&self, directory: &Path) -> Result<PeerDriver> {
        let mut python = Command::new(&self.python);
        python.arg(scripts().join("drive.py")).args([self.library.module, self.library.name]);
        leave_environment(&mut python, directory);
        python.env("SEMEL_LEDGER", directory.join("ledger.db")).env("REDIS_PORT", self.redis.to_string());
        // Powertools warns at each call outside of a Lambda function.
        PeerDriver::start(python.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONWARNINGS", "ignore"))
    }

    fn behaviour(&self) -> Result<Findings> {
        let directory = tempfile::tempdir_in(project::scratch()?)?;
        let at = directory.path();
        let first = self.call(at, "answer", "replayed")?;
        let again = self.call(at, "answer", "replayed")?;
        let replay = if again == first && runs(at, "replayed")? == 1 { "yes" } else { "no" };
        Ok(Findings {
            version: self.start(at)?.version().to_owned(),
            lines: lines_that_protect(self.library.module)?,
            replay: replay.to_owned(),
            after_raise: self.after(at, "raise")?,
            after_crash: self.after(at, "die")?,
            together: self.together(at)?,
            ..Findings::default()
        })
    }

    /// One call in a process of its own. `None`: it died.
    fn call(&self, at: &Path, how: &str, invoice: &str) -> Result<Option<Value>> {
        let mut process = self.start(at)?;
        process.tell(&format!("call {how} {invoice}"))?;
        Ok(process.answer().ok())
    }

    /// A call that acts and does not come back with an answer, and then the same call.
    fn after(&self, at: &Path, how: &str) -> Result<String> {
        self.call(at, how, how)?;
        let answer = self.call(at, "answer", how)?.ok_or("the second call died")?;
        Ok(match runs(at, how)? {
            1 => word(&answer),
            runs => format!("**{runs} runs**, {}", word(&answer)),
        })
    }

    fn together(&self, at: &Path) -> Result<String> {
        let mut processes = (0..PROCESSES).map(|_| self.start(at)).collect::<Result<Vec<_>>>()?;
        processes.iter_mut().try_for_each(|process| process.tell("call linger together"))?;
        let mut words: BTreeMap<String, usize> = BTreeMap::new();
        for process in &mut processes {
            *words.entry(word(&process.answer()?)).or_default() += 1;
        }
        let words: Vec<String> = words.iter().map(|(word, count)| format!("{count} {word}")).collect();
        Ok(format!("{} run, {}", runs(at, "together")?, words.join(", ")))
    }

    fn rates(&self, effort: Effort) -> Result<(f64, f64)> {
        let directory = tempfile::tempdir_in(project::scratch()?)?;
        let mut process = self.start(directory.path())?;
        let mut rate = |word: &str| -> Result<f64> {
            process.tell(&format!("{word} {}", effort.span().as_secs_f64()))?;
            Ok(number(&process.answer()?, "calls_per_second"))
        };
        Ok((rate("fresh")?, rate("again")?))
    }
}

fn word(answer: &Value) -> String {
    answer["raised"].as_str().map_or("answered".to_owned(), |error| format!("`{error}`"))
}

/// How often the world changed for an invoice.
fn runs(at: &Path, invoice: &str) -> Result<usize> {
    Ok(fs::read_to_string(at.join("effects"))?.lines().filter(|line| *line == invoice).count())
}

fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn print(all: &[Findings]) {
    println!(
        "| library | kept in | lines | replay | after a raise | after a crash | {PROCESSES} processes at once | fresh | replayed |"
    );
    println!("|---|---|--:|---|---|---|---|--:|--:|");
    for (library, findings) in LIBRARIES.iter().zip(all) {
        let Findings { version, lines, replay, after_raise, after_crash, together, fresh, again } = findings;
        println!(
            "| {} {version} | {} | {lines} | {replay} | {after_raise} | {after_crash} | {together} | {:.0} | {:.0} |",
            library.name,
            library.kept,
            median(fresh),
            median(again)
        );
    }
}

/// semel's rates by theirs, turn by turn.
fn ratios(all: &[Findings]) -> Vec<ReportLine> {
    let [ours, theirs @ ..] = all else { return Vec::new() };
    let line = |what: &str, name: &str, ours: &[f64], theirs: &[f64]| {
        let turns: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        let said: Vec<String> = turns.iter().map(|ratio| figure(*ratio)).collect();
        let made_of =
            format!("{}/s; {}/s; turns {}", figure(median(ours)), figure(median(theirs)), said.join(", "));
        ReportLine::plain(format!("16 threads, {what} / {name}"), median(&turns), "", made_of)
    };
    let of_library = |(library, findings): (&Library, &Findings)| {
        let name = format!("{} {}", library.name, findings.version);
        [
            line("fresh", &name, &ours.fresh, &findings.fresh),
            line("replayed", &name, &ours.again, &findings.again),
        ]
    };
    LIBRARIES[1..].iter().zip(theirs).flat_map(of_library).collect()
}
