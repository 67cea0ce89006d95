//! Values of the ledger as columns, and back.

use crate::precondition::{LastWrite, RowHead};
use crate::store::{Body, Card, Cursor, Index, JournalLine, Nonce, OwnerId, Revision, Row};
use semel_core::digest::Digest;
use semel_core::time::At;
use tokio_postgres::Row as Found;

pub(super) fn micros(at: At) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

pub(super) fn digest(found: &Found, column: usize) -> Digest {
    Digest(fixed(found.get(column)))
}

fn optional_digest(found: &Found, column: usize) -> Option<Digest> {
    found.get::<_, Option<&[u8]>>(column).map(|bytes| Digest(fixed(bytes)))
}

pub(super) fn nonce(found: &Found, column: usize) -> Nonce {
    Nonce(u128::from_be_bytes(fixed(found.get(column))))
}

/// A value of another length was written by somebody else; it equals nothing of ours.
fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0xff; N])
}

pub(super) fn revision(found: &Found, column: usize) -> Revision {
    Revision(found.get::<_, Option<i64>>(column).unwrap_or(0).cast_unsigned())
}

pub(super) fn cursor(found: &Found, column: usize) -> Cursor {
    Cursor(found.get::<_, i64>(column).cast_unsigned())
}

fn index(found: &Found) -> Index {
    Index {
        effect: u128::from_be_bytes(fixed(found.get(5))),
        run: optional_digest(found, 6),
        family: digest(found, 7),
        alike: optional_digest(found, 8),
        content: found.get::<_, i64>(9).cast_unsigned(),
        open: found.get(10),
        owner: found.get::<_, Option<&[u8]>>(11).map(|id| OwnerId(u128::from_be_bytes(fixed(id)))),
        opened_at: At(found.get::<_, i64>(12).cast_unsigned()),
        changed_at: At(found.get::<_, i64>(13).cast_unsigned()),
    }
}

pub(super) fn head(found: &Found) -> (Digest, RowHead) {
    let last_write = LastWrite { revision: revision(found, 3), nonce: nonce(found, 4) };
    let head = RowHead {
        id: found.get::<_, i64>(0).cast_unsigned(),
        ordinal: found.get::<_, i32>(2).cast_unsigned(),
        last_write,
        index: index(found),
        reply_apart: false,
    };
    (digest(found, 1), head)
}

/// A row without its reply.
pub(super) fn row(found: &Found) -> (Cursor, Row) {
    let row = Row {
        key: digest(found, 1),
        ordinal: found.get::<_, i32>(2).cast_unsigned(),
        revision: revision(found, 3),
        index: index(found),
        body: Body { fixed: found.get::<_, &[u8]>(14).into(), state: found.get(15), delivery: found.get(16) },
        reply: None,
    };
    (cursor(found, 0), row)
}

pub(super) fn card(found: &Found) -> Card {
    Card {
        cursor: cursor(found, 0),
        key: digest(found, 1),
        ordinal: found.get::<_, i32>(2).cast_unsigned(),
        content: found.get::<_, i64>(3).cast_unsigned(),
        open: found.get(4),
        delivered: found.get(5),
        revision: revision(found, 6),
    }
}

pub(super) fn line(found: &Found) -> (Cursor, JournalLine) {
    let line = JournalLine {
        at: At(found.get::<_, i64>(1).cast_unsigned()),
        effect: found.get::<_, Option<&[u8]>>(2).map(|id| u128::from_be_bytes(fixed(id))),
        run: optional_digest(found, 3),
        kind: found.get(4),
        data: found.get(5),
    };
    (cursor(found, 0), line)
}
