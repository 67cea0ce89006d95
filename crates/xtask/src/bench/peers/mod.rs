//! What somebody would take instead of semel, each doing the same: a key never seen, a durable claim or journal entry,
//! an effect that does nothing, a durable result. That an answer was delivered none of them records, so it is left out
//! here; `bench busy` has it.
//!
//! Versions are pinned, so that a ratio that changes changes because of us.

mod agent_ledger;
mod dbos;
mod doors;
mod driver;
mod litellm;
mod postgres;
mod restate;

use super::busy::{Mark, guarded};
use super::house::{self, KeySource};
use super::report::{ReportLine, figure};
use super::{CALLERS, Effort};
use crate::project::{self, Result};
use driver::PeerDriver;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::runtime::Runtime;

/// Ours and theirs take turns, and the median turn is reported.
const TURNS: usize = 3;

struct Peer {
    name: &'static str,
    /// Said where a peer leaves the choice.
    kept: &'static str,
    /// The calls of one turn: some seconds of work for it.
    calls: usize,
    /// Starts it with its data in that directory.
    start: fn(&Path) -> Result<PeerDriver>,
}

const PEERS: [Peer; 3] = [
    Peer { name: "DBOS", kept: " on SQLite", calls: 800, start: dbos::start },
    Peer { name: "Restate", kept: "", calls: 2_000, start: restate::start },
    Peer { name: "agent-ledger", kept: "", calls: 2_000, start: agent_ledger::start },
];

type PeerBench = fn(Effort) -> Result<Vec<ReportLine>>;

/// What stands at the same place as one of semel's doors.
const DOORS: [(&str, PeerBench); 2] =
    [("Restate over HTTP", doors::beside_restate), ("LiteLLM", doors::beside_litellm)];

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let runtime = house::runtime()?;
    let mut lines = Vec::new();
    for peer in &PEERS {
        match compare(peer, &runtime, effort) {
            Ok(line) => lines.push(line),
            Err(error) => eprintln!("not measured: {}: {error}", peer.name),
        }
    }
    for (name, beside) in DOORS {
        match beside(effort) {
            Ok(more) => lines.extend(more),
            Err(error) => eprintln!("not measured: {name}: {error}"),
        }
    }
    if lines.is_empty() { Err("none of the peers could be measured".into()) } else { Ok(lines) }
}

struct PeerTurn {
    ours: f64,
    theirs: f64,
}

impl PeerTurn {
    fn ratio(&self) -> f64 {
        self.ours / self.theirs
    }
}

fn compare(peer: &Peer, runtime: &Runtime, effort: Effort) -> Result<ReportLine> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let mut driver = (peer.start)(directory.path())?;
    let mut turns = Vec::new();
    for turn in 0..TURNS {
        let ledger = directory.path().join(format!("ledger-{turn}.db"));
        settle_disk()?;
        let ours = guarded(runtime, &ledger, KeySource::Key, Mark::Left, CALLERS, effort.span())?;
        settle_disk()?;
        let theirs = driver.turn(effort.count(peer.calls))?;
        turns.push(PeerTurn { ours: ours.per_second(), theirs });
    }
    turns.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let ratios: Vec<String> = turns.iter().map(|turn| figure(turn.ratio())).collect();
    let median = &turns[TURNS / 2];
    let made_of = format!(
        "{} calls/s; {} {} calls/s; turns {}",
        figure(median.ours),
        peer.name,
        figure(median.theirs),
        ratios.join(", ")
    );
    let what = format!("{CALLERS} callers / {} {}{}", peer.name, driver.version(), peer.kept);
    Ok(ReportLine::plain(what, median.ratio(), "", made_of).at_least(25.0, 40.0))
}

/// What one side has left to be written would otherwise be waited for by the other.
fn settle_disk() -> Result<()> {
    project::must(&mut Command::new("sync"))
}

/// A peer's own directory in `target/bench/peers`, filled unless it already holds these packages.
fn installed(name: &str, packages: &[&str], install: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let directory = project::scratch()?.join("peers").join(name);
    fs::create_dir_all(&directory)?;
    let (mark, wanted) = (directory.join("installed.txt"), packages.join("\n"));
    if !fs::read_to_string(&mark).is_ok_and(|found| found == wanted) {
        install(&directory)?;
        // Written last: a broken installation is made again.
        fs::write(mark, wanted)?;
    }
    Ok(directory)
}
