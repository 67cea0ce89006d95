//! Puts the parts together: ledger, clock, gate.

use semel_core::policy::Mode;
use semel_gate::Gate;
use semel_gate::clock::SystemClock;
use semel_ledger::Ledger;

/// The tenant of everything on this machine's own ledger. There is no credential to take one from.
pub const TENANT: &str = "local";

pub fn gate(ledger: Ledger, clock: SystemClock, mode: Mode) -> Gate {
    Gate::new(ledger, clock, mode)
}
