//! A ledger in a file: its directory, disk, pages and lock files.

use super::ledger::{contents, engine, latency, records, spooled};
use super::{CLAIMS_TIMED, Checks};
use crate::context::Context;
use crate::output::{RESTORE, hint, ledger_hint};
use rustix::fs::Access;
use semel::ledger_address::{LedgerAddress, Purpose};
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::place::Place;
use semel_ledger::sqlite;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Below the first a busy ledger fills the disk within days, below the second a single reply may.
const FREE_BYTES_LOW: u64 = 256 * 1024 * 1024;
const FREE_BYTES_OUT: u64 = 8 * 1024 * 1024;

/// One claim in SQLite's log: a few pages.
const CLAIM_BYTES: usize = 16 * 1024;

pub fn examine(context: &Context, checks: &mut Checks, place: &Place, full: bool) {
    // In another directory it would begin with an empty ledger.
    let is_founded = LedgerAddress::File(place.database().to_owned()).is_founded();
    directory(checks, place.directory(), is_founded);
    database(context, checks, place, full);
    owners(checks, &place.owners());
}

/// Where this host keeps the ledger, or its own part of one.
pub fn directory(checks: &mut Checks, directory: &Path, has_ledger: bool) {
    let shown = directory.display();
    let there = directory.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let writable = rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let hint = || Some("set SEMEL_STATE_DIR to a directory of your own".to_owned());
    match directory.metadata() {
        Ok(found) if !found.is_dir() => {
            checks.fail("state directory", format!("{shown} is not a directory"), hint())
        }
        Ok(_) if !writable && has_ledger => {
            let hint =
                format!("make it writable again: what was done is known by the ledger in {shown} alone");
            checks.fail("state directory", format!("{shown} cannot be written"), Some(hint));
        }
        Ok(_) if !writable => checks.fail("state directory", format!("{shown} cannot be written"), hint()),
        Ok(found) => checks.ok("state directory", format!("{shown} (mode {:o})", found.mode() & 0o777)),
        Err(_) if writable => {
            checks.ok("state directory", format!("{shown} is not there yet; it can be made"))
        }
        Err(_) => checks.fail("state directory", format!("{shown} is not there and cannot be made"), hint()),
    }
    let Ok(disk) = rustix::fs::statvfs(there) else { return };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let detail = format!("{} MiB free", free / (1024 * 1024));
    match free {
        FREE_BYTES_LOW.. => checks.ok("disk", detail),
        FREE_BYTES_OUT.. => {
            checks.warn("disk", detail, "with a full disk every effect is refused; make room")
        }
        _ => checks.fail(
            "disk",
            detail,
            Some("make room: with a full disk every effect is refused".to_owned()),
        ),
    }
}

fn database(context: &Context, checks: &mut Checks, place: &Place, full: bool) {
    let database = place.database();
    if !LedgerAddress::File(place.database().to_owned()).is_founded() {
        checks.ok("engine", format!("SQLite {}", sqlite::version()));
        checks.ok("ledger", format!("{} is not there yet; the first semel run makes it", database.display()));
        return;
    }
    if database.symlink_metadata().is_err() {
        let detail = format!("{} is gone while its secret is there", database.display());
        checks.warn(
            "ledger",
            detail,
            "restore it from your backup; otherwise the next command starts a new epoch",
        );
        return;
    }
    // That it is missing or not to be trusted is said by the ledger, which then does not open.
    if let Ok(Some(_)) = place.secret() {
        checks.ok("secret", place.secret_file().display().to_string());
    }
    let address = LedgerAddress::File(database.to_owned());
    let ledger = match address.open(&context.environment.settings, &SystemClock::start(), Purpose::Reading) {
        Ok(ledger) => ledger,
        Err(error) => {
            checks.fail("ledger", error.to_string(), ledger_hint(&error));
            return;
        }
    };
    checks.ok("ledger", format!("{} (format {})", database.display(), sqlite::FORMAT));
    let clock = SystemClock::start();
    engine(checks, &ledger, &clock);
    disk_latency(checks, place.directory(), &clock);
    spooled(checks, &ledger);
    if let Err(error) = contents(checks, context, &ledger, clock.now()) {
        checks.fail("ledger", format!("{error:#}"), hint(&error));
    }
    if full {
        match block_on(ledger.store().check()) {
            Ok(complaints) if complaints.is_empty() => checks.ok("integrity", "every page and index agrees"),
            Ok(complaints) => {
                checks.fail("integrity", complaints.join("; "), Some(RESTORE.to_owned()));
            }
            Err(error) => checks.fail("integrity", error.to_string(), ledger_hint(&error)),
        }
        records(checks, &ledger);
    }
}

/// A claim waits for one write to the disk. The ledger itself stays as it is.
fn disk_latency(checks: &mut Checks, directory: &Path, clock: &SystemClock) {
    let timed = || -> std::io::Result<Vec<Duration>> {
        let mut file = tempfile::tempfile_in(directory)?;
        let mut times = Vec::new();
        for _ in 0..CLAIMS_TIMED {
            let begun = clock.elapsed();
            file.write_all(&[0; CLAIM_BYTES])?;
            file.sync_data()?;
            times.push(clock.elapsed().saturating_sub(begun));
        }
        Ok(times)
    };
    match timed() {
        Ok(times) => latency(checks, "a claim", times),
        Err(error) => checks.fail("latency", format!("nothing can be written here: {error}"), None),
    }
}

fn owners(checks: &mut Checks, owners: &Path) {
    let Ok(found) = owners.symlink_metadata() else {
        checks.ok("owners", "no process has claimed anything yet");
        return;
    };
    let shown = owners.display();
    let mine = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_dir() || !mine || found.mode() & 0o022 != 0 {
        let detail =
            format!("{shown} is not a directory that only you can write (mode {:o})", found.mode() & 0o777);
        checks.fail("owners", detail, Some(format!("chmod 700 {shown}")));
        return;
    }
    match owners.read_dir() {
        Ok(entries) => checks.ok("owners", format!("{shown}, {} lock files", entries.count())),
        Err(error) => checks.fail("owners", format!("{shown}: {error}"), Some(format!("chmod 700 {shown}"))),
    }
}
