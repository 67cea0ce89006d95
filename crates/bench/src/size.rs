//! Ledgers from a thousand to ten million effects, on every engine: whether a call costs more as the ledger grows.

use super::Effort;
use super::baseline::scattered;
use super::engines::Engine;
use super::fill::Filled;
use super::house::{self, KeySource};
use super::load::drive;
use super::measure::{Times, now};
use super::report::{ReportLine, figure};
use super::{CALLERS, house::House};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use xtask::project::{self, Result};

const SMALLEST: u64 = 1_000;
/// The sizes that an engine is filled to, in order; a quick run fills the first one alone.
pub const SQLITE: [u64; 3] = [100_000, 1_000_000, 10_000_000];
pub const POSTGRES: [u64; 2] = [1_000_000, 10_000_000];
/// All of it lies in memory: a million effects take two gigabytes.
pub const REDIS: [u64; 2] = [100_000, 1_000_000];
/// Within the two gigabytes that etcd takes unless its operator says otherwise.
pub const ETCD: [u64; 2] = [10_000, 100_000];

pub fn run(engine: &dyn Engine, sizes: &[u64], effort: Effort) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let runtime = house::runtime()?;
    let mut small = Filled::found(&engine.address("small"), directory.path(), &runtime)?;
    small.fill(&runtime, SMALLEST)?;
    let mut large = Filled::found(&engine.address("large"), directory.path(), &runtime)?;
    let sizes = if effort.quick { &sizes[..1] } else { sizes };
    let mut lines = Vec::new();
    for (round, size) in sizes.iter().enumerate() {
        large.fill(&runtime, *size)?;
        engine.rest();
        let (mut base, mut cost) = compare(&runtime, effort, round, &small, &large);
        let name = format!("{}: {} effects / 1k", engine.name(), figure(*size as f64));
        let line = |what: &str, cost: f64, base: f64| {
            let made_of = format!("{} us; {} us with 1k", figure(cost), figure(base));
            ReportLine::plain(format!("{name}: {what}"), cost / base, "", made_of).at_most(2.0, 1.5)
        };
        lines.extend([
            line("fresh p50", cost.fresh.median(), base.fresh.median()),
            line("fresh with 64 callers", cost.busy, base.busy),
            line("replay p50", cost.replay.median(), base.replay.median()),
            line("replay mean", cost.replay.mean(), base.replay.mean()),
        ]);
    }
    Ok(lines)
}

#[derive(Default)]
struct SizeCost {
    fresh: Times,
    replay: Times,
    /// Microseconds a call with many callers.
    busy: f64,
}

/// Measures both in turns, so that both see the same machine.
fn compare(
    runtime: &Runtime,
    effort: Effort,
    round: usize,
    small: &Filled,
    large: &Filled,
) -> (SizeCost, SizeCost) {
    const TURNS: u64 = 20;
    const TURNS_BUSY: u32 = 6;
    let mut costs = (SizeCost::default(), SizeCost::default());
    for turn in 0..TURNS {
        let series = format!("size-{round}-{turn}");
        for (filled, cost) in [(small, &mut costs.0), (large, &mut costs.1)] {
            alone(runtime, effort, filled, &series, cost);
        }
    }
    for turn in 0..TURNS_BUSY {
        let series = format!("size-{round}-{turn}-busy");
        for (filled, cost) in [(small, &mut costs.0), (large, &mut costs.1)] {
            let micros = busy(runtime, Arc::clone(filled.house()), effort.span() / 2, series.clone());
            cost.busy += micros / f64::from(TURNS_BUSY);
        }
    }
    costs
}

fn alone(runtime: &Runtime, effort: Effort, filled: &Filled, series: &str, cost: &mut SizeCost) {
    let house = filled.house();
    for n in 0..effort.count(100) as u64 {
        let intent = house.intent(KeySource::Key, series, n);
        let started = now();
        runtime.block_on(house.fresh(&intent));
        cost.fresh.add(started.elapsed());
    }
    for n in 0..effort.count(1_000) as u64 {
        let seed = series.bytes().map(u64::from).sum();
        let intent = house.intent(KeySource::Key, Filled::SERIES, scattered(seed, n, filled.effects()));
        let started = now();
        runtime.block_on(house.replay(&intent));
        cost.replay.add(started.elapsed());
    }
}

fn busy(runtime: &Runtime, house: Arc<House>, span: Duration, series: String) -> f64 {
    let load = drive(runtime, CALLERS, span, move |n| {
        let (house, intent) = (Arc::clone(&house), house.intent(KeySource::Key, &series, n));
        async move {
            house.fresh(&intent).await;
        }
    });
    1e6 / load.per_second()
}
