//! The journal of two ledgers: engines number its lines as they like, and some cells hold such a number.

use crate::ledger::Ledger;
use crate::small_records::{Fence, cell_value};
use crate::store::{Cell, Cursor, JOURNAL_PAGE_MAX, JournalLine};
use crate::{Error, outbox};
use semel_core::digest::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers that lines of one journal have in another, as far as cells speak of them.
#[derive(Debug, Default)]
pub(super) struct LineNumbers(BTreeMap<Cursor, Cursor>);

impl LineNumbers {
    pub(super) async fn of(from: &Ledger, to: &Ledger) -> Result<LineNumbers, Error> {
        let mut wanted = BTreeSet::new();
        for key in from.cell_keys().await? {
            let cell = from.store.cell(key).await?;
            wanted.extend(cell.and_then(|cell| line_number(key, &cell)).map(|(_, number)| number));
        }
        let mut numbers = BTreeMap::new();
        let (mut theirs, mut ours) = (Lines::of(from), Lines::of(to));
        let (mut next, mut last) = (None, Cursor(0));
        for number in wanted {
            loop {
                if next.is_none() {
                    next = theirs.next().await?.map(|(cursor, _)| cursor);
                }
                if next.is_none_or(|cursor| cursor > number) {
                    break;
                }
                next = None;
                last = ours.next().await?.map_or(last, |(cursor, _)| cursor);
            }
            numbers.insert(number, last);
        }
        Ok(LineNumbers(numbers))
    }

    /// The value of a cell with the number of its line written anew. `None`: it speaks of none.
    pub(super) fn renumber(&self, key: Digest, cell: &Cell) -> Option<Vec<u8>> {
        let (field, number) = line_number(key, cell)?;
        let mut value: serde_json::Map<String, serde_json::Value> = cell_value(key, cell)?;
        value[field] = self.0.get(&number)?.0.into();
        serde_json::to_vec(&value).ok()
    }
}

/// The field of a cell that holds the number of a line, and that number.
fn line_number(key: Digest, cell: &Cell) -> Option<(&'static str, Cursor)> {
    if let Some(Fence { journal_from, .. }) = cell_value(key, cell) {
        return Some(("journal_from", journal_from));
    }
    outbox::sent_to(key, cell).map(|sent_to| ("sent_to", sent_to))
}

/// The journal of a ledger, a page at a time.
pub(super) struct Lines<'l> {
    ledger: &'l Ledger,
    page: std::vec::IntoIter<(Cursor, JournalLine)>,
    after: Option<Cursor>,
    ended: bool,
}

impl<'l> Lines<'l> {
    pub(super) fn of(ledger: &'l Ledger) -> Lines<'l> {
        Lines::behind(ledger, None)
    }

    pub(super) fn behind(ledger: &'l Ledger, after: Option<Cursor>) -> Lines<'l> {
        Lines { ledger, page: Vec::new().into_iter(), after, ended: false }
    }

    pub(super) async fn next(&mut self) -> Result<Option<(Cursor, JournalLine)>, Error> {
        if self.page.as_slice().is_empty() && !self.ended {
            let page = self.ledger.journal(self.after, JOURNAL_PAGE_MAX).await?;
            (self.after, self.ended) = (page.next, page.next.is_none());
            self.page = page.items.into_iter();
        }
        Ok(self.page.next())
    }
}
