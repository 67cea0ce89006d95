//! Many callers: how much of a bare group-committing store is left once it keeps all that a ledger keeps.

use super::baseline::{BareLog, BareTable, KeyOrder, group_commit};
use super::house::{self, House, KeySource};
use super::load::{LoadResult, drive};
use super::report::{ReportLine, figure};
use super::{CALLERS, Effort};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use xtask::project::{self, Result};

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let file = |name: &str| directory.path().join(name);
    let runtime = house::runtime()?;
    let span = effort.span();
    let hash = group_commit(&runtime, BareTable::open(&file("hash.db"))?, KeyOrder::Hash, CALLERS, span);
    let mut named = guarded(&runtime, &file("named.db"), KeySource::Key, Mark::Left, CALLERS, span)?;
    let time = group_commit(&runtime, BareTable::open(&file("time.db"))?, KeyOrder::Time, CALLERS, span);
    let log = group_commit(&runtime, BareLog::create(&file("log"))?, KeyOrder::Hash, CALLERS, span);
    let marked = guarded(&runtime, &file("marked.db"), KeySource::Key, Mark::Made, CALLERS, span)?;
    let unnamed = guarded(&runtime, &file("unnamed.db"), KeySource::Arguments, Mark::Left, CALLERS, span)?;
    let made_of = |ours: &LoadResult, bare: &LoadResult| {
        format!("{} calls/s; {} bare ops/s", figure(ours.per_second()), figure(bare.per_second()))
    };
    let ratio = |ours: &LoadResult, bare: &LoadResult| ours.per_second() / bare.per_second();
    let cpu = format!("{} us a call; {} us bare", figure(named.cpu_micros()), figure(hash.cpu_micros()));
    let latency =
        format!("; p50 {} us, p99 {} us", figure(named.times.median()), figure(named.times.micros(0.99)));
    Ok(vec![
        ReportLine::plain(
            "64 callers / bare SQLite, hash keys",
            ratio(&named, &hash),
            "",
            made_of(&named, &hash) + &latency,
        )
        .at_least(1.0, 2.0),
        ReportLine::plain(
            "64 callers / bare SQLite, time-ordered keys",
            ratio(&named, &time),
            "",
            made_of(&named, &time),
        ),
        ReportLine::plain("64 callers / append log", ratio(&named, &log), "", made_of(&named, &log)),
        ReportLine::plain("CPU of a call / bare, hash keys", named.cpu_micros() / hash.cpu_micros(), "", cpu),
        ReportLine::plain(
            "with delivered marks / hash keys",
            ratio(&marked, &hash),
            "",
            made_of(&marked, &hash),
        ),
        ReportLine::plain(
            "named by arguments / hash keys",
            ratio(&unnamed, &hash),
            "",
            made_of(&unnamed, &hash),
        ),
    ])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Each answer is marked as delivered, as doors do.
    Made,
    Left,
}

/// Fresh calls through a gate on a new ledger in a file.
pub fn guarded(
    runtime: &Runtime,
    ledger: &Path,
    named_by: KeySource,
    mark: Mark,
    callers: usize,
    span: Duration,
) -> Result<LoadResult> {
    let house = Arc::new(House::open(ledger)?);
    Ok(fresh(runtime, &house, ("busy", named_by), mark, callers, span))
}

/// The same on one that is open.
pub fn fresh(
    runtime: &Runtime,
    house: &Arc<House>,
    (series, named_by): (&str, KeySource),
    mark: Mark,
    callers: usize,
    span: Duration,
) -> LoadResult {
    let (house, series) = (Arc::clone(house), series.to_owned());
    drive(runtime, callers, span, move |n| {
        let (house, intent) = (Arc::clone(&house), house.intent(named_by, &series, n));
        async move {
            let passed = house.fresh(&intent).await;
            if let (Mark::Made, Some(delivery)) = (mark, passed.delivery) {
                house.gate.delivered(&delivery).await.expect("the ledger works");
            }
        }
    })
}
