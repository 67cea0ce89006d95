//! A copy of the file that is one moment of it, while others go on.

use super::connection;
use super::fault::SqliteFault;
use super::open::{founding_lock, has_content};
use super::watermark;
use crate::Error;
use crate::copy::CopyMark;
use crate::failpoint::{self, InjectedError};
use crate::place::{Place, create_private};
use crate::small_records::cell_bytes;
use crate::store::{COPY_CELL, Revision};
use rusqlite::{Connection, OpenFlags, params};
use semel_core::digest::Secret;
use std::fs::{self, File};
use std::io::{self, ErrorKind};

/// Writes the ledger at `place` into a new file, with a mark that says that it is a backup. One read transaction sees one
/// moment, the WAL included, and hinders nobody who writes.
pub fn back_up(place: &Place, to: &Place, mark: &CopyMark) -> Result<(), Error> {
    // SQLite follows no links.
    let (place, to) = (&place.resolved()?, &to.resolved()?);
    let failed = |error: rusqlite::Error| SqliteFault::while_reading(place, &error);
    let cannot = |source: io::Error| to.cannot_open(source);
    // Its modes are ours to choose, and SQLite writes into a file that is empty.
    create_private(to.database()).map_err(cannot)?;
    let connection = connection::reader(place).map_err(failed)?;
    let name = to.database().to_str().ok_or_else(|| cannot(ErrorKind::InvalidFilename.into()))?;
    connection.execute("VACUUM INTO ?1", [name]).map_err(failed)?;
    let write = || -> rusqlite::Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let copy = Connection::open_with_flags(to.database(), flags)?;
        let body = cell_bytes(COPY_CELL, Revision(1), mark);
        let put = "INSERT OR REPLACE INTO cell(key, revision, nonce, body) VALUES(?1, 1, zeroblob(16), ?2)";
        copy.execute(put, params![COPY_CELL.0, body]).map(|_| ())
    };
    write().map_err(|error| SqliteFault::while_opening(to, &error))?;
    File::open(to.database()).and_then(|file| file.sync_all()).map_err(cannot)
}

/// A ledger that is built beside a place, and takes it once it is whole. Meanwhile nobody founds another one there.
#[derive(Debug)]
pub struct Replacement {
    place: Place,
    partial: Place,
    turn: File,
}

impl Replacement {
    pub fn begin(place: &Place, allow_network_fs: bool) -> Result<Replacement, Error> {
        place.prepare(allow_network_fs)?;
        let place = place.resolved()?;
        let turn = founding_lock(&place).map_err(|source| place.cannot_open(source))?;
        let partial = Place::at(place.database().with_added_extension("restoring"));
        // Of one that was killed.
        partial.remove();
        Ok(Replacement { place, partial, turn })
    }

    /// Where it is built.
    pub fn partial(&self) -> &Place {
        &self.partial
    }

    /// Gives it its place. A ledger that is there moves away, to a name under which it can still be opened; returns
    /// where that is. At every moment the place has a whole ledger, or a secret without a database, which is noticed.
    pub fn finish(self, name: &str) -> Result<Option<Place>, Error> {
        let Replacement { place, partial, turn } = &self;
        let cannot = |source: io::Error| place.cannot_open(source);
        let cut_short = |injected: InjectedError| Error::NotWritten { what: injected.to_string() };
        let secret =
            partial.secret()?.ok_or_else(|| Error::SecretMissing { path: partial.database().to_owned() })?;
        if fs::metadata(partial.wal()).is_ok_and(|wal| wal.len() > 0) {
            let what = "the log of the new database was not folded into it; nothing was replaced".to_owned();
            return Err(Error::NotWritten { what });
        }
        File::open(partial.database()).and_then(|file| file.sync_all()).map_err(cannot)?;
        let aside = set_aside(place, name).map_err(cannot)?;
        failpoint::hit("restore.after_aside").map_err(cut_short)?;
        // The mark was that of the other ledger.
        watermark::write(turn, 0).map_err(cannot)?;
        place.replace_secret(&secret).map_err(cannot)?;
        failpoint::hit("restore.after_secret").map_err(cut_short)?;
        partial.move_to(place)?;
        Ok(aside)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        self.partial.remove();
    }
}

/// Moves a ledger away; its secret also stays. The WAL goes first: without it a database only lacks its newest commits,
/// which is noticed, while a new one would take it for its own.
fn set_aside(place: &Place, name: &str) -> io::Result<Option<Place>> {
    let unless_missing = |done: io::Result<()>| match done {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        done => Ok(done.is_ok()),
    };
    let aside = Place::at(place.database().with_added_extension(name));
    if place.database().symlink_metadata().is_ok() {
        unless_missing(fs::hard_link(place.secret_file(), aside.secret_file()))?;
    }
    unless_missing(fs::rename(place.wal(), aside.wal()))?;
    unless_missing(fs::rename(place.shm(), aside.shm()))?;
    let moved = unless_missing(fs::rename(place.database(), aside.database()))?;
    place.sync_directory()?;
    Ok(moved.then_some(aside))
}

impl Place {
    /// Whether there is a database file with anything in it.
    pub fn has_database(&self) -> Result<bool, Error> {
        has_content(self)
    }

    /// Makes this the secret of the ledger here. One that is there stays.
    pub fn keep_secret(&self, secret: &Secret) -> Result<(), Error> {
        self.publish_secret(secret).map_err(|source| self.cannot_open(source))
    }

    /// Gives a finished database file its name, which nothing may have yet. What SQLite and its processes kept beside it
    /// goes.
    pub fn move_to(&self, to: &Place) -> Result<(), Error> {
        let cannot = |source: io::Error| to.cannot_open(source);
        fs::hard_link(self.database(), to.database()).map_err(cannot)?;
        to.sync_directory().map_err(cannot)?;
        self.remove();
        Ok(())
    }

    /// Removes all files of a ledger that nobody needs. What cannot be removed takes room.
    pub fn remove(&self) {
        let files =
            [self.database().to_owned(), self.wal(), self.shm(), self.secret_file(), self.lock_file()];
        for file in files {
            let _left = fs::remove_file(file);
        }
        let _left = fs::remove_dir_all(self.owners());
    }
}
