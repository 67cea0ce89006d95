//! Going through effects, each as it is now: what a dead process held is seen to be in doubt.

use crate::open::TENANT;
use crate::output::{Output, counted};
use semel_core::digest::Digest;
use semel_core::effect::Effect;
use semel_core::intent::run_key;
use semel_core::time::At;
use semel_gate::clock::block_on;
use semel_ledger::Ledger;
use semel_ledger::store::{By, PAGE_ROWS_MAX};
use std::ops::ControlFlow;

/// Which effects are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Which<'a> {
    pub run: Option<&'a str>,
    /// Only those that are in flight or in doubt.
    pub open: bool,
}

/// In order of insertion, so the oldest first. What cannot be read is passed over; returns how much that was.
pub fn effects(
    ledger: &Ledger,
    which: Which<'_>,
    now: At,
    mut take: impl FnMut(Digest, Effect) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<usize> {
    let by = match which.run {
        _ if which.open => By::Open,
        // A run is found by a digest under the ledger's secret. After an epoch that may be another secret.
        Some(run) if block_on(ledger.epoch())?.1.is_none() => By::Run(run_key(ledger.secret(), TENANT, run)),
        _ => By::All,
    };
    let (mut damaged, mut after) = (0, None);
    'pages: loop {
        let page = block_on(ledger.listing(by, after, PAGE_ROWS_MAX))?;
        damaged += page.damaged.len();
        for (key, known) in page.items {
            let effect = now_of(ledger, key, known.effect, now)?;
            let in_run = |run: &str| effect.facts.run.as_ref().is_some_and(|own| own.id == run);
            if which.run.is_none_or(in_run) && take(key, effect)?.is_break() {
                break 'pages;
            }
        }
        match page.next {
            None => break,
            next => after = next,
        }
    }
    Ok(damaged)
}

/// A list that has left something out says so.
pub fn say_left_out(output: Output, damaged: usize) {
    if damaged > 0 {
        let records = counted(damaged, "record", "records");
        output.warn(format_args!(
            "semel: left out: {records} that cannot be read; semel doctor --full names what is damaged"
        ));
    }
}

/// An effect after what time and death have done to it. Only the newest of a record can be open.
pub fn now_of(ledger: &Ledger, key: Digest, effect: Effect, now: At) -> anyhow::Result<Effect> {
    if !effect.is_open() {
        return Ok(block_on(ledger.with_undone(effect))?);
    }
    let newest = block_on(ledger.observe(key, now))?.newest.map(|known| known.effect.clone());
    Ok(newest.filter(|newest| newest.id == effect.id).unwrap_or(effect))
}
