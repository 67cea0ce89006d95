//! How soon a caller on another host has the answer that it waited for: another process, with a state directory of its
//! own, joins calls that this one holds.

use super::Engine;
use crate::Effort;
use crate::child::{self, BenchChild};
use crate::house::{self, House, KeySource, Slow};
use crate::measure::{self, Times};
use crate::report::{ReportLine, figure};
use semel_core::answer::OutcomeWord;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use xtask::project::{self, Result};

pub const PART: &str = "waking";

/// By then the other process waits. It looks by itself after 25, 75 and 175 ms, and a look must not pass for a message.
const WAITS_AFTER: Duration = Duration::from_millis(85);

pub fn run(engine: &dyn Engine, runtime: &Runtime, effort: Effort) -> Result<ReportLine> {
    let (here, there) =
        (tempfile::tempdir_in(project::scratch()?)?, tempfile::tempdir_in(project::scratch()?)?);
    let (address, rounds) = (engine.address("waking"), effort.count(40));
    let house = Arc::new(House::at(&address, here.path())?);
    let mut twin = BenchChild::new(PART, there.path(), &[&address, &rounds.to_string()])?.start()?;
    let mut settled = Vec::new();
    for n in 0..rounds {
        let mut slow = Slow::default();
        let (gates, own) = (Arc::clone(&slow.gates), Arc::clone(&house));
        let holder = runtime.spawn(async move {
            own.pass_to(&own.intent(KeySource::Key, PART, n as u64), &mut slow).await;
            measure::wall_micros()
        });
        runtime.block_on(gates.0.notified());
        twin.begin()?;
        measure::pause(WAITS_AFTER);
        gates.1.notify_one();
        settled.push(runtime.block_on(holder)?);
    }
    let found = twin.result()?;
    let answered = found["answered"].as_array().ok_or("the other process gave no times")?;
    let mut times = Times::default();
    for (answered, settled) in answered.iter().zip(settled) {
        if let Some(answered) = answered.as_f64() {
            times.add(Duration::from_secs_f64((answered - settled).max(0.0) / 1e6));
        }
    }
    let what = format!("{}: a waiter on another host wakes within, p50", engine.name());
    let made_of = format!("p90 {} ms; {rounds} calls", figure(times.micros(0.9) / 1e3));
    Ok(ReportLine::plain(what, times.median() / 1e3, " ms", made_of).at_most(5.0, None))
}

pub fn in_child(here: &Path, words: &[&str]) -> Result<Value> {
    let [address, rounds] = words else { return Err("an address and a number are needed".into()) };
    let house = House::at(address, here)?;
    let runtime = house::runtime()?;
    runtime.block_on(house.fresh(&house.intent(KeySource::Key, "twin", 0)));
    child::wait_for_begin()?;
    let mut answered = Vec::new();
    for n in 0..rounds.parse()? {
        if n > 0 {
            child::wait_for_word()?;
        }
        let passed = runtime.block_on(house.pass(&house.intent(KeySource::Key, PART, n)));
        // One that came too late has waited for nothing.
        let joined = passed.answer.outcome == OutcomeWord::Joined;
        answered.push(joined.then(measure::wall_micros));
    }
    Ok(json!({"answered": answered}))
}
