//! Several processes on one ledger: whether they share it fairly, and what sharing costs.

use super::Effort;
use super::child::{self, BenchChild, Started};
use super::house::{self, House, KeySource};
use super::load::drive;
use super::report::{ReportLine, figure};
use crate::project::{self, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Callers in each process: enough for its batches to matter.
const CALLERS_EACH: usize = 16;

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let one = together(1, effort)?;
    let mut lines = Vec::new();
    for count in [2, 4] {
        let several = together(count, effort)?;
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

struct Together {
    total: f64,
    uneven: f64,
    worst_ms: f64,
    shares: String,
}

fn together(count: usize, effort: Effort) -> Result<Together> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let span = effort.span().as_millis().to_string();
    let start = |n: usize| BenchChild::new("processes", directory.path(), &[&n.to_string(), &span])?.start();
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

pub fn in_child(directory: &Path, words: &[&str]) -> Result<Value> {
    let [number, span] = words else { return Err("a number and a time are needed".into()) };
    let series = format!("process-{number}");
    let span = Duration::from_millis(span.parse()?);
    let house = Arc::new(House::open(&directory.join("ledger.db"))?);
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
