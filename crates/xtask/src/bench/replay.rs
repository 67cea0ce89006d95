//! Answers from the record: they write nothing, and should cost little more than the read.

use super::Effort;
use super::busy::{Mark, guarded};
use super::floor::{BareTable, Order, group_commit, point_reads, scattered};
use super::house::{self, House, NamedBy};
use super::load::{Load, drive};
use super::report::{Line, figure};
use crate::project::{self, Result};
use semel_core::intent::Intent;
use std::sync::Arc;

/// Intents that are built beforehand: enough to miss the processor's caches, few enough to hold.
const INTENTS_MAX: u64 = 20_000;

struct Asked {
    house: House,
    intents: Vec<Intent>,
}

pub fn run(effort: Effort) -> Result<Vec<Line>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let runtime = house::runtime()?;
    let span = effort.span();
    // Reads never wait for each other, so more callers than cores would only take turns.
    let callers = std::thread::available_parallelism()?.get();
    let ledger = directory.path().join("ledger.db");
    let table = directory.path().join("bare.db");
    let known = guarded(&runtime, &ledger, NamedBy::Key, Mark::Made, super::CALLERS, span)?.calls;
    let bare_known =
        group_commit(&runtime, BareTable::open(&table)?, Order::Hash, super::CALLERS, span).calls;
    // The smaller of both, so that neither has the smaller tree.
    let known = known.min(bare_known);
    let bare = point_reads(&table, known, callers, span)?;
    let house = House::open(&ledger)?;
    let intents = (0..known.min(INTENTS_MAX)).map(|n| house.intent(NamedBy::Key, "busy", n)).collect();
    // One handle: what the callers count together is counted with each replay.
    let asked = Arc::new(Asked { house, intents });
    let before = asked.house.durable_commits();
    let handle = Arc::clone(&asked);
    let mut passes = drive(&runtime, callers, span, move |n| {
        let asked = Arc::clone(&handle);
        async move {
            let intent = &asked.intents[scattered(7, n, asked.intents.len() as u64) as usize];
            asked.house.replay(intent).await;
        }
    });
    let handle = Arc::clone(&asked);
    let whole = drive(&runtime, callers, span, move |n| {
        let asked = Arc::clone(&handle);
        async move {
            let intent = asked.house.intent(NamedBy::Key, "busy", scattered(7, n, known));
            asked.house.replay(&intent).await;
        }
    });
    let commits = asked.house.durable_commits() - before;
    let made_of = |load: &Load| {
        let (rate, cpu) = (figure(load.per_second()), figure(load.cpu_micros()));
        format!("{rate} replays/s, CPU {cpu} us each; {} bare reads/s; {known} effects", figure(bare))
    };
    let latency = format!("; p50 {} us", figure(passes.times.median()));
    let replays = passes.calls + whole.calls;
    Ok(vec![
        Line::plain("durable commits of all replays", commits as f64, "", format!("{replays} replays"))
            .at_most(0.0, None),
        Line::plain(
            "replays / bare point reads",
            passes.per_second() / bare,
            "",
            made_of(&passes) + &latency,
        )
        .at_least(0.5, None),
        Line::plain("replays, intent included / the same", whole.per_second() / bare, "", made_of(&whole)),
    ])
}
