//! `cargo xtask bench`: ratios to what this very machine can do, all taken in one run.
//!
//! A time says little without the machine that took it, so every figure is divided by a denominator measured beside
//! it, in turns. Nothing asserts a time; `--gate` makes a missed goal an exit code.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench talks to whoever started it")]

mod baseline;
mod child;
mod fill;
mod load;
mod measure;
mod nginx;
mod peers;
mod report;
mod served;
mod upstream;
mod wire;

mod alone;
mod audit;
mod busy;
mod command;
mod engines;
mod growing;
mod http;
mod llm;
mod mcp;
mod memory;
mod processes;
mod replay;
mod sdk;
mod size;
mod slow_disk;
mod turns;

use engines::{Etcd, Postgres, Redis, Sqlite};
use measure::Machine;
use report::{ReportLine, Reported};
use semel_weigh::house;
use std::process::ExitCode;
use std::time::Duration;
use xtask::project::Result;

/// The callers of the busy benches: more than any machine has cores, fewer than a batch holds.
const CALLERS: usize = 64;

/// A repeated bench reports its median run.
const REPETITIONS: usize = 3;

/// How much is asked of one run.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    pub quick: bool,
    /// Also what takes ten gigabytes of disk.
    pub large: bool,
}

impl Effort {
    /// How long one load is driven.
    fn span(self) -> Duration {
        if self.quick { Duration::from_millis(700) } else { Duration::from_secs(2) }
    }

    fn count(self, full: usize) -> usize {
        if self.quick { full / 4 } else { full }
    }
}

struct Bench {
    name: &'static str,
    run: BenchFn,
    repetitions: usize,
}

const BENCHES: [Bench; 25] = [
    Bench { name: "alone", run: alone::run, repetitions: REPETITIONS },
    Bench { name: "busy", run: busy::run, repetitions: REPETITIONS },
    Bench { name: "slow-disk", run: slow_disk::run, repetitions: REPETITIONS },
    Bench { name: "replay", run: replay::run, repetitions: REPETITIONS },
    Bench { name: "processes", run: processes::run, repetitions: REPETITIONS },
    Bench { name: "command", run: command::run, repetitions: REPETITIONS },
    Bench { name: "mcp", run: mcp::run, repetitions: REPETITIONS },
    Bench { name: "http", run: http::run, repetitions: REPETITIONS },
    Bench { name: "llm", run: llm::run, repetitions: REPETITIONS },
    Bench { name: "sdk", run: sdk::run, repetitions: REPETITIONS },
    Bench { name: "sqlite", run: |effort| engines::run(&Sqlite::start()?, effort), repetitions: REPETITIONS },
    Bench {
        name: "postgres",
        run: |effort| engines::run(&Postgres::start()?, effort),
        repetitions: REPETITIONS,
    },
    Bench { name: "redis", run: |effort| engines::run(&Redis::start()?, effort), repetitions: REPETITIONS },
    Bench { name: "etcd", run: |effort| engines::run(&Etcd::start()?, effort), repetitions: REPETITIONS },
    // It takes its own turns.
    Bench { name: "postgres-peers", run: peers::on_postgres, repetitions: 1 },
    // Filling takes minutes, and the small ledger is measured again beside each larger one.
    Bench { name: "size", run: |effort| size::run(&Sqlite::start()?, &size::SQLITE, effort), repetitions: 1 },
    Bench {
        name: "size-postgres",
        run: |effort| size::run(&Postgres::start()?, &size::POSTGRES, effort),
        repetitions: 1,
    },
    Bench {
        name: "size-redis",
        run: |effort| size::run(&Redis::start()?, &size::REDIS, effort),
        repetitions: 1,
    },
    Bench {
        name: "size-etcd",
        run: |effort| size::run(&Etcd::start()?, &size::ETCD, effort),
        repetitions: 1,
    },
    // Filling takes its time.
    Bench { name: "outline", run: growing::outline, repetitions: 1 },
    Bench { name: "record", run: growing::record, repetitions: 1 },
    Bench { name: "marks", run: growing::marks, repetitions: 1 },
    Bench { name: "waiters", run: growing::waiters, repetitions: 1 },
    Bench { name: "memory", run: memory::run, repetitions: 1 },
    // It takes its own turns.
    Bench { name: "audit", run: audit::run, repetitions: 1 },
];

/// All that tells how fast the engines are, in one run.
const ENGINES: [&str; 14] = [
    "alone",
    "busy",
    "replay",
    "processes",
    "http",
    "sqlite",
    "postgres",
    "redis",
    "etcd",
    "postgres-peers",
    "size",
    "size-postgres",
    "size-redis",
    "size-etcd",
];

type BenchFn = fn(Effort) -> Result<Vec<ReportLine>>;

/// With what others made; only when asked for, because it is installed first.
const COMPARISONS: [(&str, BenchFn); 2] = [("peers", peers::run), ("sdk-peers", sdk::compare)];

struct BenchOptions {
    effort: Effort,
    gate: bool,
    json: Option<String>,
    names: Vec<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [child::COMMAND, rest @ ..] => run_child(rest),
        words => run(words),
    };
    done.unwrap_or_else(|error| {
        eprintln!("bench: {error}");
        ExitCode::from(2)
    })
}

fn run(words: &[&str]) -> Result<ExitCode> {
    let options = parse(words)?;
    let comparison =
        COMPARISONS.into_iter().find(|(name, _)| options.names.iter().any(|wanted| wanted == name));
    let lines = if let Some((name, compare)) = comparison {
        let lines = once(name, compare, options.effort)?;
        report::print(&lines);
        lines
    } else {
        measure(&options)?
    };
    if let Some(file) = &options.json {
        std::fs::write(file, format!("{:#}\n", report::json(&lines)))?;
    }
    let missed = lines.iter().any(|reported| reported.line.misses_goal());
    Ok(ExitCode::from(u8::from(options.gate && missed)))
}

fn parse(words: &[&str]) -> Result<BenchOptions> {
    let mut options = BenchOptions {
        effort: Effort { quick: false, large: false },
        gate: false,
        json: None,
        names: Vec::new(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => options.effort.quick = true,
            "--large" => options.effort.large = true,
            "--gate" => options.gate = true,
            "--json" => options.json = Some(words.next().ok_or("--json needs a file")?.to_string()),
            "engines" => options.names.extend(ENGINES.map(str::to_owned)),
            name if COMPARISONS.iter().any(|(comparison, _)| *comparison == name)
                || BENCHES.iter().any(|bench| bench.name == name) =>
            {
                options.names.push(name.to_owned());
            }
            other => return Err(format!("there is no bench `{other}`").into()),
        }
    }
    Ok(options)
}

fn measure(options: &BenchOptions) -> Result<Vec<Reported>> {
    let mut lines = Vec::new();
    for bench in &BENCHES {
        if !options.names.is_empty() && !options.names.iter().any(|name| name == bench.name) {
            continue;
        }
        let repetitions = if options.effort.quick { 1 } else { bench.repetitions };
        let mut runs = Vec::new();
        for repetition in 1..=repetitions {
            eprintln!("bench {} ({repetition}/{repetitions})", bench.name);
            runs.push(once(bench.name, bench.run, options.effort)?);
        }
        let measured = medians(runs);
        // At once: the next one may take long, or fail.
        report::print(&measured);
        lines.extend(measured);
    }
    Ok(lines)
}

fn once(name: &'static str, bench: BenchFn, effort: Effort) -> Result<Vec<Reported>> {
    let before = Machine::look();
    let lines = bench(effort)?;
    let others = before.zip(Machine::look()).map(|(before, after)| after.others_since(&before));
    let report = |line: ReportLine| Reported { bench: name, values: vec![line.value], line, others };
    Ok(lines.into_iter().map(report).collect())
}

/// Of each line, the repetition with the median value.
fn medians(runs: Vec<Vec<Reported>>) -> Vec<Reported> {
    let count = runs.first().map_or(0, Vec::len);
    let median = |place: usize| {
        let mut same: Vec<&Reported> = runs.iter().map(|run| &run[place]).collect();
        same.sort_by(|a, b| a.line.value.total_cmp(&b.line.value));
        let values = same.iter().map(|reported| reported.line.value).collect();
        Reported { values, ..same[(same.len() - 1) / 2].clone() }
    };
    (0..count).map(median).collect()
}

/// One part of a bench, in a process of its own.
fn run_child(words: &[&str]) -> Result<ExitCode> {
    let [part, directory, rest @ ..] = words else { return Err("a part and a directory are needed".into()) };
    let directory = std::path::Path::new(directory);
    let result = match *part {
        "slow-disk" => {
            child::wait_for_begin()?;
            slow_disk::in_child(directory, rest)
        }
        "processes" => processes::in_child(directory, rest),
        engines::waking::PART => engines::waking::in_child(directory, rest),
        upstream::PART => upstream::in_child(),
        audit::PART => audit::in_child(directory),
        "idle" => memory::idle_in_child(directory),
        "waiters" => memory::waiters_in_child(directory, rest),
        other => Err(format!("there is no part `{other}`").into()),
    }?;
    println!("{result}");
    Ok(ExitCode::SUCCESS)
}
