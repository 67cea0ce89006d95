//! A copy of the file that is one moment of it, while others go on.

use super::connection;
use super::fault::SqliteFault;
use super::open::{founding_lock, has_content};
use crate::Error;
use crate::copy::CopyMark;
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

/// Moves a ledger away, to a name under which it can still be opened. Returns its new place. The WAL goes first: without
/// it a database only lacks its newest commits, which is noticed, while a new one would take it for its own.
pub fn set_aside(place: &Place, name: &str) -> Result<Place, Error> {
    let cannot = |source: io::Error| place.cannot_open(source);
    let _turn = founding_lock(place).map_err(cannot)?;
    let mut database = place.database().as_os_str().to_owned();
    database.push(format!(".{name}"));
    let aside = Place::at(database);
    let files = [
        (place.wal(), aside.wal()),
        (place.shm(), aside.shm()),
        (place.database().to_owned(), aside.database().to_owned()),
        (place.secret_file(), aside.secret_file()),
    ];
    for (from, to) in files {
        match fs::rename(from, to) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(cannot(error)),
            _ => {}
        }
    }
    place.sync_directory().map_err(cannot)?;
    Ok(aside)
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
