//! Opening a ledger, and founding one where there is none.

use super::fault::SqliteFault;
use super::group_commit::GroupCommit;
use super::poller::Poller;
use super::readers::Readers;
use super::schema::{self, Access};
use super::witness::KeyWitness;
use super::writer::{Writer, WriterParts};
use super::{SqliteStore, clock, connection, epoch, watermark};
use crate::Error;
use crate::failpoint::{self, InjectedError};
use crate::place::{Place, create_private};
use crate::small_records::{Epoch, cell_bytes};
use crate::store::{EPOCH_CELL, Revision};
use crate::waiters::Waiters;
use semel_core::digest::Secret;
use semel_core::time::At;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

/// A long WAL means fewer checkpoints (1.3 times the throughput of 4 MiB) and a slower first open after a crash.
const SERVER_CHECKPOINT_PAGES: u32 = 14_000;

/// A command is often the only process and then reads the whole WAL when it opens it: 1 MiB costs 0.6 ms, so it is
/// folded back early. Most commands then read little, and one in ten pays for it.
const COMMAND_CHECKPOINT_PAGES: u32 = 96;

/// A command reads the witness for its one call: some milliseconds for so many effects.
const COMMAND_WITNESS: usize = 100_000;

/// A server reads it once and keeps it, in about a hundred megabytes for so many.
const SERVER_WITNESS: usize = 4_000_000;

/// Founding takes milliseconds. Who waits longer waits for a stopped process.
const FOUNDING_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct OpenOptions {
    pub place: Place,
    /// Trust a network filesystem's locks and shared memory after all.
    pub allow_network_fs: bool,
    /// No future of this store is ever pending and no thread is started: for a command that polls each once.
    pub blocking: bool,
    /// Create and change nothing.
    pub read_only: bool,
    /// The secret of a ledger that is founded here as a copy of another one. Until the copy has its mark, it counts as
    /// one that was lost.
    pub copy_of: Option<Secret>,
    /// When a ledger that must be founded anew was found missing.
    pub now: At,
}

impl OpenOptions {
    pub fn at(place: Place, now: At) -> Self {
        OpenOptions { place, allow_network_fs: false, blocking: false, read_only: false, copy_of: None, now }
    }
}

#[derive(Debug)]
pub struct OpenedStore {
    pub store: SqliteStore,
    pub secret: Secret,
    pub past: LedgerPast,
}

/// The ledger's knowledge of the time before it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerPast {
    Kept,
    /// This call founded the ledger, secret and all: there is nothing that it could have forgotten.
    New,
    /// The secret was there and the database was not, or it has less than it had: claims may be forgotten, and a new
    /// epoch has begun.
    MayBeLost,
}

impl SqliteStore {
    /// Opens the ledger, or founds it where there is none.
    pub fn open(options: OpenOptions) -> Result<OpenedStore, Error> {
        open(options)
    }
}

fn open(options: OpenOptions) -> Result<OpenedStore, Error> {
    connection::refuse_old_sqlite()?;
    if options.read_only {
        return open_for_reading(&options);
    }
    options.place.prepare(options.allow_network_fs)?;
    let place = options.place.resolved()?;
    if has_content(&place)?
        && let Some(secret) = place.secret()?
    {
        let connection =
            connection::writer(&place).map_err(|error| SqliteFault::while_opening(&place, &error))?;
        if schema::recognise(&connection, &place, secret.check_value(), Access::Write)? {
            let past = past(&place, &connection, &options)?;
            return writing(place, connection, secret, past, &options);
        }
    }
    found(place, &options)
}

/// Under a lock, so that of several first processes exactly one founds the ledger. Tables first, then the secret,
/// then the tie between them: cut short anywhere, founding goes on where it stopped, and a secret that is found
/// without tables has lost its ledger.
fn found(place: Place, options: &OpenOptions) -> Result<OpenedStore, Error> {
    let turn = founding_lock(&place).map_err(|source| place.cannot_open(source))?;
    let failed = |error: rusqlite::Error| SqliteFault::while_opening(&place, &error);
    let before = place.secret()?;
    match create_private(place.database()) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(place.cannot_open(error)),
        _ => {}
    }
    let cut_short = |injected: InjectedError| Error::NotWritten { what: injected.to_string() };
    let connection = connection::writer(&place).map_err(failed)?;
    // Opening alone writes a header, so the file's length tells nothing.
    let had_tables = schema::has_tables(&connection).map_err(failed)?;
    failpoint::hit("found.before_tables").map_err(cut_short)?;
    if had_tables && before.is_none() && !schema::half_founded(&connection).unwrap_or(false) {
        return Err(Error::SecretMissing { path: place.database().to_owned() });
    }
    if let Some(secret) = &before
        && had_tables
        && schema::recognise(&connection, &place, secret.check_value(), Access::Write)?
    {
        // A faster process founded it while we waited for our turn.
        return writing(place, connection, secret.clone(), LedgerPast::Kept, options);
    }
    let reason = match (&before, &options.copy_of) {
        (Some(_), _) => Some("the ledger was gone while its secret was there"),
        (None, Some(_)) => Some("the ledger was to be a copy, which was not begun"),
        (None, None) => None,
    };
    let reason = reason.filter(|_| !had_tables);
    let lost = reason.is_some();
    let epoch = reason.map(|reason| Epoch::after(None, reason, options.now));
    let epoch = epoch.map(|epoch| cell_bytes(EPOCH_CELL, Revision(1), &epoch));
    schema::found(&connection, epoch.as_deref()).map_err(failed)?;
    // It had commits, and its log has lost them with the tie to its secret.
    let was_tied = before.is_some() && had_tables && watermark::read(&place) > 0;
    if was_tied {
        epoch::after_loss(&connection, options.now).map_err(failed)?;
    }
    // A mark that stays would only cost a false alarm.
    let _stays = watermark::write(&turn, schema::last_line(&connection).map_err(failed)?);
    failpoint::hit("found.after_tables").map_err(cut_short)?;
    if let (None, Some(secret)) = (&before, &options.copy_of) {
        place.publish_secret(secret).map_err(|source| place.cannot_open(source))?;
    }
    let secret = place.found_secret()?;
    failpoint::hit("found.after_secret").map_err(cut_short)?;
    schema::tie(&connection, secret.check_value()).map_err(failed)?;
    place.sync_directory().map_err(|source| place.cannot_open(source))?;
    let past = if lost || was_tied { LedgerPast::MayBeLost } else { LedgerPast::New };
    writing(place, connection, secret, past, options)
}

/// Whether it still has every commit that it is known to have had. If not, a new epoch begins at once.
fn past(
    place: &Place,
    connection: &rusqlite::Connection,
    options: &OpenOptions,
) -> Result<LedgerPast, Error> {
    let failed = |error: rusqlite::Error| SqliteFault::while_opening(place, &error);
    // The mark first: others may write on in between, and what was marked before must be there now.
    let is_behind = || -> Result<bool, Error> {
        let marked = watermark::read(place);
        Ok(schema::last_line(connection).map_err(failed)? < marked)
    };
    if !is_behind()? {
        return Ok(LedgerPast::Kept);
    }
    let turn = founding_lock(place).map_err(|source| place.cannot_open(source))?;
    if is_behind()? {
        let last = epoch::after_loss(connection, options.now).map_err(failed)?;
        // A process that finds the old mark again begins another epoch.
        let _stays = watermark::write(&turn, last);
        return Ok(LedgerPast::MayBeLost);
    }
    Ok(LedgerPast::Kept)
}

fn writing(
    place: Place,
    connection: rusqlite::Connection,
    secret: Secret,
    past: LedgerPast,
    options: &OpenOptions,
) -> Result<OpenedStore, Error> {
    let pages = if options.blocking { COMMAND_CHECKPOINT_PAGES } else { SERVER_CHECKPOINT_PAGES };
    let readers = Arc::new(Readers::new(place.clone()));
    let by = WriterParts { readers: Arc::clone(&readers), threads: !options.blocking };
    let writer = Writer::new(place.clone(), connection, pages, by, options.now)?;
    Ok(OpenedStore { store: store(place, Some(writer), readers, options.blocking, false), secret, past })
}

fn open_for_reading(options: &OpenOptions) -> Result<OpenedStore, Error> {
    let missing = || options.place.cannot_open(ErrorKind::NotFound.into());
    if !options.place.directory().exists() {
        return Err(missing());
    }
    options.place.prepare(options.allow_network_fs)?;
    let place = options.place.resolved()?;
    if !has_content(&place)? {
        return Err(missing());
    }
    let failed = |error: rusqlite::Error| SqliteFault::while_opening(&place, &error);
    let connection = connection::reader(&place).map_err(failed)?;
    // The tables before the secret: founding writes them in that order, and a ledger whose founding goes on in
    // another process is not there yet.
    let is_founded = schema::has_tables(&connection).map_err(failed)?
        && !schema::half_founded(&connection).unwrap_or(false);
    let Some(secret) = place.secret()? else {
        return Err(if is_founded {
            Error::SecretMissing { path: place.database().to_owned() }
        } else {
            missing()
        });
    };
    if !schema::recognise(&connection, &place, secret.check_value(), Access::Read)? {
        return Err(missing());
    }
    let is_newer = schema::is_newer(&connection).map_err(failed)?;
    let readers = Arc::new(Readers::new(place.clone()));
    let store = store(place, None, readers, options.blocking, is_newer);
    Ok(OpenedStore { store, secret, past: LedgerPast::Kept })
}

fn store(
    place: Place,
    writer: Option<Writer>,
    readers: Arc<Readers>,
    blocking: bool,
    is_newer: bool,
) -> SqliteStore {
    let waiters = Arc::new(Waiters::default());
    SqliteStore {
        lane: writer.map(|writer| Arc::new(GroupCommit::new(writer, Arc::clone(&waiters)))),
        poller: Poller::new(Arc::clone(&readers), Arc::clone(&waiters)),
        readers,
        waiters,
        witness: KeyWitness::of_newest(if blocking { COMMAND_WITNESS } else { SERVER_WITNESS }),
        blocking,
        is_newer,
        process: std::process::id(),
        place,
    }
}

/// An empty file is as good as none: that is how founding begins.
pub(super) fn has_content(place: &Place) -> Result<bool, Error> {
    match fs::symlink_metadata(place.database()) {
        Ok(found) => Ok(found.len() > 0),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(place.cannot_open(source)),
    }
}

pub(super) fn founding_lock(place: &Place) -> io::Result<File> {
    const NAP: Duration = Duration::from_millis(1);
    let file = place.open_or_create(&place.lock_file())?;
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if waited >= FOUNDING_WAIT => {
                return Err(io::Error::new(
                    ErrorKind::WouldBlock,
                    "another process holds ledger.lock and does not let go",
                ));
            }
            Err(TryLockError::WouldBlock) => {
                clock::sleep(NAP);
                waited += NAP;
            }
        }
    }
}
