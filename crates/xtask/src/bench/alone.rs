//! One caller at a time: what a guarded call costs beside the two flushes that nobody can save.

use super::Effort;
use super::floor::{Appended, two_flushes};
use super::house::{self, House, NamedBy};
use super::measure::{Times, now};
use super::report::{Line, figure};
use crate::project::{self, Result};

/// Calls and flushes take turns in blocks of this many, so that both see the same machine.
const BLOCK: u64 = 50;

pub fn run(effort: Effort) -> Result<Vec<Line>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let house = House::open(&directory.path().join("ledger.db"))?;
    let mut appended = Appended::create(directory.path())?;
    let runtime = house::runtime()?;
    let (mut passes, mut marked, mut flushes, mut intents) =
        (Times::default(), Times::default(), Times::default(), Times::default());
    let blocks = effort.count(60) as u64;
    for n in 0..blocks * BLOCK {
        let started = now();
        let intent = house.intent(NamedBy::Key, "alone", n);
        intents.add(started.elapsed());
        let started = now();
        let passed = runtime.block_on(house.fresh(&intent));
        passes.add(started.elapsed());
        let delivery = passed.delivery.expect("a success can be delivered");
        let started = now();
        runtime.block_on(house.gate.delivered(&delivery))?;
        marked.add(started.elapsed());
        if n % BLOCK == BLOCK - 1 {
            for _ in 0..2 * BLOCK {
                flushes.add(appended.flush_one()?);
            }
        }
    }
    let floor = two_flushes(&mut flushes);
    let (pass, p99, mark) = (passes.median(), passes.micros(0.99), marked.median());
    let made_of = format!(
        "pass p50 {} us, p99 {} us; two 4 KiB fdatasyncs {} us; building the intent {} us",
        figure(pass),
        figure(p99),
        figure(floor),
        figure(intents.median())
    );
    let made_of_mark = format!("delivered mark p50 {} us, not flushed", figure(mark));
    Ok(vec![
        Line::plain("p50 of a call / two fdatasyncs", pass / floor, "", made_of).at_most(1.5, 1.2),
        Line::plain("the same with its delivered mark", (pass + mark) / floor, "", made_of_mark),
    ])
}
