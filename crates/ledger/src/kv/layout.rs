//! Where everything lies: the names of values, and the entries of the index.
//!
//! The newest row of a record stands under the record's key alone, so that one read finds it; older ones stand aside.
//! An entry ends with the number of its row, the row's key and its ordinal, so the index needs no values.

use super::engine::{MARK, Span, Template};
use crate::store::{By, Card, Cursor, Index, Latest, Revision, Row};
use semel_core::digest::Digest;
use semel_core::ids::OwnerId;

/// Founds the ledger: its format and its secret.
pub(super) fn ledger() -> Vec<u8> {
    b"ledger".to_vec()
}

/// The history of the server that the ledger was last written in.
pub(super) fn lineage() -> Vec<u8> {
    b"lineage".to_vec()
}

pub(super) fn newest(key: Digest) -> Vec<u8> {
    [b"n", &key.0[..]].concat()
}

pub(super) fn older(key: Digest, ordinal: u32) -> Vec<u8> {
    [b"o", &key.0[..], &ordinal.to_be_bytes()].concat()
}

/// Names of cells begin so.
pub(super) const CELL: u8 = b'c';

pub(super) fn cell(key: Digest) -> Vec<u8> {
    [&[CELL], &key.0[..]].concat()
}

pub(super) fn cell_key(name: &[u8]) -> Option<Digest> {
    name.strip_prefix(&[CELL])?.try_into().ok().map(Digest)
}

/// The mark of a process that holds attempts: when its host wrote it.
pub(super) fn holder(owner: OwnerId) -> Vec<u8> {
    [&[MARK], &owner.0.to_be_bytes()[..]].concat()
}

/// The open rows of a family. Gone while there are none.
pub(super) fn family(family: Digest) -> Vec<u8> {
    [b"f", &family.0[..]].concat()
}

/// Written with every row that is alike, and so a guard of their entries.
pub(super) fn alike_guard(alike: Digest) -> Vec<u8> {
    [b"a", &alike.0[..]].concat()
}

/// A part of a reply that is too large for its row.
pub(super) fn chunk(reply: u128, number: u32) -> Vec<u8> {
    [b"r", &reply.to_be_bytes()[..], &number.to_be_bytes()].concat()
}

/// The journal: entries that have the line itself behind the number.
pub(super) const JOURNAL: &[u8] = b"J";

/// Entries of alike rows have their numbers inverted: every call wants the newest of them, and etcd gives a few of many in
/// ascending order alone.
const INVERTED: [u8; 2] = [b'L', b'M'];

/// All rows, and the journal.
const DENSE: [u8; 2] = [b'A', b'J'];

fn is_one_of(kinds: [u8; 2], entry: &[u8]) -> bool {
    entry.first().is_some_and(|kind| kinds.contains(kind))
}

/// The rows that a scan wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    By(By),
    Latest(Latest),
}

impl Filter {
    /// Entries of these rows begin so.
    pub(super) fn prefix(self) -> Vec<u8> {
        match self {
            // Nothing is in order of both insertion and change, so retention looks at all rows.
            Filter::By(By::All | By::ChangedBefore(_)) | Filter::Latest(Latest::All) => b"A".to_vec(),
            Filter::By(By::Open) | Filter::Latest(Latest::Open) => b"O".to_vec(),
            Filter::By(By::Run(run)) | Filter::Latest(Latest::Run(run)) => [b"R", &run.0[..]].concat(),
            Filter::By(By::Owner(owner)) => [b"W", &owner.0.to_be_bytes()[..]].concat(),
            Filter::By(By::Record(key)) => [b"K", &key.0[..]].concat(),
            Filter::By(By::Effect(effect)) => [b"E", &effect.to_be_bytes()[..]].concat(),
            Filter::Latest(Latest::Alike(alike)) => [b"L", &alike.0[..]].concat(),
            Filter::Latest(Latest::OpenAlike(alike)) => [b"M", &alike.0[..]].concat(),
        }
    }

    /// Whether a row is still one of them: it may have changed since its entry was read.
    pub(super) fn wants(self, row: &Row) -> bool {
        let index = &row.index;
        match self {
            Filter::By(By::All) | Filter::Latest(Latest::All) => true,
            Filter::By(By::Open) | Filter::Latest(Latest::Open) => index.open,
            Filter::By(By::Run(run)) | Filter::Latest(Latest::Run(run)) => index.run == Some(run),
            Filter::By(By::Owner(owner)) => index.open && index.owner == Some(owner),
            Filter::By(By::ChangedBefore(at)) => index.changed_at < at,
            Filter::By(By::Record(key)) => row.key == key,
            Filter::By(By::Effect(effect)) => index.effect == effect,
            Filter::Latest(Latest::Alike(alike)) => index.alike == Some(alike),
            Filter::Latest(Latest::OpenAlike(alike)) => index.open && index.alike == Some(alike),
        }
    }
}

const CARD_BYTES: usize = 8 + 32 + 4 + 8 + 1 + 8;
const OPEN: u8 = 1;
const DELIVERED: u8 = 2;

/// A row's card behind its number, as an entry has it. What changes stands in the entries of alike rows alone.
fn card_tail(card: &Card, in_full: bool) -> Vec<u8> {
    let Card { content, open, delivered, revision, .. } = card;
    let flags = u8::from(*open) * OPEN + u8::from(*delivered) * DELIVERED;
    let (content, flags, revision) = if in_full { (*content, flags, revision.0) } else { (0, 0, 0) };
    [&card.key.0[..], &card.ordinal.to_be_bytes(), &content.to_be_bytes(), &[flags], &revision.to_be_bytes()]
        .concat()
}

pub(super) fn card(entry: &[u8]) -> Option<Card> {
    let bytes = entry.last_chunk::<CARD_BYTES>()?;
    let number = |from: usize| bytes[from..from + 8].try_into().map(u64::from_be_bytes).ok();
    let flags = bytes[52];
    let place = number(0)?;
    Some(Card {
        cursor: Cursor(if is_one_of(INVERTED, entry) { !place } else { place }),
        key: Digest(bytes[8..40].try_into().ok()?),
        ordinal: u32::from_be_bytes(bytes[40..44].try_into().ok()?),
        content: number(44)?,
        open: flags & OPEN != 0,
        delivered: flags & DELIVERED != 0,
        revision: Revision(number(53)?),
    })
}

/// The newest alike rows, and those behind them that are open.
pub(super) fn with_open(mut newest: Vec<Card>, open: Vec<Card>) -> Vec<Card> {
    if let Some(oldest) = newest.last().map(|card| card.cursor) {
        let older = open.into_iter().filter(|card| card.cursor < oldest);
        newest.extend(older.map(|card| Card { open: true, ..card }));
    }
    newest
}

/// Every entry of a row, without its number: the bytes before it and those behind it.
pub(super) fn entries(index: &Index, card: &Card) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Index { effect, run, alike, open, owner, .. } = index;
    let mut filters =
        vec![Filter::By(By::All), Filter::By(By::Effect(*effect)), Filter::By(By::Record(card.key))];
    filters.extend(run.map(|run| Filter::By(By::Run(run))));
    filters.extend(alike.map(|alike| Filter::Latest(Latest::Alike(alike))));
    if *open {
        filters.push(Filter::By(By::Open));
        filters.extend(owner.map(|owner| Filter::By(By::Owner(owner))));
        filters.extend(alike.map(|alike| Filter::Latest(Latest::OpenAlike(alike))));
    }
    let is_alike = |filter| matches!(filter, Filter::Latest(Latest::Alike(_)));
    filters.into_iter().map(|filter| (filter.prefix(), card_tail(card, is_alike(filter)))).collect()
}

/// An entry of a row whose number is known, or is the group's `fresh` one.
pub(super) fn entry((before, after): (Vec<u8>, Vec<u8>), id: u64, fresh: Option<u32>) -> Template {
    let is_inverted = is_one_of(INVERTED, &before);
    match fresh {
        Some(number) => Template { before, number: Some(number), is_inverted, after },
        None => {
            let id = if is_inverted { !id } else { id };
            Template::plain([before, id.to_be_bytes().to_vec(), after].concat())
        }
    }
}

/// Entries in order of insertion, after the cursor. `None`: nothing can lie behind it.
pub(super) fn onward(prefix: &[u8], after: Option<Cursor>, limit: usize) -> Option<Span> {
    let from = after.map_or(Some(0), |Cursor(id)| id.checked_add(1))?;
    let (prefix, is_dense) = (prefix.to_vec(), is_one_of(DENSE, prefix));
    Some(Span { prefix, from, below: None, limit, descending: false, is_dense })
}

/// Entries in reverse order of insertion, before the cursor.
pub(super) fn backward(prefix: &[u8], before: Option<Cursor>, limit: usize) -> Span {
    let is_inverted = is_one_of(INVERTED, prefix);
    let (from, below) = match before {
        None => (0, None),
        Some(Cursor(id)) if is_inverted => ((!id).saturating_add(1), None),
        Some(Cursor(id)) => (0, Some(id)),
    };
    let (prefix, is_dense) = (prefix.to_vec(), is_one_of(DENSE, prefix));
    Span { prefix, from, below, limit, descending: !is_inverted, is_dense }
}
