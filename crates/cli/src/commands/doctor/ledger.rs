//! The parts of every ledger, in a file or on a server: engine, contents, and answers that wait on this host.

use super::{CLOCK_SLACK, Checks};
use crate::context::Context;
use crate::output::{RESTORE, counted, ledger_hint};
use crate::unread_effects;
use semel_core::effect::State;
use semel_core::ids::EffectId;
use semel_core::time::At;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::Ledger;
use semel_ledger::store::{By, PAGE_ROWS_MAX};
use std::time::Duration;

/// So many are named; whoever restores a backup needs no more.
const NAMED_MAX: usize = 20;

/// The engine: its version, what it keeps, and its clock.
pub fn engine(checks: &mut Checks, ledger: &Ledger, clock: &SystemClock) {
    let facts = match block_on(ledger.store().describe(clock.now())) {
        Ok(facts) => facts,
        Err(error) => return checks.fail("engine", error.to_string(), ledger_hint(&error)),
    };
    checks.ok("engine", facts.server);
    checks.ok("persistence", facts.persistence);
    match ledger.store().is_durable() {
        true => checks.ok("durability", facts.durability),
        false => {
            checks.warn("durability", facts.durability, "every answer says best_effort until that is changed")
        }
    }
    let Some(ahead) = facts.clock_ahead_ms else { return };
    let word = if ahead < 0 { "behind" } else { "ahead of" };
    let detail = match ahead.unsigned_abs() {
        // Some servers tell whole seconds alone.
        0..1000 => "the server's clock is within a second of this host's".to_owned(),
        ms => format!("the server's clock is {ms} ms {word} this host's"),
    };
    match u128::from(ahead.unsigned_abs()) > CLOCK_SLACK.as_millis() {
        true => {
            checks.warn("clock skew", detail, "set both by NTP: ages and deadlines are judged by this host's")
        }
        false => checks.ok("clock skew", detail),
    }
}

/// The middle of several times.
pub fn latency(checks: &mut Checks, what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    checks.ok("latency", format!("the durable write of {what} takes {:.1?}", times[times.len() / 2]));
}

/// Answers that the ledger could not take, as long as they wait here.
pub fn spooled(checks: &mut Checks, ledger: &Ledger) {
    match ledger.spooled() {
        Err(error) => checks.fail("spool", error.to_string(), ledger_hint(&error)),
        Ok(found) => {
            if !found.waiting.is_empty() {
                checks.warn(
                    "spool",
                    waits(found.waiting.len()),
                    "the next semel run or semel serve imports them",
                );
            }
            for file in found.damaged {
                let detail = format!("{} is damaged; the call that it answers is in doubt", file.display());
                checks.fail(
                    "spool",
                    detail,
                    Some("rule on it (semel ledger), then remove the file".to_owned()),
                );
            }
        }
    }
}

/// Whether every record can be read.
pub fn records(checks: &mut Checks, ledger: &Ledger) {
    match damaged(ledger) {
        Ok(damaged) if damaged.is_empty() => checks.ok("records", "every one can be read"),
        Ok(damaged) => {
            let names: Vec<String> = damaged.iter().take(NAMED_MAX).map(ToString::to_string).collect();
            let more = if damaged.len() > NAMED_MAX { ", …" } else { "" };
            let records = counted(damaged.len(), "record", "records");
            let detail = format!("{records} cannot be read: {}{more}", names.join(", "));
            let hint =
                format!("their calls are in doubt, the others go on: semel ledger resolve, or {RESTORE}");
            checks.fail("records", detail, Some(hint));
        }
        Err(error) => checks.fail("records", error.to_string(), ledger_hint(&error)),
    }
}

/// Every effect whose record cannot be read.
fn damaged(ledger: &Ledger) -> Result<Vec<EffectId>, semel_ledger::Error> {
    let (mut damaged, mut after) = (Vec::new(), None);
    loop {
        let page = block_on(ledger.listing(By::All, after, PAGE_ROWS_MAX))?;
        damaged.extend(page.damaged);
        match page.next {
            None => return Ok(damaged),
            next => after = next,
        }
    }
}

pub fn waits(count: usize) -> String {
    format!("{} on this host for the ledger", counted(count, "answer waits", "answers wait"))
}

pub fn contents(checks: &mut Checks, context: &Context, ledger: &Ledger, now: At) -> anyhow::Result<()> {
    match block_on(ledger.epoch())?.1 {
        Some(epoch) if epoch.forgotten_before(now).is_some() => {
            let detail =
                format!("{} since {}: {}; unseen intents are held", epoch.number, epoch.since, epoch.reason);
            checks.warn("epoch", detail, "if nothing older will be retried: semel ledger end-quarantine");
        }
        Some(epoch) => checks.ok("epoch", format!("{}, nothing is held for it", epoch.number)),
        None => checks.ok("epoch", "1"),
    }
    // Not observed: finding out who is dead would tidy their lock files away.
    let (mut in_doubt, mut in_flight, mut after) = (0, 0, None);
    loop {
        let page = block_on(ledger.listing(By::Open, after, PAGE_ROWS_MAX))?;
        for (_, known) in page.items {
            match known.effect.state {
                State::InDoubt(_) => in_doubt += 1,
                _ => in_flight += 1,
            }
        }
        match page.next {
            None => break,
            next => after = next,
        }
    }
    let detail = format!("{in_doubt} in doubt, {in_flight} recorded as in flight");
    match in_doubt {
        0 => checks.ok("open effects", detail),
        _ => checks.warn("open effects", detail, "semel ledger"),
    }
    // A policy that cannot be read is said elsewhere.
    if let Ok(policy) = context.policy() {
        if let Some(unread) = unread_effects::sentence(unread_effects::count(ledger, &policy)?) {
            checks.warn("policy", unread, "semel ledger");
        }
        super::notify::examine(checks, context, ledger, &policy)?;
    }
    match block_on(ledger.newest_line())? {
        Some((_, line)) if line.at > now.plus(CLOCK_SLACK) => {
            let detail = format!("the journal's newest line is from {}, which is in the future", line.at);
            checks.warn(
                "clock",
                detail,
                "was the clock set back? deadlines and ages are wrong until it catches up",
            );
        }
        _ => checks.ok("clock", now.to_string()),
    }
    Ok(())
}
