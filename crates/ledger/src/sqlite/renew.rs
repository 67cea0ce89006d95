//! A new secret for an existing ledger.
//!
//! Under another secret no recorded intent is recognised again, so the epoch is bumped in the very transaction that
//! changes the check value. A crash at any point leaves a ledger without its secret, which refuses to open until
//! this is run once more; it never leaves one that has forgotten and does not know it.

use super::connection;
use super::epoch::write_epoch;
use super::fault::SqliteFault;
use super::open::{OpenOptions, founding_lock, has_content};
use crate::Error;
use crate::command_key::CommandKey;
use crate::place::Place;
use crate::small_records::Epoch;
use rusqlite::{Connection, params};
use semel_core::digest::Digest;
use semel_core::time::At;
use std::fs;
use std::io::{self, ErrorKind};

/// Whether a secret that is still there may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretRenewal {
    OnlyIfMissing,
    /// The old one is kept beside it, under another name.
    Replace,
}

/// Gives the ledger a new secret and a new epoch.
pub fn renew_secret(
    options: &OpenOptions,
    renewal: SecretRenewal,
    reason: &str,
    command: Option<CommandKey>,
    now: At,
) -> Result<Epoch, Error> {
    connection::refuse_old_sqlite()?;
    let missing = || options.place.cannot_open(ErrorKind::NotFound.into());
    if !options.place.directory().exists() {
        return Err(missing());
    }
    options.place.prepare(options.allow_network_fs)?;
    let place = options.place.resolved()?;
    let cannot = |source: io::Error| place.cannot_open(source);
    let failed = |error: rusqlite::Error| SqliteFault::while_opening(&place, &error);
    if !has_content(&place)? {
        return Err(missing());
    }
    let _turn = founding_lock(&place).map_err(cannot)?;
    if place.secret_file().try_exists().map_err(cannot)? {
        if renewal == SecretRenewal::OnlyIfMissing {
            return Err(Error::SecretKept { path: place.database().to_owned() });
        }
        set_aside(&place, now).map_err(cannot)?;
    }
    let secret = Place::fresh_secret().map_err(cannot)?;
    let connection = connection::writer(&place).map_err(failed)?;
    let epoch = rewrite(&connection, secret.check_value(), reason, command, now).map_err(failed)?;
    // Last: until the new check value is durable, a secret in this place would be the wrong one.
    place.publish_secret(&secret).map_err(cannot)?;
    Ok(epoch)
}

/// Never deleted: with a backup of the ledger it may be the right one.
fn set_aside(place: &Place, now: At) -> io::Result<()> {
    let aside = place.secret_file().with_extension(format!("secret.{}", now.0));
    fs::rename(place.secret_file(), aside)?;
    place.sync_directory()
}

fn rewrite(
    connection: &Connection,
    check: Digest,
    reason: &str,
    command: Option<CommandKey>,
    now: At,
) -> rusqlite::Result<Epoch> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    connection.execute("UPDATE meta SET secret_check = ?1", params![check.0])?;
    let epoch = write_epoch(connection, "secret_renewed", reason, command, now)?;
    connection.execute_batch("COMMIT")?;
    Ok(epoch)
}
