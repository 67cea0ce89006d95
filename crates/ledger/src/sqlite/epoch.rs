//! A new epoch, written in a transaction of the engine itself.

use super::apply::Batch;
use super::head_cache::HeadCache;
use super::{read, schema};
use crate::command_key::CommandKey;
use crate::entropy::{OsEntropy, nonce};
use crate::journal;
use crate::precondition::Finding;
use crate::small_records::{Epoch, cell_value};
use crate::store::{Commit, EPOCH_CELL, Put, Revision};
use rusqlite::Connection;
use semel_core::time::At;

/// Begins the epoch of a ledger that has less than it had, in a transaction of its own. Returns the last line of its
/// journal, to be marked once this is done.
pub(super) fn after_loss(connection: &Connection, now: At) -> rusqlite::Result<u64> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let reason = "the ledger has less than it had: commits are gone";
    write_epoch(connection, "commits_lost", reason, None, now)?;
    let last = schema::last_line(connection)?;
    connection.execute_batch("COMMIT")?;
    Ok(last)
}

pub(super) fn write_epoch(
    connection: &Connection,
    kind: &str,
    reason: &str,
    command: Option<CommandKey>,
    now: At,
) -> rusqlite::Result<Epoch> {
    let cell = read::cell(connection, EPOCH_CELL)?;
    let previous: Option<Epoch> = cell.as_ref().and_then(|cell| cell_value(EPOCH_CELL, cell));
    let epoch = Epoch { command, ..Epoch::after(previous.as_ref(), reason, now) };
    let data = serde_json::json!({"number": epoch.number, "reason": reason});
    let put = Put::cell(EPOCH_CELL, cell.map_or(Revision::ABSENT, |cell| cell.revision), &epoch);
    let lines = vec![journal::note(kind, None, None, data, now)];
    let commit = Commit { journal: lines, ..Commit::of(nonce(&OsEntropy), vec![put]) };
    let finding = Batch::new(connection, &mut HeadCache::default()).apply(&commit)?;
    assert!(matches!(finding, Finding::Clear(_)), "the cell was read in this transaction");
    Ok(epoch)
}
