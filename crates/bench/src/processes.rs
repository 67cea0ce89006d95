//! Several processes on one ledger: whether they share it fairly, and what sharing costs.

use super::Effort;
use super::child::{self, BenchChild, Started};
use super::house::{self, House, KeySource};
use super::load::drive;
use super::report::{ReportLine, figure};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use xtask::project::{self, Result};

/// Callers in each process: enough for its batches to matter.
const CALLERS_EACH: usize = 16;

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let ledger = |name: &str| directory.path().join(name).join("ledger.db").display().to_string();
    let one = together(&ledger("one"), 1, effort)?;
    let mut lines = Vec::new();
    for count in [2, 4] {
        let several = together(&ledger(&format!("by{count}")), count, effort)?;
        let made_of = format!("{} calls/s together; {} alone", figure(several.total), figure(one.total));
        lines.extend([
            ReportLine::plain(format!("{count} processes / one"), several.total / one.total, "", made_of)
                .at_least(0.5, None),
            ReportLine::plain(
                format!("{count} processes: farthest from an equal share"),
                several.uneven * 100.0,
                " %",
                several.shares,
            )
            .at_most(10.0, None),
            ReportLine::plain(
                format!("{count} processes: worst call"),
                several.worst_ms,
                " ms",
                format!("alone {} ms", figure(one.worst_ms)),
            )
            .at_most(100.0, None),
        ]);
    }
    Ok(lines)
}

pub struct Together {
    pub total: f64,
    uneven: f64,
    worst_ms: f64,
    pub shares: String,
}

/// So many processes on one ledger, each with a state directory of its own.
pub fn together(address: &str, count: usize, effort: Effort) -> Result<Together> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let span = effort.span().as_millis().to_string();
    let start = |n: usize| {
        let here = directory.path().join(n.to_string());
        BenchChild::new("processes", &here, &[&n.to_string(), &span, address])?.start()
    };
    let mut started = (0..count).map(start).collect::<Result<Vec<_>>>()?;
    started.iter_mut().try_for_each(Started::begin)?;
    let found = started.into_iter().map(Started::result).collect::<Result<Vec<_>>>()?;
    let rates: Vec<f64> = found.iter().map(|found| child::number(found, "calls_per_second")).collect();
    let total: f64 = rates.iter().sum();
    let mean = total / count as f64;
    let shares: Vec<String> = rates.iter().map(|rate| figure(rate / total * 100.0)).collect();
    Ok(Together {
        total,
        uneven: rates.iter().map(|rate| (rate / mean - 1.0).abs()).fold(0.0, f64::max),
        worst_ms: found.iter().map(|found| child::number(found, "worst_us") / 1e3).fold(0.0, f64::max),
        shares: format!("shares in percent: {}", shares.join(", ")),
    })
}

pub fn in_child(here: &Path, words: &[&str]) -> Result<Value> {
    let [number, span, address] = words else {
        return Err("a number, a time and an address are needed".into());
    };
    let series = format!("process-{number}");
    let span = Duration::from_millis(span.parse()?);
    let house = Arc::new(House::at(address, here)?);
    let runtime = house::runtime()?;
    // Threads, connections and the owner's lock are there before the others begin.
    runtime.block_on(house.fresh(&house.intent(KeySource::Key, &series, u64::MAX)));
    child::wait_for_begin()?;
    let mut load = drive(&runtime, CALLERS_EACH, span, move |n| {
        let (house, intent) = (Arc::clone(&house), house.intent(KeySource::Key, &series, n));
        async move {
            house.fresh(&intent).await;
        }
    });
    Ok(json!({"calls_per_second": load.per_second(), "worst_us": load.times.micros(1.0)}))
}
