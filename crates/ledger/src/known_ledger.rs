//! The ledger that this host last found at a server's address. A server that comes back without its data looks like a new
//! one: semel would found an empty ledger there, and every call would run again.

use crate::place::{create_private_directory, replace_private};
use crate::{Error, Ledger};
use semel_core::digest::Digest;
use semel_core::time::At;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

const REASON: &str =
    "the server had another ledger before: it lost its data, or another server answers at its address";

/// Begins an epoch if `directory` remembers another ledger at this address, and remembers the one that is there now.
pub async fn check(ledger: &Ledger, directory: &Path, address: &str, now: At) -> Result<(), Error> {
    let file = file(directory, address);
    let cannot = |source| Error::Open { path: file.clone(), source };
    let is = check_value(ledger);
    if ledger.store().is_newer() {
        return Ok(());
    }
    match fs::read_to_string(&file) {
        Ok(known) if known.trim_end() == is => return Ok(()),
        // Another host may have been faster. Whatever the lost ledger knew is older than that epoch too.
        Ok(_) => ledger.bump_epoch_for(REASON, now).await?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(cannot(error)),
    }
    remember(ledger, directory, address)
}

/// Remembers a ledger that was brought to this address on purpose.
pub fn remember(ledger: &Ledger, directory: &Path, address: &str) -> Result<(), Error> {
    let file = file(directory, address);
    let write = || -> io::Result<()> {
        create_private_directory(file.parent().unwrap_or(directory))?;
        replace_private(&file, format!("{}\n", check_value(ledger)).as_bytes())
    };
    write().map_err(|source| Error::Open { path: file.clone(), source })
}

fn file(directory: &Path, address: &str) -> PathBuf {
    directory.join("ledgers").join(Digest::of(&[b"ledger address", address.as_bytes()]).to_string())
}

fn check_value(ledger: &Ledger) -> String {
    ledger.secret().check_value().to_string()
}
