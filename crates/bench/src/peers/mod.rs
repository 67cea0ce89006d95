//! What somebody would take instead of semel, each doing the same: a key never seen, a durable claim or journal entry,
//! an effect that does nothing, a durable result. That an answer was delivered none of them records, so it is left out
//! here; `bench busy` has it.
//!
//! Versions are pinned, so that a ratio that changes changes because of us.

mod agent_ledger;
mod dbos;
mod doors;
pub mod driver;
mod litellm;
mod restate;

use super::busy::{Mark, fresh, guarded};
use super::engines::{Engine, Postgres};
use super::house::{self, House, KeySource};
use super::load::LoadResult;
use super::report::{ReportLine, figure};
use super::{CALLERS, Effort};
use driver::PeerDriver;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use xtask::project::{self, Result};

/// Ours and theirs take turns, and the median turn is reported.
const TURNS: usize = 3;

struct Peer {
    name: &'static str,
    /// Said where a peer leaves the choice.
    kept: &'static str,
    /// The calls of one turn: some seconds of work for it.
    calls: usize,
    /// How many times its calls a second are the goal, and the aim.
    goal: (f64, Option<f64>),
    /// Starts it with its data in that directory, or in that server.
    start: fn(&Path, &Postgres) -> Result<PeerDriver>,
}

const GOAL: (f64, Option<f64>) = (25.0, Some(40.0));

/// Beside semel on SQLite.
const PEERS: [Peer; 3] = [
    Peer { name: "DBOS", kept: " on SQLite", calls: 800, goal: GOAL, start: dbos::on_sqlite },
    Peer { name: "Restate", kept: "", calls: 2_000, goal: GOAL, start: |at, _| restate::start(at) },
    Peer { name: "agent-ledger", kept: "", calls: 2_000, goal: GOAL, start: agent_ledger::start },
];

/// Beside semel on the same server.
const PEERS_ON_POSTGRES: [Peer; 2] = [
    Peer { name: "DBOS", kept: "", calls: 800, goal: (25.0, None), start: dbos::on_postgres },
    Peer { name: "agent-ledger", kept: "", calls: 2_000, goal: (15.0, None), start: agent_ledger::start },
];

type PeerBench = fn(Effort) -> Result<Vec<ReportLine>>;

/// What stands at the same place as one of semel's doors.
const DOORS: [(&str, PeerBench); 2] =
    [("Restate over HTTP", doors::beside_restate), ("LiteLLM", doors::beside_litellm)];

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let (runtime, postgres) = (house::runtime()?, Postgres::start()?);
    let mut lines = Vec::new();
    for peer in &PEERS {
        lines.extend(compare(peer, &postgres, effort, |directory, turn| {
            let ledger = directory.join(format!("ledger-{turn}.db"));
            guarded(&runtime, &ledger, KeySource::Key, Mark::Left, CALLERS, effort.span())
        }));
    }
    for (name, beside) in DOORS {
        match beside(effort) {
            Ok(more) => lines.extend(more),
            Err(error) => eprintln!("not measured: {name}: {error}"),
        }
    }
    some(lines)
}

/// Theirs and ours in the tables of one server.
pub fn on_postgres(effort: Effort) -> Result<Vec<ReportLine>> {
    let (runtime, postgres) = (house::runtime()?, Postgres::start()?);
    let here = tempfile::tempdir_in(project::scratch()?)?;
    let house = Arc::new(House::at(&postgres.address("semel"), here.path())?);
    let measure = |peer: &Peer| {
        compare(peer, &postgres, effort, |_, turn| {
            let series = format!("beside-{}-{turn}", peer.name);
            Ok(fresh(&runtime, &house, (&series, KeySource::Key), Mark::Left, CALLERS, effort.span()))
        })
    };
    some(PEERS_ON_POSTGRES.iter().filter_map(measure).collect())
}

fn some(lines: Vec<ReportLine>) -> Result<Vec<ReportLine>> {
    if lines.is_empty() { Err("none of the peers could be measured".into()) } else { Ok(lines) }
}

/// `None`: it was said why not.
fn compare(
    peer: &Peer,
    postgres: &Postgres,
    effort: Effort,
    ours: impl FnMut(&Path, usize) -> Result<LoadResult>,
) -> Option<ReportLine> {
    let compared = in_turns(peer, postgres, effort, ours);
    compared.inspect_err(|error| eprintln!("not measured: {}: {error}", peer.name)).ok()
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

fn in_turns(
    peer: &Peer,
    postgres: &Postgres,
    effort: Effort,
    mut ours: impl FnMut(&Path, usize) -> Result<LoadResult>,
) -> Result<ReportLine> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let mut driver = (peer.start)(directory.path(), postgres)?;
    let mut turns = Vec::new();
    for turn in 0..TURNS {
        settle_disk()?;
        let ours = ours(directory.path(), turn)?;
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
    Ok(ReportLine::plain(what, median.ratio(), "", made_of).at_least(peer.goal.0, peer.goal.1))
}

/// What one side has left to be written would otherwise be waited for by the other.
pub fn settle_disk() -> Result<()> {
    project::must(&mut Command::new("sync"))
}

/// A peer's own directory in `target/bench/peers`, filled unless it already holds these packages.
pub fn installed(
    name: &str,
    packages: &[&str],
    install: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
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
