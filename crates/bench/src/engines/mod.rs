//! Every engine beside the least that its own server must do for a guarded call: two durable writes, made by the server's
//! own tool with as many clients. Servers are real, write to the disk before they answer, and end with the bench.

mod etcd;
mod postgres;
mod redis;
mod sqlite;
pub mod waking;

pub use etcd::Etcd;
pub use postgres::Postgres;
pub use redis::Redis;
pub use sqlite::Sqlite;

use super::baseline::scattered;
use super::busy::{Mark, fresh};
use super::house::{self, House, KeySource};
use super::load::{LoadResult, drive};
use super::processes;
use super::report::{ReportLine, figure};
use super::{CALLERS, Effort};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use xtask::project::{self, Result};

const CALLERS_OF_LADDER: [usize; 4] = [1, 16, CALLERS, 256];

/// Processes with one ledger.
const GROWTH: [usize; 3] = [2, 4, 8];

/// A server, and its own tool to drive it.
pub trait Engine {
    fn name(&self) -> &'static str;

    /// The tool and its two writes, in words.
    fn tool(&self) -> &'static str;

    fn goals(&self) -> Goals;

    fn address(&self, ledger: &str) -> String;

    /// Pairs of durable writes from so many clients.
    fn pairs(&self, clients: usize, span: Duration) -> Result<ToolLoad>;

    /// Reads of one key each. `None`: another bench compares these.
    fn reads(&self, _clients: usize, _span: Duration) -> Result<Option<ToolLoad>> {
        Ok(None)
    }

    /// Has the server do at once what it would do in the hour after a ledger has grown.
    fn rest(&self) {}
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Goals {
    /// The median of a call alone, in those of a pair.
    pub alone_at_most: Option<f64>,
    /// Calls of 64 callers, in pairs.
    pub busy_at_least: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
pub struct ToolLoad {
    pub per_second: f64,
    pub p50_us: f64,
}

impl ToolLoad {
    /// Of two operations, one after the other.
    fn of_pairs(self) -> ToolLoad {
        ToolLoad { per_second: self.per_second / 2.0, p50_us: self.p50_us * 2.0 }
    }
}

pub fn run(engine: &dyn Engine, effort: Effort) -> Result<Vec<ReportLine>> {
    let runtime = house::runtime()?;
    let here = tempfile::tempdir_in(project::scratch()?)?;
    let house = Arc::new(House::at(&engine.address("ladder"), here.path())?);
    // Connections are made and pages are touched before anything counts. These are marked, to be replayed.
    let known = fresh(&runtime, &house, ("known", KeySource::Key), Mark::Made, CALLERS, effort.span()).calls;
    let mut lines = Vec::new();
    for callers in CALLERS_OF_LADDER {
        lines.extend(step(engine, &runtime, &house, callers, effort)?);
    }
    lines.extend(replays(engine, &runtime, &house, known, effort)?);
    drop(house);
    lines.push(waking::run(engine, &runtime, effort)?);
    lines.extend(growth(engine, effort)?);
    Ok(lines)
}

fn step(
    engine: &dyn Engine,
    runtime: &Runtime,
    house: &Arc<House>,
    callers: usize,
    effort: Effort,
) -> Result<Vec<ReportLine>> {
    let theirs = engine.pairs(callers, effort.span())?;
    let series = format!("of-{callers}");
    let mut ours = fresh(runtime, house, (&series, KeySource::Key), Mark::Left, callers, effort.span());
    let (name, tool) = (engine.name(), engine.tool());
    let made_of = beside(&mut ours, theirs);
    let ratio = ours.per_second() / theirs.per_second;
    let rate = ReportLine::plain(format!("{name}: {callers} callers / {tool}"), ratio, "", made_of.clone());
    let Goals { alone_at_most, busy_at_least } = engine.goals();
    Ok(match (callers, busy_at_least) {
        (1, _) => {
            let what = format!("{name}: p50 alone / {tool}");
            let alone = ReportLine::plain(what, ours.times.median() / theirs.p50_us, "", made_of);
            vec![alone_at_most.map_or(alone.clone(), |most| alone.at_most(most, None)), rate]
        }
        (CALLERS, Some(least)) => vec![rate.at_least(least, None)],
        _ => vec![rate],
    })
}

fn beside(ours: &mut LoadResult, theirs: ToolLoad) -> String {
    format!(
        "{} calls/s (p50 {} us, p99 {} us); {}/s (p50 {} us)",
        figure(ours.per_second()),
        figure(ours.times.median()),
        figure(ours.times.micros(0.99)),
        figure(theirs.per_second),
        figure(theirs.p50_us)
    )
}

fn replays(
    engine: &dyn Engine,
    runtime: &Runtime,
    house: &Arc<House>,
    known: u64,
    effort: Effort,
) -> Result<Option<ReportLine>> {
    let Some(theirs) = engine.reads(CALLERS, effort.span())? else { return Ok(None) };
    let house = Arc::clone(house);
    let mut ours = drive(runtime, CALLERS, effort.span(), move |n| {
        let (house, intent) =
            (Arc::clone(&house), house.intent(KeySource::Key, "known", scattered(1, n, known)));
        async move {
            house.replay(&intent).await;
        }
    });
    let what = format!("{}: replays / its point reads, {CALLERS} callers", engine.name());
    let ratio = ours.per_second() / theirs.per_second;
    Ok(Some(ReportLine::plain(what, ratio, "", beside(&mut ours, theirs)).at_least(0.5, None)))
}

/// Processes with a gate each, as so many gateways have them.
fn growth(engine: &dyn Engine, effort: Effort) -> Result<Vec<ReportLine>> {
    let one = processes::together(&engine.address("one"), 1, effort)?;
    let line = |count: usize| {
        let several = processes::together(&engine.address(&format!("by{count}")), count, effort)?;
        let what = format!("{}: {count} processes / one", engine.name());
        let made_of = format!(
            "{} calls/s together; {} alone; {}",
            figure(several.total),
            figure(one.total),
            several.shares
        );
        Ok(ReportLine::plain(what, several.total / one.total, "", made_of))
    };
    GROWTH.into_iter().map(line).collect()
}

/// A flush to a directory in memory costs nothing, and would be measured as if it did.
fn must_lie_on_disk(directory: &Path) -> Result<()> {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let in_memory = |line: &str| {
        let mut words = line.split(' ').skip(1);
        words.next().is_some_and(|place| Path::new(place) == directory)
            && matches!(words.next(), Some("tmpfs" | "ramfs"))
    };
    match mounts.lines().any(in_memory) {
        true => {
            Err(format!("{} lies in memory; set TMPDIR to a directory on a disk", directory.display()).into())
        }
        false => Ok(()),
    }
}
