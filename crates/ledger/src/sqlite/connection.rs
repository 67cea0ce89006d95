//! How a connection is opened and set up. Each pragma is here because its default loses claims, time or safety.

use super::clock;
use crate::Error;
use crate::place::Place;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::time::Duration;

/// Older ones can lose commits when two connections write and checkpoint at the same instant
/// (sqlite.org/wal.html#walresetbug).
const SQLITE_NEEDED: (i32, &str) = (3_051_003, "3.51.3");

/// About twenty statements exist; none may be compiled twice.
const STATEMENTS_MAX: usize = 48;

/// Pages that the writer keeps: the inner nodes of the key index of ten million effects, and its hot leaves. Not more:
/// after each split of a page, which re-keys pages for a moment, SQLite walks the whole table of them.
const WRITER_CACHE_KIB: u32 = 16 * 1024;

/// Readers lean on the operating system's cache. Each has this of its own, for the inner nodes of the key index of ten
/// million effects. More would be emptied by the next commit of somebody else, and emptying takes its time too.
const READER_CACHE_KIB: u32 = 3 * 1024;

/// After a burst the WAL is cut back to this, so that one large reply does not hold the disk for ever.
const WAL_KEPT_BYTES: u64 = 64 * 1024 * 1024;

/// How long a write lock held by someone else is waited for. Past it the caller hears that nothing was written.
const BUSY_WAIT: Duration = Duration::from_secs(5);

pub(super) fn refuse_old_sqlite() -> Result<(), Error> {
    let (needed, text) = SQLITE_NEEDED;
    if rusqlite::version_number() < needed {
        return Err(Error::SqliteTooOld { found: rusqlite::version().to_owned(), needed: text });
    }
    Ok(())
}

/// The writing connection. The file must exist: creating it is [`Place`]'s business, with its modes.
pub(super) fn writer(place: &Place) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_with_flags(
        place.database(),
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW,
    )?;
    common(&mut connection)?;
    // A process that ends must not pay for a checkpoint, nor delete the WAL under others that start just then.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let mode: String = connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))?;
    debug_assert_eq!(mode, "wal");
    // FULL: NORMAL loses acknowledged claims when the power fails. The WAL hook decides about checkpoints.
    connection.execute_batch(&format!(
        "PRAGMA synchronous=FULL; PRAGMA cache_size=-{WRITER_CACHE_KIB}; \
         PRAGMA journal_size_limit={WAL_KEPT_BYTES};"
    ))?;
    #[cfg(target_os = "macos")]
    connection.execute_batch("PRAGMA fullfsync=ON;")?;
    Ok(connection)
}

pub(super) fn reader(place: &Place) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_with_flags(
        place.database(),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW,
    )?;
    common(&mut connection)?;
    connection.execute_batch(&format!("PRAGMA cache_size=-{READER_CACHE_KIB};"))?;
    Ok(connection)
}

fn common(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    wait_for_others(connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Without it a partial index makes SQLite plan by the values bound, and compile a statement anew for each.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

pub(super) fn wait_for_others(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(wait_for_lock))
}

pub(super) fn wait_for_nobody(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)
}

/// SQLite's own handler sleeps up to 100 ms at a time, which starves one process beside three busy ones.
fn wait_for_lock(tries: i32) -> bool {
    const STEP: Duration = Duration::from_micros(100);
    const STEP_MAX: Duration = Duration::from_millis(2);
    let tries = tries.unsigned_abs();
    // The first twenty steps grow from 0.1 ms to 2 ms; the sum so far follows from the count alone.
    let waited =
        if tries <= 20 { STEP * (tries * (tries + 1) / 2) } else { STEP * 210 + STEP_MAX * (tries - 20) };
    if waited >= BUSY_WAIT {
        return false;
    }
    clock::sleep((STEP * (tries + 1)).min(STEP_MAX));
    true
}
