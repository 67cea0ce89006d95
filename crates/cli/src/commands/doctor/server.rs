//! A ledger on a server: its settings, and how long a durable write takes on the path of a claim.

use super::file::directory;
use super::ledger::{contents, engine, latency, records, spooled, waits};
use super::{CLAIMS_TIMED, Checks};
use crate::context::Context;
use crate::output::{hint, ledger_hint};
use semel::ledger_address::{LedgerAddress, Purpose};
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::spool;
use std::time::Duration;

/// As many digits as people compare.
const ID_DIGITS: usize = 8;

pub fn examine(context: &Context, checks: &mut Checks, address: &LedgerAddress, full: bool) {
    directory(checks, &address.directory(), false);
    let clock = SystemClock::start();
    let ledger = match address.open(&context.environment.settings, &clock, Purpose::Command) {
        Ok(ledger) => ledger,
        Err(error) => {
            checks.fail("ledger", error.to_string(), ledger_hint(&error));
            return match spool::count(&address.spool()) {
                0 => {}
                waiting => {
                    checks.warn("spool", waits(waiting), "semel imports them when the ledger can be written")
                }
            };
        }
    };
    checks.ok("ledger", address.to_string());
    // The same on every host that shares it.
    checks.ok("ledger id", &ledger.secret().check_value().to_string()[..ID_DIGITS]);
    engine(checks, &ledger, &clock);
    spooled(checks, &ledger);
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..CLAIMS_TIMED {
        let begun = clock.elapsed();
        match block_on(ledger.prove_ready(clock.now())) {
            Ok(()) => times.push(clock.elapsed().saturating_sub(begun)),
            Err(error) => return checks.fail("write", error.to_string(), ledger_hint(&error)),
        }
    }
    latency(checks, "a claim", times);
    if let Err(error) = contents(checks, context, &ledger, clock.now()) {
        checks.fail("ledger", format!("{error:#}"), hint(&error));
    }
    if full {
        records(checks, &ledger);
    }
}
