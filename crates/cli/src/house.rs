//! Puts the parts together: ledger on SQLite, lock files, clock, gate.

use crate::config::Environment;
use semel_core::policy::Mode;
use semel_gate::Gate;
use semel_gate::clock::{Clock, SystemClock};
use semel_ledger::entropy::OsEntropy;
use semel_ledger::holders::FileHolders;
use semel_ledger::place::Place;
use semel_ledger::sqlite::{OpenOptions, Opened, SqliteStore};
use semel_ledger::{Error, Ledger};
use std::path::Path;

pub type LocalLedger = Ledger<SqliteStore, FileHolders, OsEntropy>;
pub type LocalGate = Gate<SqliteStore, FileHolders, OsEntropy, SystemClock>;

/// The tenant of everything on this machine's own ledger. There is no credential to take one from.
pub const TENANT: &str = "local";

/// Opens the ledger for a command: no thread, no runtime.
pub fn ledger(file: &Path, environment: &Environment, clock: &SystemClock) -> Result<LocalLedger, Error> {
    let place = Place::at(file);
    let options = OpenOptions {
        allow_network_fs: environment.allow_network_fs,
        blocking: true,
        ..OpenOptions::at(place, clock.now())
    };
    let Opened { store, secret, .. } = SqliteStore::open(options)?;
    let owners = store.place().owners();
    Ok(Ledger::new(store, FileHolders::in_directory(owners), OsEntropy, secret))
}

pub fn gate(ledger: LocalLedger, clock: SystemClock, mode: Mode) -> LocalGate {
    Gate::new(ledger, clock, mode)
}
