//! All that a ledger holds, counted and digested: a copy is compared by it.

use super::line_numbers::{LineNumbers, Lines};
use super::{CopyPhase, CopyProgress, OnProgress, ROWS_AT_ONCE};
use crate::ledger::Ledger;
use crate::store::{
    Body, By, COPY_CELL, Index, JOURNAL_PAGE_MAX, JournalLine, PAGE_ROWS_MAX, Put, Revision, Row,
};
use crate::{Error, checksum};
use futures_util::future::join_all;
use semel_core::digest::Digest;
use serde::Serialize;

/// All that a ledger holds, as far as a copy must have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Inventory {
    pub effects: Tally,
    pub replies: Tally,
    pub journal: Tally,
    pub cells: Tally,
}

impl Inventory {
    pub(super) fn add_row(&mut self, row: &Row, reply: Option<&[u8]>) {
        let ordinal = row.ordinal.to_be_bytes();
        let Index { effect, run, family, alike, content, open, owner, opened_at, changed_at } = &row.index;
        let columns =
            minicbor::to_vec((effect, run, family, alike, content, open, owner, opened_at, changed_at));
        let columns = columns.expect("memory takes all that is written to it");
        let Body { fixed, state, delivery } = &row.body;
        self.effects.add(&[&row.key.0, &ordinal, &columns, fixed, state, delivery]);
        if let Some(reply) = reply {
            self.replies.add(&[&row.key.0, &ordinal, reply]);
        }
    }

    pub(super) fn add_line(&mut self, line: &JournalLine) {
        let bytes = serde_json::to_vec(line).expect("a line has only string keys");
        self.journal.add(&[&bytes]);
    }

    pub(super) fn add_cell(&mut self, key: Digest, value: &CellValue) {
        match value {
            CellValue::Damaged => self.cells.add(&[&key.0]),
            CellValue::Sound(json) => self.cells.add(&[&key.0, json]),
        }
    }

    /// The first kind of which the other one has not the same.
    pub(super) fn difference(&self, other: &Inventory) -> Option<String> {
        let kinds = [
            ("effects", self.effects, other.effects),
            ("replies", self.replies, other.replies),
            ("lines of the journal", self.journal, other.journal),
            ("cells", self.cells, other.cells),
        ];
        kinds.into_iter().find(|(_, one, other)| one != other).map(|(what, one, other)| {
            let (shown, of) = (|tally: Tally| tally.digest.to_string()[..12].to_owned(), one.count);
            format!(
                "their {what} differ: {of} with the digest {}, and in the copy {} with {}",
                shown(one),
                other.count,
                shown(other)
            )
        })
    }
}

/// So many things, and a digest of all of them in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub count: u64,
    pub digest: Digest,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { count: 0, digest: Digest([0; 32]) }
    }
}

impl Tally {
    fn add(&mut self, parts: &[&[u8]]) {
        let parts: Vec<&[u8]> = [&self.digest.0[..]].into_iter().chain(parts.iter().copied()).collect();
        *self = Tally { count: self.count + 1, digest: Digest::of(&parts) };
    }
}

impl Ledger {
    /// Reads all of it.
    pub async fn inventory(&self, on_progress: OnProgress<'_>) -> Result<Inventory, Error> {
        self.inventory_as(&LineNumbers::default(), on_progress).await
    }

    pub(super) async fn inventory_as(
        &self,
        numbers: &LineNumbers,
        on_progress: OnProgress<'_>,
    ) -> Result<Inventory, Error> {
        let (mut inventory, mut after) = (Inventory::default(), None);
        let mut tell = |inventory: &Inventory| {
            let done = inventory.effects.count + inventory.journal.count + inventory.cells.count;
            on_progress(CopyProgress { phase: CopyPhase::Verify, done, fraction: None });
        };
        loop {
            let page = self.store.scan(By::All, after, PAGE_ROWS_MAX).await?;
            for rows in page.items.chunks(ROWS_AT_ONCE) {
                for (row, reply) in rows.iter().zip(self.replies(rows).await?) {
                    inventory.add_row(row, reply.as_deref());
                }
            }
            tell(&inventory);
            match page.next {
                None => break,
                next => after = next,
            }
        }
        let mut lines = Lines::of(self);
        while let Some((_, line)) = lines.next().await? {
            inventory.add_line(&line);
            if inventory.journal.count % JOURNAL_PAGE_MAX as u64 == 0 {
                tell(&inventory);
            }
        }
        for key in self.cell_keys().await? {
            if let Some((_, value)) = self.cell_value(key, numbers).await? {
                inventory.add_cell(key, &value);
            }
        }
        tell(&inventory);
        Ok(inventory)
    }

    /// The replies of these rows, asked for together.
    pub(super) async fn replies(&self, rows: &[Row]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let asked = rows.iter().map(|row| self.store.reply(row.key, row.ordinal));
        join_all(asked).await.into_iter().collect()
    }

    pub(super) async fn cell_keys(&self) -> Result<Vec<Digest>, Error> {
        let mut keys = self.store.cell_keys().await?;
        keys.retain(|key| *key != COPY_CELL);
        Ok(keys)
    }

    /// A cell as its copy must have it. `None`: there is none.
    pub(super) async fn cell_value(
        &self,
        key: Digest,
        numbers: &LineNumbers,
    ) -> Result<Option<(Revision, CellValue)>, Error> {
        let Some(cell) = self.store.cell(key).await? else { return Ok(None) };
        let value = match checksum::open(&[&key.0, &cell.revision.0.to_be_bytes()], &cell.body) {
            None => CellValue::Damaged,
            Some(json) => CellValue::Sound(numbers.renumber(key, &cell).unwrap_or_else(|| json.to_vec())),
        };
        Ok(Some((cell.revision, value)))
    }
}

/// The content of a cell without its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CellValue {
    Sound(Vec<u8>),
    /// Its bytes are left behind: at another revision they could pass for sound.
    Damaged,
}

impl CellValue {
    pub(super) fn put(&self, key: Digest, expected: Revision) -> Put {
        let place: [&[u8]; 2] = [&key.0, &expected.next().0.to_be_bytes()];
        let body = match self {
            CellValue::Sound(json) => checksum::seal(&place, json.clone()),
            CellValue::Damaged => Vec::new(),
        };
        Put::Cell { key, expected, body }
    }
}
