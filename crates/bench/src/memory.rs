//! Resident memory of a gate that has nothing to do, and of one with ten thousand callers waiting for one effect.

use super::Effort;
use super::child::{self, BenchChild};
use super::house::{self, House, KeySource, Slow};
use super::measure::{self, Machine};
use super::report::{ReportLine, figure};
use semel_core::answer::OutcomeWord;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use xtask::project::{self, Result};

const WAITERS: usize = 10_000;

pub fn run(_effort: Effort) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let idle = BenchChild::new("idle", directory.path(), &[])?.start()?.result()?;
    let waiting = BenchChild::new("waiters", directory.path(), &[&WAITERS.to_string()])?.start()?.result()?;
    let cpu = child::number(&waiting, "cpu");
    let made_of = format!("{} core busy while they wait", figure(cpu));
    Ok(vec![
        ReportLine::plain("an idle gate", child::number(&idle, "resident_mb"), " MB", "").at_most(25.0, None),
        ReportLine::plain(
            "10k waiters on one effect",
            child::number(&waiting, "resident_mb"),
            " MB",
            made_of,
        )
        .at_most(150.0, None),
        ReportLine::plain("10k waiters: released within", child::number(&waiting, "released_ms"), " ms", ""),
    ])
}

pub fn idle_in_child(directory: &Path) -> Result<Value> {
    let house = House::open(&directory.join("idle.db"))?;
    let runtime = house::runtime()?;
    runtime.block_on(house.fresh(&house.intent(KeySource::Key, "idle", 0)));
    child::wait_for_begin()?;
    Ok(json!({"resident_mb": measure::resident()}))
}

pub fn waiters_in_child(directory: &Path, words: &[&str]) -> Result<Value> {
    let waiters: usize = words.first().ok_or("how many?")?.parse()?;
    let house = Arc::new(House::open(&directory.join("waiters.db"))?);
    let runtime = house::runtime()?;
    child::wait_for_begin()?;
    let gates = Arc::new((Notify::new(), Notify::new()));
    let intent = Arc::new(house.intent(KeySource::Key, "waited-for", 0));
    let holder = runtime.spawn({
        let (house, intent, gates) = (Arc::clone(&house), Arc::clone(&intent), Arc::clone(&gates));
        async move {
            house.pass_to(&intent, &mut Slow { gates }).await;
        }
    });
    runtime.block_on(gates.0.notified());
    let joined: Vec<_> = (0..waiters)
        .map(|_| {
            let (house, intent) = (Arc::clone(&house), Arc::clone(&intent));
            runtime.spawn(async move { house.pass(&intent).await.answer.outcome })
        })
        .collect();
    // By now each of them has looked and waits, and their looks have grown rare.
    measure::pause(Duration::from_secs(4));
    let before = Machine::look();
    measure::pause(Duration::from_secs(3));
    let cpu = before.zip(Machine::look()).map(|(before, after)| after.own_since(&before));
    let resident_mb = measure::resident();
    gates.1.notify_one();
    let ((), released) = measure::time(|| {
        runtime.block_on(async {
            holder.await.expect("the holder does not panic");
            for waiter in joined {
                let outcome = waiter.await.expect("a waiter does not panic");
                assert_eq!(outcome, OutcomeWord::Joined, "all of them waited for the one attempt");
            }
        });
    });
    Ok(json!({"resident_mb": resident_mb, "cpu": cpu, "released_ms": released.as_millis() as u64}))
}
