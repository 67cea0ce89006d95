//! Answers from the record: they write nothing, and should cost little more than the read.

use super::Effort;
use super::baseline::{BareTable, KeyOrder, group_commit, key, scattered};
use super::busy::{Mark, guarded};
use super::house::{self, House, KeySource, REPLY_BYTES};
use super::measure::time;
use super::report::{ReportLine, figure};
use super::turns::{BATCH, ReadResult, in_turns};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use xtask::project::{self, Result};

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let runtime = house::runtime()?;
    let span = effort.span();
    // Reads never wait for each other, so more callers than cores would only take turns.
    let callers = std::thread::available_parallelism()?.get();
    let ledger = directory.path().join("ledger.db");
    let table = directory.path().join("bare.db");
    let known = guarded(&runtime, &ledger, KeySource::Key, Mark::Made, super::CALLERS, span)?.calls;
    let bare_known =
        group_commit(&runtime, BareTable::open(&table)?, KeyOrder::Hash, super::CALLERS, span).calls;
    // The smaller of both, so that neither has the smaller tree.
    let known = known.min(bare_known);
    let tables = (0..callers).map(|_| BareTable::open(&table).map(Mutex::new)).collect::<Result<Vec<_>>>()?;
    let house = House::open(&ledger)?;
    let before = house.durable_commits();
    let asked = |thread: usize, batch: u64| {
        (0..BATCH).map(move |n| scattered(thread as u64, batch * BATCH + n, known))
    };
    let intent = |n| house.intent(KeySource::Key, "busy", n);
    let [bare, passes, whole] = in_turns(
        callers,
        span,
        [
            &|thread, batch| {
                let table = tables[thread].lock().expect("no reader panics");
                let read = |n| table.result(&key(KeyOrder::Hash, n)).expect("every key is there").len();
                time(|| asked(thread, batch).for_each(|n| assert_eq!(read(n), REPLY_BYTES))).1
            },
            // As a door passes them: derived a moment ago.
            &|thread, batch| {
                let intents: Vec<_> = asked(thread, batch).map(intent).collect();
                time(|| intents.iter().for_each(|intent| drop(at_once(house.replay(intent))))).1
            },
            &|thread, batch| {
                time(|| asked(thread, batch).for_each(|n| drop(at_once(house.replay(&intent(n)))))).1
            },
        ],
    );
    let commits = house.durable_commits() - before;
    let made_of = |read: &ReadResult| {
        let (rate, each) = (figure(read.per_second()), figure(read.micros()));
        let bare = figure(bare.per_second());
        format!("{rate} replays/s, {each} us each; {bare} bare reads/s; {known} effects")
    };
    let replays = passes.count + whole.count;
    Ok(vec![
        ReportLine::plain("durable commits of all replays", commits as f64, "", format!("{replays} replays"))
            .at_most(0.0, None),
        ReportLine::plain(
            "replays / bare point reads",
            passes.per_second() / bare.per_second(),
            "",
            made_of(&passes),
        )
        .at_least(0.5, None),
        ReportLine::plain(
            "replays, intent included / the same",
            whole.per_second() / bare.per_second(),
            "",
            made_of(&whole),
        ),
    ])
}

/// An answer from the record waits for nobody.
fn at_once<T>(answer: impl Future<Output = T>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answered) => answered,
        Poll::Pending => panic!("an answer from the record had to wait"),
    }
}
