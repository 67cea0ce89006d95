//! Puts the parts together: ledger on SQLite, lock files, clock, gate.

use crate::config::Environment;
use semel_core::policy::Mode;
use semel_gate::Gate;
use semel_gate::clock::{Clock, SystemClock};
use semel_ledger::entropy::OsEntropy;
use semel_ledger::holders::FileHolders;
use semel_ledger::place::Place;
use semel_ledger::sqlite::{OpenOptions, OpenedStore, SqliteStore};
use semel_ledger::{Error, Ledger};
use std::path::Path;
use std::sync::Arc;

/// The tenant of everything on this machine's own ledger. There is no credential to take one from.
pub const TENANT: &str = "local";

/// Opens the ledger for a command: no thread, no runtime.
pub fn ledger(file: &Path, environment: &Environment, clock: &SystemClock) -> Result<Ledger, Error> {
    open(options(file, environment, clock))
}

/// The ledger, if there is one: a command that only looks founds none. One that is gone while its secret is there is
/// opened all the same, because then it must be seen that it may have forgotten.
pub fn existing(
    file: &Path,
    environment: &Environment,
    clock: &SystemClock,
) -> Result<Option<Ledger>, Error> {
    if is_founded(&Place::at(file)) { ledger(file, environment, clock).map(Some) } else { Ok(None) }
}

/// A file that cannot be looked at counts as there: opening it then says why.
pub fn is_founded(place: &Place) -> bool {
    let missing = |path: &Path| {
        path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    !missing(place.database()) || !missing(&place.secret_file())
}

/// The ledger for a command that must change nothing at all.
pub fn reading(file: &Path, environment: &Environment, clock: &SystemClock) -> Result<Ledger, Error> {
    open(OpenOptions { read_only: true, ..options(file, environment, clock) })
}

pub fn options(file: &Path, environment: &Environment, clock: &SystemClock) -> OpenOptions {
    let options = OpenOptions::at(Place::at(file), clock.now());
    OpenOptions { allow_network_fs: environment.allow_network_fs, blocking: true, ..options }
}

fn open(options: OpenOptions) -> Result<Ledger, Error> {
    let OpenedStore { store, secret, .. } = SqliteStore::open(options)?;
    let owners = store.place().owners();
    let holders = Arc::new(FileHolders::in_directory(owners));
    Ok(Ledger::new(Arc::new(store), holders, OsEntropy, secret))
}

pub fn gate(ledger: Ledger, clock: SystemClock, mode: Mode) -> Gate {
    Gate::new(ledger, clock, mode)
}
