//! Going through effects, each as it is now: what a dead process held is seen to be in doubt.

use crate::open::TENANT;
use crate::output::{Output, counted};
use semel_core::digest::Digest;
use semel_core::effect::Effect;
use semel_core::intent::run_key;
use semel_core::time::At;
use semel_gate::clock::block_on;
use semel_ledger::Ledger;
use semel_ledger::record::decode;
use semel_ledger::store::{By, Latest, PAGE_ROWS_MAX};
use std::ops::ControlFlow;

/// Which effects are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Which<'a> {
    pub run: Option<&'a str>,
    /// Only those that are in flight or in doubt.
    pub open: bool,
}

impl Which<'_> {
    fn is_of_run(&self, effect: &Effect) -> bool {
        self.run.is_none_or(|run| effect.facts.run.as_ref().is_some_and(|own| own.id == run))
    }
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
            if which.is_of_run(&effect) && take(key, effect)?.is_break() {
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

/// From the newest on, or from the first one before that effect. `take` ends it, so that most of a large ledger is never
/// read.
pub fn newest_first(
    ledger: &Ledger,
    which: Which<'_>,
    before: Option<&Effect>,
    now: At,
    mut take: impl FnMut(Digest, Effect) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<usize> {
    let of_run = |effect: &Effect| which.is_of_run(effect);
    let of = match which.run {
        // It is not found among the others.
        _ if before.is_some_and(|before| !of_run(before)) => Latest::All,
        _ if which.open && before.is_none() => Latest::Open,
        Some(run) if block_on(ledger.epoch())?.1.is_none() => {
            Latest::Run(run_key(ledger.secret(), TENANT, run))
        }
        _ => Latest::All,
    };
    let (mut damaged, mut from, mut is_reached) = (0, None, before.is_none());
    loop {
        let page = block_on(ledger.store().latest(of, from, PAGE_ROWS_MAX))?;
        for (_, row) in page.items {
            if !is_reached {
                is_reached = before.is_some_and(|before| before.id.0 == row.index.effect);
                continue;
            }
            let key = row.key;
            let known = decode(row);
            if known.effect.is_damaged() {
                damaged += 1;
            } else if of_run(&known.effect) && take(key, now_of(ledger, key, known.effect, now)?)?.is_break()
            {
                return Ok(damaged);
            }
        }
        match page.next {
            None => return Ok(damaged),
            next => from = next,
        }
    }
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
