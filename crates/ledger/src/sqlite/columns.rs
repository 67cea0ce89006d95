//! Values of the ledger as columns of a row, and back.

use crate::precondition::LastWrite;
use crate::store::{Body, Index, Nonce, OwnerId, Revision};
use rusqlite::Row;
use rusqlite::types::ValueRef;
use semel_core::digest::Digest;
use semel_core::time::At;

/// The columns of [`index_from`], in its order.
macro_rules! index_columns {
    () => {
        "whole.effect, whole.run, whole.family, whole.alike, whole.content, whole.open, whole.owner, whole.opened_at, whole.changed_at"
    };
}
pub(super) use index_columns;

/// The number of a family or an outline in `open`. It need not be unique: the row says which one it is.
pub(super) fn tag(digest: Digest) -> i64 {
    digest.short() as i64
}

/// The number of a key or run in its index. Of a key it says all: two digests that share it do not happen, and a row that
/// seems to have another key is damaged, which its checksum finds out.
pub(super) fn prefix(digest: &Digest) -> &[u8] {
    &digest.0[..8]
}

pub(super) fn micros(at: At) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

pub(super) fn index_from(row: &Row<'_>, first: usize) -> rusqlite::Result<Index> {
    Ok(Index {
        effect: u128::from_be_bytes(row.get(first)?),
        run: optional_digest(row, first + 1)?,
        family: digest(row, first + 2)?,
        alike: optional_digest(row, first + 3)?,
        content: row.get::<_, i64>(first + 4)? as u64,
        open: row.get(first + 5)?,
        owner: row.get::<_, Option<[u8; 16]>>(first + 6)?.map(|id| OwnerId(u128::from_be_bytes(id))),
        opened_at: At(row.get::<_, i64>(first + 7)? as u64),
        changed_at: At(row.get::<_, i64>(first + 8)? as u64),
    })
}

/// The three parts of a body, one after another.
pub(super) fn body_from(row: &Row<'_>, first: usize) -> rusqlite::Result<Body> {
    let fixed: Vec<u8> = row.get(first)?;
    let delivery: Option<Vec<u8>> = row.get(first + 2)?;
    Ok(Body { fixed: fixed.into(), state: row.get(first + 1)?, delivery: delivery.unwrap_or_default() })
}

/// The revision, and the nonce after it.
pub(super) fn last_write(row: &Row<'_>, first: usize) -> rusqlite::Result<LastWrite> {
    let revision = Revision(row.get::<_, i64>(first)? as u64);
    Ok(LastWrite { revision, nonce: Nonce(u128::from_be_bytes(row.get(first + 1)?)) })
}

pub(super) fn digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Digest> {
    row.get(column).map(Digest)
}

pub(super) fn optional_digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Digest>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => digest(row, column).map(Some),
    }
}
