//! What grows beside a ledger: one outline, one record, marks, and callers who wait. None of it may make a call dearer. Each
//! call is alone, and its delivered mark counts.

use super::Effort;
use super::engines::{Engine, Etcd, Postgres, Redis, Sqlite};
use super::fill::{Filled, Series};
use super::house::{self, House};
use super::measure::{self, Machine, Times, now};
use super::report::{ReportLine, figure};
use semel_core::digest::Digest;
use semel_core::intent::Intent;
use semel_ledger::store::Revision;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use xtask::project::{self, Result};

/// Posts to one channel.
const POSTS: u64 = 20_000;

/// Times that one command is run.
const OCCURRENCES: u64 = 50_000;

const MARKED: u64 = 20_000;

const WAITERS: usize = 10_000;

/// The last call costs at most so many times the first one.
const MOST: f64 = 1.3;

pub fn outline(effort: Effort) -> Result<Vec<ReportLine>> {
    filled(effort, Series::OneOutline, POSTS, "posts to one channel")
}

pub fn record(effort: Effort) -> Result<Vec<ReportLine>> {
    filled(effort, Series::OneRecord, OCCURRENCES, "runs of one command")
}

pub fn marks(effort: Effort) -> Result<Vec<ReportLine>> {
    filled(effort, Series::Keyed, MARKED, "marked calls")
}

fn filled(effort: Effort, series: Series, count: u64, what: &str) -> Result<Vec<ReportLine>> {
    let mut lines = Vec::new();
    let count = if effort.quick { count / 20 } else { count };
    for_each_engine(&mut |engine| {
        let directory = tempfile::tempdir_in(project::scratch()?)?;
        let runtime = house::runtime()?;
        let mut ledger = Filled::begin(&engine.address("growing"), directory.path(), &runtime, series)?;
        let mut calls =
            Calls { runtime: &runtime, house: Arc::clone(ledger.house()), series, next: FIRST_CALL };
        calls.block(effort);
        let mut start = calls.block(effort);
        ledger.fill(&runtime, count)?;
        engine.rest();
        calls.block(effort);
        let mut end = calls.block(effort);
        let what = format!("{}: after {} {what} / at first", engine.name(), figure(count as f64));
        lines.push(line(what, &mut end, &mut start));
        Ok(())
    })?;
    Ok(lines)
}

/// Those who wait on servers are looked for by one task, and each for a key of its own.
pub fn waiters(effort: Effort) -> Result<Vec<ReportLine>> {
    let mut lines = Vec::new();
    let count = effort.count(WAITERS);
    for_each_engine(&mut |engine| {
        let directory = tempfile::tempdir_in(project::scratch()?)?;
        let runtime = house::runtime()?;
        let house = Arc::new(House::at(&engine.address("waiters"), directory.path())?);
        let mut calls = Calls { runtime: &runtime, house, series: Series::Keyed, next: FIRST_CALL };
        calls.block(effort);
        let mut start = calls.block(effort);
        let waiting: Vec<_> = (0..count)
            .map(|n| {
                let house = Arc::clone(&calls.house);
                let key = Digest::of(&[b"waited for", &n.to_be_bytes()]);
                runtime.spawn(async move {
                    let store = house.gate.ledger.store();
                    store.changed(key, Revision::ABSENT, Duration::from_secs(3_600)).await
                })
            })
            .collect();
        // By now each of them has been looked for.
        measure::pause(Duration::from_secs(3));
        let before = Machine::look();
        measure::pause(Duration::from_secs(3));
        let cpu = before.zip(Machine::look()).map_or(f64::NAN, |(before, after)| after.own_since(&before));
        let mut end = calls.block(effort);
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        let name = engine.name();
        let what = format!("{name}: beside {} waiters / without", figure(count as f64));
        lines.push(line(what, &mut end, &mut start));
        let busy = format!("{name}: cores busy while they wait");
        lines.push(ReportLine::plain(busy, cpu, "", "of this process"));
        Ok(())
    })?;
    Ok(lines)
}

fn line(what: String, end: &mut Times, start: &mut Times) -> ReportLine {
    let (start_us, end_us) = (start.median(), end.median());
    let made_of = format!(
        "p50 {} us at the start, {} us at the end; p90 {} us and {} us",
        figure(start_us),
        figure(end_us),
        figure(start.micros(0.9)),
        figure(end.micros(0.9))
    );
    ReportLine::plain(what, end_us / start_us, "", made_of).at_most(MOST, None)
}

/// One after the other, since each is a server on this machine.
fn for_each_engine(bench: &mut dyn FnMut(&dyn Engine) -> Result<()>) -> Result<()> {
    bench(&Sqlite::start()?)?;
    bench(&Postgres::start()?)?;
    bench(&Redis::start()?)?;
    bench(&Etcd::start()?)
}

/// Above all numbers that a ledger is filled with.
const FIRST_CALL: u64 = 1 << 32;

struct Calls<'r> {
    runtime: &'r Runtime,
    house: Arc<House>,
    series: Series,
    next: u64,
}

impl Calls<'_> {
    /// Calls one by one. Their intents are made before.
    fn block(&mut self, effort: Effort) -> Times {
        let numbers = self.next..self.next + effort.count(400) as u64;
        self.next = numbers.end;
        let intents: Vec<Intent> = numbers.map(|n| self.series.intent(&self.house, n)).collect();
        let mut times = Times::default();
        for intent in &intents {
            let started = now();
            self.runtime.block_on(async {
                let passed = self.series.pass(&self.house, intent).await;
                let delivery = passed.delivery.expect("a success can be delivered");
                self.house.gate.delivered(&delivery).await.expect("the ledger works");
            });
            times.add(started.elapsed());
        }
        times
    }
}
