//! One caller at a time: what a guarded call costs beside the two flushes that nobody can save.

use super::baseline::{Appended, two_flushes};
use super::house::{self, House, KeySource};
use super::load::drive;
use super::measure::{Times, now};
use super::report::{ReportLine, figure};
use super::{CALLERS, Effort};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use xtask::project::{self, Result};

/// Calls and flushes take turns in blocks of this many, so that both see the same machine.
const BLOCK: u64 = 50;

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let ledger = directory.path().join("ledger.db");
    let house = Arc::new(House::open(&ledger)?);
    let mut appended = Appended::create(directory.path())?;
    let runtime = house::runtime()?;
    warm_up(&runtime, &house, &ledger)?;
    let (mut passes, mut marked, mut flushes, mut intents) =
        (Times::default(), Times::default(), Times::default(), Times::default());
    let blocks = effort.count(60) as u64;
    for n in 0..blocks * BLOCK {
        let started = now();
        let intent = house.intent(KeySource::Key, "alone", n);
        intents.add(started.elapsed());
        let started = now();
        let passed = runtime.block_on(house.fresh(&intent));
        passes.add(started.elapsed());
        let delivery = passed.delivery.expect("a success can be delivered");
        let started = now();
        runtime.block_on(house.gate.delivered(&delivery))?;
        marked.add(started.elapsed());
        if n % BLOCK == BLOCK - 1 {
            for _ in 0..2 * BLOCK {
                flushes.add(appended.flush_one()?);
            }
        }
    }
    let floor = two_flushes(&mut flushes);
    let (pass, p99, mark) = (passes.median(), passes.micros(0.99), marked.median());
    let made_of = format!(
        "pass p50 {} us, p99 {} us; two 4 KiB fdatasyncs {} us; building the intent {} us",
        figure(pass),
        figure(p99),
        figure(floor),
        figure(intents.median())
    );
    let made_of_mark = format!("delivered mark p50 {} us, not flushed", figure(mark));
    let frames = frames_of_call(&runtime, &house, &ledger)?;
    Ok(vec![
        ReportLine::plain("p50 of a call / two fdatasyncs", pass / floor, "", made_of).at_most(1.5, 1.2),
        ReportLine::plain("the same with its delivered mark", (pass + mark) / floor, "", made_of_mark),
        ReportLine::plain("frames of the write-ahead log, a call", frames, "", "4 KiB each")
            .at_most(8.0, None),
    ])
}

/// The mean over some blocks of calls, as SQLite counts the frames.
fn frames_of_call(runtime: &Runtime, house: &House, ledger: &Path) -> Result<f64> {
    let looker = Connection::open(ledger)?;
    let frames = || looker.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get::<_, f64>(1));
    let (mut calls, mut taken, mut n) = (0, 0.0, 0);
    while calls < 10 * BLOCK {
        let before = frames()?;
        for _ in 0..BLOCK {
            runtime.block_on(house.fresh(&house.intent(KeySource::Key, "frames", n)));
            n += 1;
        }
        let more = frames()? - before;
        // Else the log was begun anew in between.
        if more > 0.0 {
            calls += BLOCK;
            taken += more;
        }
    }
    Ok(taken / calls as f64)
}

/// Calls until the write-ahead log has been folded into the database once. From then on it is written over instead
/// of growing, which is how a ledger spends its life.
fn warm_up(runtime: &Runtime, house: &Arc<House>, ledger: &Path) -> Result<()> {
    const FOUNDED_BYTES: u64 = 256 * 1024;
    for round in 0..100 {
        if std::fs::metadata(ledger)?.len() > FOUNDED_BYTES {
            break;
        }
        let house = Arc::clone(house);
        drive(runtime, CALLERS, Duration::from_millis(100), move |n| {
            let (house, intent) =
                (Arc::clone(&house), house.intent(KeySource::Key, &format!("warm-{round}"), n));
            async move {
                house.fresh(&intent).await;
            }
        });
    }
    // The writer's thread steps back once it has been lonely for a while.
    for n in 0..40 {
        runtime.block_on(house.fresh(&house.intent(KeySource::Key, "warm-alone", n)));
    }
    Ok(())
}
