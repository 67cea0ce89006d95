//! A disk whose flush takes 2 ms longer: whether all callers share each flush.

use super::baseline::Appended;
use super::busy::{Mark, guarded};
use super::child::{self, BenchChild};
use super::house::{self, KeySource};
use super::measure::Times;
use super::report::{ReportLine, figure};
use super::{CALLERS, Effort};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use xtask::project::{self, Result};

/// Cloud block volumes flush in this order of time.
const SLOWER_BY: Duration = Duration::from_millis(2);

const SHIM: &str = include_str!("slowsync.c");

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let source = directory.path().join("slowsync.c");
    let shim = directory.path().join("slowsync.so");
    std::fs::write(&source, SHIM)?;
    project::must(
        Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&shim).arg(&source).arg("-ldl"),
    )?;
    let mut child =
        BenchChild::new("slow-disk", directory.path(), &[&effort.span().as_millis().to_string()])?;
    child.command().env("LD_PRELOAD", &shim).env("SLOWSYNC_US", SLOWER_BY.as_micros().to_string());
    let found = child.start()?.result()?;
    let (flush, calls) = (child::number(&found, "flush_us"), child::number(&found, "calls_per_second"));
    if flush < SLOWER_BY.as_micros() as f64 {
        return Err(format!("the shim does not reach fdatasync: a flush took {flush} us").into());
    }
    let limit = CALLERS as f64 / (2.0 * flush / 1e6);
    let made_of = format!(
        "{} calls/s; limit {} calls/s at a flush of {} us; p50 {} us, p99 {} us",
        figure(calls),
        figure(limit),
        figure(flush),
        figure(child::number(&found, "p50_us")),
        figure(child::number(&found, "p99_us"))
    );
    Ok(vec![
        ReportLine::plain("64 callers / limit of two shared flushes", calls / limit, "", made_of)
            .at_least(0.5, 0.8),
    ])
}

/// In the child, under the shim.
pub fn in_child(directory: &Path, words: &[&str]) -> Result<Value> {
    let span = Duration::from_millis(words.first().ok_or("how long?")?.parse()?);
    let mut appended = Appended::create(directory)?;
    let mut flushes = Times::default();
    for _ in 0..100 {
        flushes.add(appended.flush_one()?);
    }
    let ledger = directory.join("slow.db");
    let mut load = guarded(&house::runtime()?, &ledger, KeySource::Key, Mark::Left, CALLERS, span)?;
    Ok(json!({
        "flush_us": flushes.median(),
        "calls_per_second": load.per_second(),
        "p50_us": load.times.median(),
        "p99_us": load.times.micros(0.99),
    }))
}
