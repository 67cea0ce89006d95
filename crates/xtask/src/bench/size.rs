//! Ledgers from a thousand to ten million effects: whether a call costs more as the ledger grows.

use super::Effort;
use super::baseline::scattered;
use super::fill::Filled;
use super::house::{self, KeySource};
use super::load::drive;
use super::measure::{Times, now};
use super::report::{ReportLine, figure};
use super::{CALLERS, house::House};
use crate::project::{self, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

const SMALLEST: u64 = 1_000;
/// The largest is what ten gigabytes hold: an effect takes 0.9 KB of them, without its lines in the journal.
const SIZES: [u64; 3] = [100_000, 1_000_000, 10_000_000];

/// The largest takes minutes to fill.
const SIZES_QUICK: usize = 2;

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let runtime = house::runtime()?;
    let mut small = Filled::found(&directory.path().join("small.db"), &runtime)?;
    small.fill(SMALLEST)?;
    let mut large = Filled::found(&directory.path().join("large.db"), &runtime)?;
    let sizes = if effort.quick { &SIZES[..SIZES_QUICK] } else { &SIZES[..] };
    let mut lines = Vec::new();
    for (round, size) in sizes.iter().enumerate() {
        large.fill(*size)?;
        let (mut base, mut cost) = compare(&runtime, effort, round, &small, &large)?;
        let name = format!("{} effects / 1k", figure(*size as f64));
        let line = |what: &str, cost: f64, base: f64| {
            let made_of = format!("{} us; {} us with 1k", figure(cost), figure(base));
            ReportLine::plain(format!("{what}, {name}"), cost / base, "", made_of).at_most(2.0, 1.5)
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
) -> Result<(SizeCost, SizeCost)> {
    const TURNS: u64 = 20;
    const TURNS_BUSY: u32 = 6;
    let mut costs = (SizeCost::default(), SizeCost::default());
    let houses = (Arc::new(House::open(small.file())?), Arc::new(House::open(large.file())?));
    for turn in 0..TURNS {
        let series = format!("size-{round}-{turn}");
        for (house, filled, cost) in [(&houses.0, small, &mut costs.0), (&houses.1, large, &mut costs.1)] {
            alone(runtime, effort, house, filled, &series, cost);
        }
    }
    for turn in 0..TURNS_BUSY {
        let series = format!("size-{round}-{turn}-busy");
        for (house, cost) in [(&houses.0, &mut costs.0), (&houses.1, &mut costs.1)] {
            let micros = busy(runtime, Arc::clone(house), effort.span() / 2, series.clone());
            cost.busy += micros / f64::from(TURNS_BUSY);
        }
    }
    Ok(costs)
}

fn alone(
    runtime: &Runtime,
    effort: Effort,
    house: &House,
    filled: &Filled,
    series: &str,
    cost: &mut SizeCost,
) {
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
