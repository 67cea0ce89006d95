//! The ledger that this host last used at a server's address, and how far it had come. A server that comes back without its
//! data looks like a new one, and one with older data like itself: every call that it has forgotten would run again.

use crate::Error;
use crate::ledger::{Ledger, RecordSnapshot};
use crate::place::{create_private_directory, replace_private};
use crate::store::Revision;
use semel_core::digest::Digest;
use semel_core::time::At;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

const OTHER: &str =
    "the server had another ledger before: it lost its data, or another server answers at its address";

const OLDER: &str = "the ledger has less than this host has seen of it: older data was put back";

/// How far a ledger has come. Within an epoch the numbers of its engine only rise; an epoch is begun after each loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) epoch: Revision,
    pub(crate) number: u64,
}

/// The position behind the last durable commit of this process, or of any process of this host. It may lag behind, which
/// costs a detection, and never runs ahead, which would be a false alarm.
#[derive(Debug, Default)]
pub(crate) struct KnownPosition(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    position: Position,
    file: Option<KnownFile>,
}

#[derive(Debug)]
struct KnownFile {
    file: File,
    ledger: Digest,
}

/// A check value, and two numbers of the same width whatever they are: it is overwritten in place.
const FILE_BYTES: usize = 64 + 1 + 20 + 1 + 20 + 1;

impl KnownPosition {
    pub(crate) fn read(&self) -> Position {
        self.lock().read()
    }

    pub(crate) fn raise(&self, to: Position) {
        let mut known = self.lock();
        if to > known.read() {
            known.write(to);
        }
    }

    /// After a loss that has its epoch.
    fn lower(&self, to: Position) {
        self.lock().write(to);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn read(&self) -> Position {
        self.file.as_ref().and_then(KnownFile::read).unwrap_or(self.position)
    }

    fn write(&mut self, position: Position) {
        self.position = position;
        if let Some(KnownFile { file, ledger }) = &self.file {
            // One that is not written lags behind.
            let _lags = file.write_all_at(text(*ledger, position).as_bytes(), 0);
        }
    }
}

impl KnownFile {
    fn read(&self) -> Option<Position> {
        let mut bytes = [0; FILE_BYTES];
        self.file.read_exact_at(&mut bytes, 0).ok()?;
        let (ledger, position) = parse(std::str::from_utf8(&bytes).ok()?)?;
        (ledger == self.ledger).then_some(position)
    }
}

fn text(ledger: Digest, Position { epoch, number }: Position) -> String {
    format!("{ledger} {:020} {number:020}\n", epoch.0)
}

fn parse(text: &str) -> Option<(Digest, Position)> {
    let mut words = text.split_whitespace();
    let ledger = Digest::parse(words.next()?)?;
    let mut number = || words.next()?.parse().ok();
    Some((ledger, Position { epoch: Revision(number()?), number: number()? }))
}

impl RecordSnapshot {
    pub(crate) fn reached(&self) -> Position {
        Position { epoch: self.epoch, number: self.position }
    }
}

impl Ledger {
    /// Finds a record in a ledger that has all that this host has seen of it. One that has less begins an epoch first.
    pub(crate) async fn find_whole(&self, key: Digest, now: At) -> Result<RecordSnapshot, Error> {
        // Before the read, which cannot have less than what was durable then.
        let known = self.known.read();
        let snapshot = self.find(key).await?;
        if snapshot.position == 0 || snapshot.reached() >= known {
            return Ok(snapshot);
        }
        self.bump_epoch_after(known.epoch, OLDER, now).await?;
        let snapshot = self.find(key).await?;
        self.known.lower(Position { number: 0, ..snapshot.reached() });
        Ok(snapshot)
    }
}

/// Begins an epoch if `directory` remembers another ledger at this address, and remembers from now on how far this one
/// comes.
pub async fn check(ledger: &Ledger, directory: &Path, address: &str, now: At) -> Result<(), Error> {
    let path = file(directory, address);
    let cannot = |source| Error::Open { path: path.clone(), source };
    if ledger.store().is_newer() {
        return Ok(());
    }
    let is_known = match std::fs::read_to_string(&path) {
        Ok(known) => {
            let is_same = parse(&known).is_some_and(|(known, _)| known == check_value(ledger));
            if !is_same {
                // Another host may have been faster. Whatever the lost ledger knew is older than that epoch too.
                ledger.bump_epoch_for(OTHER, now).await?;
            }
            is_same
        }
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(cannot(error)),
    };
    if !is_known {
        remember(ledger, directory, address)?;
    }
    let file = OpenOptions::new().read(true).write(true).open(&path).map_err(cannot)?;
    ledger.known.lock().file = Some(KnownFile { file, ledger: check_value(ledger) });
    Ok(())
}

/// Remembers a ledger that was brought to this address on purpose.
pub fn remember(ledger: &Ledger, directory: &Path, address: &str) -> Result<(), Error> {
    let file = file(directory, address);
    let write = || -> io::Result<()> {
        create_private_directory(file.parent().unwrap_or(directory))?;
        replace_private(&file, text(check_value(ledger), Position::default()).as_bytes())
    };
    write().map_err(|source| Error::Open { path: file.clone(), source })
}

fn file(directory: &Path, address: &str) -> PathBuf {
    directory.join("ledgers").join(Digest::of(&[b"ledger address", address.as_bytes()]).to_string())
}

fn check_value(ledger: &Ledger) -> Digest {
    ledger.secret().check_value()
}
