//! Answers from the record: they write nothing, and should cost little more than the read.

use super::Effort;
use super::busy::{Mark, guarded};
use super::floor::{BareTable, Order, group_commit, key, scattered};
use super::house::{self, House, NamedBy, REPLY_BYTES};
use super::report::{Line, figure};
use super::turns::{Read, in_turns};
use crate::project::{self, Result};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

/// Intents that are built beforehand: enough to miss the processor's caches, few enough to hold.
const INTENTS_MAX: u64 = 20_000;

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
    let tables = (0..callers).map(|_| BareTable::open(&table).map(Mutex::new)).collect::<Result<Vec<_>>>()?;
    let house = House::open(&ledger)?;
    let intents: Vec<_> =
        (0..known.min(INTENTS_MAX)).map(|n| house.intent(NamedBy::Key, "busy", n)).collect();
    let before = house.durable_commits();
    let [bare, passes, whole] = in_turns(
        callers,
        span,
        [
            &|thread, n| {
                let table = tables[thread].lock().expect("no reader panics");
                let key = key(Order::Hash, scattered(thread as u64, n, known));
                assert_eq!(table.result(&key).expect("every key is there").len(), REPLY_BYTES);
            },
            &|thread, n| {
                let intent = &intents[scattered(thread as u64, n, intents.len() as u64) as usize];
                at_once(house.replay(intent));
            },
            &|thread, n| {
                let intent = house.intent(NamedBy::Key, "busy", scattered(thread as u64, n, known));
                at_once(house.replay(&intent));
            },
        ],
    );
    let commits = house.durable_commits() - before;
    let made_of = |read: &Read| {
        let (rate, cpu) = (figure(read.per_second()), figure(read.cpu_micros()));
        let bare = figure(bare.per_second());
        format!("{rate} replays/s, CPU {cpu} us each; {bare} bare reads/s; {known} effects")
    };
    let replays = passes.count + whole.count;
    Ok(vec![
        Line::plain("durable commits of all replays", commits as f64, "", format!("{replays} replays"))
            .at_most(0.0, None),
        Line::plain(
            "replays / bare point reads",
            passes.per_second() / bare.per_second(),
            "",
            made_of(&passes),
        )
        .at_least(0.5, None),
        Line::plain(
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
