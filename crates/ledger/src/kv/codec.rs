//! Rows, cells and lines as the bytes of a value, and back.

use super::engine::{Template, Value};
use crate::Error;
use crate::precondition::{LastWrite, RowHead};
use crate::store::{Body, Card, Cursor, Index, JournalLine, Nonce, Revision, Row};
use minicbor::{Decode, Encode};
use semel_core::digest::Digest;
use semel_core::ids::OwnerId;
use semel_core::time::At;

const TO_MEMORY: &str = "memory takes all that is written to it";

/// A row, as it lies under its name: its number, and then this.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(super) struct StoredRow {
    #[n(0)]
    pub(super) ordinal: u32,
    #[n(1)]
    revision: u64,
    #[n(2)]
    nonce: Nonce,
    #[n(3)]
    effect: u128,
    #[n(4)]
    run: Option<Digest>,
    #[n(5)]
    family: Digest,
    #[n(6)]
    alike: Option<Digest>,
    #[n(7)]
    open: bool,
    #[n(8)]
    owner: Option<OwnerId>,
    #[n(9)]
    opened_at: At,
    #[n(10)]
    changed_at: At,
    #[cbor(n(11), with = "minicbor::bytes")]
    fixed: Vec<u8>,
    #[cbor(n(12), with = "minicbor::bytes")]
    state: Vec<u8>,
    #[cbor(n(13), with = "minicbor::bytes")]
    delivery: Vec<u8>,
    #[n(14)]
    pub(super) reply: StoredReply,
    #[n(15)]
    content: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(super) enum StoredReply {
    #[n(0)]
    Absent,
    #[n(1)]
    Here(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// In so many values of this name.
    #[n(2)]
    Apart {
        #[n(0)]
        name: u128,
        #[n(1)]
        chunks: u32,
    },
}

/// A row that was read, with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadRow {
    pub(super) id: u64,
    pub(super) stored: StoredRow,
}

impl StoredRow {
    pub(super) fn new(
        ordinal: u32,
        last: LastWrite,
        index: &Index,
        body: &Body,
        reply: StoredReply,
    ) -> StoredRow {
        let Index { effect, run, family, alike, content, open, owner, opened_at, changed_at } = index.clone();
        let LastWrite { revision: Revision(revision), nonce } = last;
        let Body { fixed, state, delivery } = body.clone();
        let fixed = fixed.to_vec();
        StoredRow {
            ordinal,
            revision,
            nonce,
            effect,
            run,
            family,
            alike,
            open,
            owner,
            opened_at,
            changed_at,
            fixed,
            state,
            delivery,
            reply,
            content,
        }
    }

    /// With its number, or the group's `fresh` one, before it.
    pub(super) fn value(&self, id: u64, fresh: Option<u32>) -> Template {
        let bytes = minicbor::to_vec(self).expect(TO_MEMORY);
        match fresh {
            Some(number) => Template { number: Some(number), after: bytes, ..Template::plain(Vec::new()) },
            None => Template::plain([&id.to_be_bytes()[..], &bytes].concat()),
        }
    }

    pub(super) fn card(&self, id: u64, key: Digest) -> Card {
        let StoredRow { ordinal, content, open, .. } = *self;
        let (cursor, revision) = (Cursor(id), self.revision());
        let delivered = !self.delivery.is_empty();
        Card { cursor, key, ordinal, content, open, delivered, revision }
    }

    pub(super) fn index(&self) -> Index {
        let StoredRow { effect, run, family, alike, content, open, owner, opened_at, changed_at, .. } =
            self.clone();
        Index { effect, run, family, alike, content, open, owner, opened_at, changed_at }
    }

    pub(super) fn revision(&self) -> Revision {
        Revision(self.revision)
    }
}

impl ReadRow {
    pub(super) fn head(&self) -> RowHead {
        let stored = &self.stored;
        RowHead {
            id: self.id,
            ordinal: stored.ordinal,
            last_write: LastWrite { revision: stored.revision(), nonce: stored.nonce },
            index: stored.index(),
            reply_apart: matches!(stored.reply, StoredReply::Apart { .. }),
        }
    }

    /// Without its reply.
    pub(super) fn into_row(self, key: Digest) -> Row {
        let (ordinal, revision, index) = (self.stored.ordinal, self.stored.revision(), self.stored.index());
        let StoredRow { fixed, state, delivery, .. } = self.stored;
        let body = Body { fixed: fixed.into(), state, delivery };
        Row { key, ordinal, revision, index, body, reply: None }
    }
}

pub(super) fn damaged(what: &str) -> Error {
    Error::NotRead { what: format!("{what} on the server is damaged") }
}

pub(super) fn row(value: &Value) -> Result<ReadRow, Error> {
    let (id, bytes) = value.bytes.split_first_chunk::<8>().ok_or_else(|| damaged("a row"))?;
    let stored = minicbor::decode(bytes).map_err(|_| damaged("a row"))?;
    Ok(ReadRow { id: u64::from_be_bytes(*id), stored })
}

pub(super) fn cell_bytes(last: LastWrite, body: &[u8]) -> Vec<u8> {
    [&last.revision.0.to_be_bytes()[..], &last.nonce.0.to_be_bytes(), body].concat()
}

/// The last write of a cell, and its body.
pub(super) fn cell(value: &Value) -> Result<(LastWrite, &[u8]), Error> {
    let split = || {
        let (revision, rest) = value.bytes.split_first_chunk::<8>()?;
        let (nonce, body) = rest.split_first_chunk::<16>()?;
        let revision = Revision(u64::from_be_bytes(*revision));
        Some((LastWrite { revision, nonce: Nonce(u128::from_be_bytes(*nonce)) }, body))
    };
    split().ok_or_else(|| damaged("a cell"))
}

pub(super) fn line_bytes(line: &JournalLine) -> Vec<u8> {
    let JournalLine { at, effect, run, kind, data } = line;
    minicbor::to_vec((at, effect, run, kind, data)).expect(TO_MEMORY)
}

pub(super) fn line(bytes: &[u8]) -> Result<JournalLine, Error> {
    let (at, effect, run, kind, data) =
        minicbor::decode(bytes).map_err(|_| damaged("a line of the journal"))?;
    Ok(JournalLine { at, effect, run, kind, data })
}

/// The open rows of a family, each by its key and its ordinal.
pub(super) fn relatives(bytes: &[u8]) -> Vec<(Digest, u32)> {
    let (items, _) = bytes.as_chunks::<36>();
    let item = |item: &[u8; 36]| {
        let (key, ordinal) = item.split_at(32);
        let key = Digest(key.try_into().expect("32 of 36 bytes"));
        (key, u32::from_be_bytes(ordinal.try_into().expect("4 of 36 bytes")))
    };
    items.iter().map(item).collect()
}

pub(super) fn relatives_bytes(relatives: &[(Digest, u32)]) -> Vec<u8> {
    relatives.iter().flat_map(|(key, ordinal)| [&key.0[..], &ordinal.to_be_bytes()].concat()).collect()
}
