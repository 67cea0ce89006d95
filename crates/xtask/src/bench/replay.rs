//! Answers from the record: they write nothing, and should cost little more than the read.

use super::Effort;
use super::busy::{Mark, guarded};
use super::floor::{BareTable, Order, group_commit, point_reads, scattered};
use super::house::{self, House, NamedBy};
use super::load::drive;
use super::report::{Line, figure};
use crate::project::{self, Result};
use std::sync::Arc;

pub fn run(effort: Effort) -> Result<Vec<Line>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let runtime = house::runtime()?;
    let span = effort.span();
    // Reads never wait for each other, so more callers than cores would only take turns.
    let callers = std::thread::available_parallelism()?.get();
    let ledger = directory.path().join("ledger.db");
    let table = directory.path().join("bare.db");
    let known = guarded(&runtime, &ledger, NamedBy::Key, Mark::Made, super::CALLERS, span)?.calls;
    let bare_known = group_commit(&runtime, BareTable::open(&table)?, Order::Hash, super::CALLERS, span).calls;
    // The smaller of both, so that neither has the smaller tree.
    let known = known.min(bare_known);
    let bare = point_reads(&table, known, callers, span)?;
    let house = Arc::new(House::open(&ledger)?);
    let before = house.durable_commits();
    let asked = Arc::clone(&house);
    let mut load = drive(&runtime, callers, span, move |n| {
        let house = Arc::clone(&asked);
        async move {
            let intent = house.intent(NamedBy::Key, "busy", scattered(7, n, known));
            house.replay(&intent).await;
        }
    });
    let commits = house.durable_commits() - before;
    let made_of = format!(
        "{} replays/s, p50 {} us, CPU {} us; {} bare reads/s; {known} effects",
        figure(load.per_second()),
        figure(load.times.median()),
        figure(load.cpu_micros()),
        figure(bare)
    );
    Ok(vec![
        Line::plain("durable commits of all replays", commits as f64, "", format!("{} replays", load.calls))
            .at_most(0.0, None),
        Line::plain("replays / bare point reads", load.per_second() / bare, "", made_of).at_least(0.5, None),
    ])
}
