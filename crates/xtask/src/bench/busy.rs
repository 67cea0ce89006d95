//! Many callers: how much of a bare group-committing store is left once it keeps all that a ledger keeps.

use super::floor::{BareLog, BareTable, Order, group_commit};
use super::house::{self, House, NamedBy};
use super::load::{Load, drive};
use super::report::{Line, figure};
use super::{CALLERS, Effort};
use crate::project::{self, Result};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

pub fn run(effort: Effort) -> Result<Vec<Line>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let file = |name: &str| directory.path().join(name);
    let runtime = house::runtime()?;
    let span = effort.span();
    let hash = group_commit(&runtime, BareTable::open(&file("hash.db"))?, Order::Hash, CALLERS, span);
    let mut named = guarded(&runtime, &file("named.db"), NamedBy::Key, Mark::Left, CALLERS, span)?;
    let time = group_commit(&runtime, BareTable::open(&file("time.db"))?, Order::Time, CALLERS, span);
    let log = group_commit(&runtime, BareLog::create(&file("log"))?, Order::Hash, CALLERS, span);
    let marked = guarded(&runtime, &file("marked.db"), NamedBy::Key, Mark::Made, CALLERS, span)?;
    let unnamed = guarded(&runtime, &file("unnamed.db"), NamedBy::Arguments, Mark::Left, CALLERS, span)?;
    let made_of = |ours: &Load, bare: &Load| {
        format!("{} calls/s; {} bare ops/s", figure(ours.per_second()), figure(bare.per_second()))
    };
    let ratio = |ours: &Load, bare: &Load| ours.per_second() / bare.per_second();
    let cpu = format!("{} us a call; {} us bare", figure(named.cpu_micros()), figure(hash.cpu_micros()));
    let latency =
        format!("; p50 {} us, p99 {} us", figure(named.times.median()), figure(named.times.micros(0.99)));
    Ok(vec![
        Line::plain(
            "64 callers / bare SQLite, hash keys",
            ratio(&named, &hash),
            "",
            made_of(&named, &hash) + &latency,
        )
        .at_least(1.0, 2.0),
        Line::plain(
            "64 callers / bare SQLite, time-ordered keys",
            ratio(&named, &time),
            "",
            made_of(&named, &time),
        ),
        Line::plain("64 callers / append log", ratio(&named, &log), "", made_of(&named, &log)),
        Line::plain("CPU of a call / bare, hash keys", named.cpu_micros() / hash.cpu_micros(), "", cpu),
        Line::plain("with delivered marks / hash keys", ratio(&marked, &hash), "", made_of(&marked, &hash)),
        Line::plain("named by arguments / hash keys", ratio(&unnamed, &hash), "", made_of(&unnamed, &hash)),
    ])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Each answer is marked as delivered, as doors do.
    Made,
    Left,
}

/// Fresh calls through a gate on a new ledger.
pub fn guarded(
    runtime: &Runtime,
    ledger: &Path,
    named_by: NamedBy,
    mark: Mark,
    callers: usize,
    span: Duration,
) -> Result<Load> {
    let house = Arc::new(House::open(ledger)?);
    Ok(drive(runtime, callers, span, move |n| {
        let house = Arc::clone(&house);
        async move {
            let intent = house.intent(named_by, "busy", n);
            let passed = house.fresh(&intent).await;
            if let (Mark::Made, Some(delivery)) = (mark, passed.delivery) {
                house.gate.delivered(&delivery).await.expect("the ledger works");
            }
        }
    }))
}
