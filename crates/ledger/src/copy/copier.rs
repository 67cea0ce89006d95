//! Writes a copy, part by part, and compares it with the original.

use super::inventory::{CellValue, Inventory};
use super::line_numbers::{LineNumbers, Lines};
use super::mark::{CopyMark, CopyStage, Position};
use super::{CopyPhase, CopyPlan, CopyProgress, CopyPurpose, OnProgress, ROWS_AT_ONCE};
use crate::entropy::nonce;
use crate::failpoint::{self, InjectedError};
use crate::ledger::Ledger;
use crate::small_records::Epoch;
use crate::store::{
    Against, By, COPY_CELL, Commit, Cursor, Durability, EPOCH_CELL, JournalLine, Latest, PAGE_ROWS_MAX, Part,
    Put, ReplyChange, Revision, Row,
};
use crate::{Error, journal};
use semel_core::digest::Digest;

/// A line or a cell is one operation.
const ITEMS_AT_ONCE: usize = 100;

/// etcd takes requests of 1.5 MiB, which become longer on the way. A single larger one is tried all the same.
const BYTES_AT_ONCE: usize = 256 * 1024;

pub(super) struct Copier<'a> {
    pub(super) from: &'a Ledger,
    pub(super) to: &'a Ledger,
    pub(super) mark: CopyMark,
    /// Of the mark.
    pub(super) revision: Revision,
    /// All that this process has read.
    pub(super) read: Inventory,
    pub(super) on_progress: OnProgress<'a>,
}

impl Copier<'_> {
    pub(super) async fn run(&mut self, mut position: Position) -> Result<(), Error> {
        if let Position::Effects { after, done } = position {
            self.effects(after, done).await?;
            position = Position::Lines { after: None };
        }
        if let Position::Lines { after } = position {
            self.lines(after).await?;
            position = Position::Cells { after: None };
        }
        if let Position::Cells { after } = position {
            self.cells(after).await?;
        }
        Ok(())
    }

    fn tell(&mut self, phase: CopyPhase, done: u64, fraction: Option<f64>) {
        (self.on_progress)(CopyProgress { phase, done, fraction });
    }

    /// Writes a part, and with it how far the copy is then. Lazily: if the machine loses power, both are gone.
    pub(super) async fn write(
        &mut self,
        puts: Vec<Put>,
        journal: Vec<JournalLine>,
        position: Position,
    ) -> Result<(), Error> {
        self.mark.stage = CopyStage::Copying(position);
        self.commit(puts, journal, Durability::Lazy).await
    }

    async fn commit(
        &mut self,
        mut puts: Vec<Put>,
        journal: Vec<JournalLine>,
        durability: Durability,
    ) -> Result<(), Error> {
        let cut_short = |injected: InjectedError| Error::NotWritten { what: injected.to_string() };
        failpoint::hit("copy.before_commit").map_err(cut_short)?;
        puts.push(Put::cell(COPY_CELL, self.revision, &self.mark));
        let commit = Commit { journal, durability, ..Commit::of(nonce(self.to.entropy()), puts) };
        if self.to.commit(commit).await?.is_err() {
            let what = "somebody else writes there; empty the place and copy again".to_owned();
            return Err(Error::CopyIncomplete { what });
        }
        self.revision = self.revision.next();
        failpoint::hit("copy.after_commit").map_err(cut_short)
    }

    async fn effects(&mut self, mut after: Option<Cursor>, mut done: usize) -> Result<(), Error> {
        let last = self.from.store.latest(Latest::All, None, 1).await?.items.first().map(|(last, _)| *last);
        loop {
            let page = self.from.store.scan(By::All, after, PAGE_ROWS_MAX).await?;
            let rows = &page.items;
            while done < rows.len() {
                let count = rows_together(&rows[done..]);
                let puts = self.rows(&rows[done..done + count]).await?;
                // A large reply counts with its row, so that a few rows can be too much for one commit.
                for puts in in_parts(puts) {
                    done += puts.len();
                    self.write(puts, Vec::new(), Position::Effects { after, done }).await?;
                }
                self.tell(CopyPhase::Effects, self.read.effects.count, share(after, last));
            }
            if page.next.is_none() {
                self.tell(CopyPhase::Effects, self.read.effects.count, Some(1.0));
                return Ok(());
            }
            (after, done) = (page.next, 0);
        }
    }

    async fn rows(&mut self, rows: &[Row]) -> Result<Vec<Put>, Error> {
        let mut puts = Vec::with_capacity(rows.len());
        for (row, reply) in rows.iter().zip(self.from.replies(rows).await?) {
            self.read.add_row(row, reply.as_deref());
            let expected = match row.ordinal {
                1 => Revision::ABSENT,
                _ => self.to.store.read(row.key).await?.revision,
            };
            let Row { key, ordinal, index, body, .. } = row.clone();
            let reply = reply.map_or(ReplyChange::Drop, ReplyChange::Set);
            let (index, against, changed) = (Box::new(index), Against::Newest, Part::Fixed);
            puts.push(Put::Record { key, ordinal, expected, against, index, body, changed, reply });
        }
        Ok(puts)
    }

    async fn lines(&mut self, after: Option<Cursor>) -> Result<(), Error> {
        let last = self.from.newest_line().await?.map(|(last, _)| last);
        let mut lines = Lines::behind(self.from, after);
        loop {
            let (mut part, mut bytes, mut at) = (Vec::new(), 0, after);
            while part.len() < ITEMS_AT_ONCE && bytes < BYTES_AT_ONCE {
                let Some((cursor, line)) = lines.next().await? else { break };
                bytes += line.data.len();
                self.read.add_line(&line);
                at = Some(cursor);
                part.push(line);
            }
            if part.is_empty() {
                self.tell(CopyPhase::Journal, self.read.journal.count, Some(1.0));
                return Ok(());
            }
            self.write(Vec::new(), part, Position::Lines { after: at }).await?;
            self.tell(CopyPhase::Journal, self.read.journal.count, share(at, last));
        }
    }

    /// After the journal: some of them speak of its lines.
    async fn cells(&mut self, after: Option<Digest>) -> Result<(), Error> {
        let numbers = LineNumbers::of(self.from, self.to).await?;
        let keys = self.from.cell_keys().await?;
        let total = keys.len();
        let (mut puts, mut last) = (Vec::new(), after);
        for (number, key) in
            keys.into_iter().enumerate().filter(|(_, key)| after.is_none_or(|after| *key > after))
        {
            let Some((revision, value)) = self.from.cell_value(key, &numbers).await? else { continue };
            self.read.add_cell(key, &value);
            if key == EPOCH_CELL {
                self.epoch(revision, &value).await?;
                continue;
            }
            let put = value.put(key, Revision::ABSENT);
            let bytes: usize = puts.iter().chain([&put]).map(Put::bytes).sum();
            if puts.len() == ITEMS_AT_ONCE || bytes > BYTES_AT_ONCE && !puts.is_empty() {
                self.write(std::mem::take(&mut puts), Vec::new(), Position::Cells { after: last }).await?;
                self.tell(CopyPhase::Cells, number as u64, Some(number as f64 / total as f64));
            }
            puts.push(put);
            last = Some(key);
        }
        self.write(puts, Vec::new(), Position::Cells { after: last }).await?;
        self.tell(CopyPhase::Cells, total as u64, Some(1.0));
        Ok(())
    }

    /// Written as often as it was there: attempts remember its revision.
    async fn epoch(&mut self, revision: Revision, value: &CellValue) -> Result<(), Error> {
        loop {
            let at = self.to.store.cell(EPOCH_CELL).await?.map_or(Revision::ABSENT, |cell| cell.revision);
            if at >= revision {
                return Ok(());
            }
            let CopyStage::Copying(position) = self.mark.stage else { return Ok(()) };
            self.write(vec![value.put(EPOCH_CELL, at)], Vec::new(), position).await?;
        }
    }

    pub(super) async fn verify(&mut self, purpose: &CopyPurpose) -> Result<Inventory, Error> {
        let copied = self.to.inventory_as(&LineNumbers::default(), self.on_progress).await?;
        let (original, advice) = match purpose {
            // It goes on meanwhile, so the copy has what was read of it.
            CopyPurpose::Backup { .. } => (self.read, "make it again"),
            CopyPurpose::Move | CopyPurpose::Restore { .. } => {
                let numbers = LineNumbers::of(self.from, self.to).await?;
                let advice = "the ledger was used during the copy, or data was corrupted. Stop all that use it, empty \
                              the place of the copy, and copy again";
                (self.from.inventory_as(&numbers, self.on_progress).await?, advice)
            }
        };
        let epochs = (self.from.epoch().await?.0, self.to.epoch().await?.0);
        let difference = original
            .difference(&copied)
            .or_else(|| (epochs.0 != epochs.1).then(|| "their epochs differ".to_owned()));
        match difference {
            Some(what) => Err(Error::CopyIncomplete { what: format!("{what}; {advice}") }),
            None => Ok(copied),
        }
    }

    pub(super) async fn finish(&mut self, plan: &CopyPlan) -> Result<(), Error> {
        let cut_short = |injected: InjectedError| Error::NotWritten { what: injected.to_string() };
        failpoint::hit("copy.before_finish").map_err(cut_short)?;
        let now = plan.now;
        self.mark.stage = match &plan.purpose {
            CopyPurpose::Backup { command } => CopyStage::Backup { at: now, command: *command },
            CopyPurpose::Move | CopyPurpose::Restore { .. } => CopyStage::Complete { at: now },
        };
        let (mut puts, mut lines) = (Vec::new(), Vec::new());
        if let CopyPurpose::Restore { reason, command } = &plan.purpose {
            let (revision, epoch) = self.to.epoch().await?;
            let epoch = Epoch { command: *command, ..Epoch::after(epoch.as_ref(), reason, now) };
            puts.push(Put::cell(EPOCH_CELL, revision, &epoch));
            let data = serde_json::json!({"number": epoch.number, "reason": reason});
            lines.push(journal::note("epoch_bumped", None, None, data, now));
        }
        self.commit(puts, lines, Durability::Durable).await
    }
}

/// How many of these rows may stand in one commit. Two of one record may not.
fn rows_together(rows: &[Row]) -> usize {
    let rows = &rows[..rows.len().min(ROWS_AT_ONCE)];
    let again = |place: &usize| rows[..*place].iter().any(|row| row.key == rows[*place].key);
    (1..rows.len()).find(again).unwrap_or(rows.len())
}

fn in_parts(puts: Vec<Put>) -> Vec<Vec<Put>> {
    let (mut parts, mut size): (Vec<Vec<Put>>, usize) = (Vec::new(), 0);
    for put in puts {
        size += put.bytes();
        match parts.last_mut() {
            Some(part) if size <= BYTES_AT_ONCE => part.push(put),
            _ => {
                size = put.bytes();
                parts.push(vec![put]);
            }
        }
    }
    parts
}

/// Numbers grow with the ledger, so the place of one says how far that is.
fn share(at: Option<Cursor>, last: Option<Cursor>) -> Option<f64> {
    let (Cursor(at), Cursor(last)) = (at.unwrap_or(Cursor(0)), last?);
    Some((at as f64 / last.max(1) as f64).min(1.0))
}
