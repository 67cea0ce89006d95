//! The ledger behind `SEMEL_SERVER`: whether it is reached, whom it takes us for, and its clock.

use super::{CLOCK_SLACK, Checks};
use crate::server_runtime;
use semel_core::policy::Mode;
use semel_core::time::At;
use semel_doors::remote_gate::{RemoteGate, ServerAccess, ServerTrouble};
use semel_gate::clock::{Clock, SystemClock};
use std::sync::Arc;

pub fn examine(checks: &mut Checks, access: ServerAccess) {
    let runtime = match server_runtime::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return checks.fail("server", error.to_string(), None),
    };
    let clock = SystemClock::start();
    let gate = RemoteGate::new(access, Arc::new(clock.clone()), Mode::Guard);
    let (began, from) = (clock.elapsed(), clock.now());
    let whoami = match runtime.block_on(gate.whoami()) {
        Ok(whoami) => whoami,
        Err(ServerTrouble::Away(why)) => {
            return checks.fail("server", why, Some("without it effects are refused, and reads pass".into()));
        }
        Err(ServerTrouble::Setting(why)) => return checks.fail("server", why, None),
    };
    let took = clock.elapsed().saturating_sub(began);
    let detail = format!("{} answers in {} ms (semel {})", gate.access, took.as_millis(), whoami.version);
    checks.ok("server", detail);
    let token = format!("scope {}, tenant {}, {}", whoami.scope, whoami.tenant, whoami.principal);
    match whoami.scope.as_str() {
        "agent" => checks.ok("token", token),
        _ => checks.warn("token", token, "give agents a token of scope agent: this one may rule on doubts"),
    }
    let Some(theirs) = At::parse(&whoami.time) else { return };
    let apart = |one: At, other: At| one.since(other).max(other.since(one));
    // The answer was written between these two moments.
    let apart = apart(theirs, from).min(apart(theirs, clock.now()));
    let detail = format!("{} ms from the server's", apart.as_millis());
    match apart > CLOCK_SLACK + took {
        false => checks.ok("clock", detail),
        true => checks.warn("clock", detail, "deadlines go by the server's clock; set this machine's"),
    }
}
