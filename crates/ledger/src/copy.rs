//! A whole ledger in another place: the same secret, effects, replies, journal and cells.
//!
//! A copy is commits. Each has a few rows, lines or cells, and with them [`COPY_CELL`], which says how far the copy has
//! come. So a commit that landed is never repeated, an interrupted copy goes on behind it, and everything keeps its
//! order. Until both ledgers were read once more and found the same, the mark keeps everybody else out.
//!
//! Two things change on the way. Revisions begin anew, so a cell is sealed again for the revision that it gets; the
//! epoch alone keeps its revision, because attempts remember it. And engines number the lines of the journal as they
//! like, so the cells that hold such a number (fences, outboxes) are given the one of the same line.

use crate::command_key::CommandKey;
use crate::entropy::nonce;
use crate::failpoint::{self, InjectedError};
use crate::ledger::{Ledger, lapse_of};
use crate::record::decode;
use crate::small_records::{Epoch, Fence, cell_value};
use crate::store::{
    Against, Body, By, COPY_CELL, Cell, Commit, Cursor, Durability, EPOCH_CELL, Index, JOURNAL_PAGE_MAX,
    JournalLine, Latest, PAGE_ROWS_MAX, Part, Put, ReplyChange, Revision, Row,
};
use crate::{Error, checksum, journal, outbox};
use semel_core::digest::{Digest, Secret};
use semel_core::ids::EffectId;
use semel_core::time::At;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// The mark of a ledger that is a copy of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyMark {
    /// The check value of the secret, so the same ledger.
    of: Digest,
    /// Its address, without a password.
    pub from: String,
    pub began: At,
    pub stage: CopyStage,
}

impl CopyMark {
    pub fn new(secret: &Secret, plan: &CopyPlan, stage: CopyStage) -> CopyMark {
        CopyMark { of: secret.check_value(), from: plan.from.clone(), began: plan.now, stage }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyStage {
    /// Nobody uses it before it is complete.
    Copying(Position),
    Complete {
        at: At,
    },
    /// It is read, and never written to: calls that came after it are not in it.
    Backup {
        at: At,
        command: Option<CommandKey>,
    },
}

/// How far a copy has come. Cursors are those of the ledger that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// So many rows of the page behind this cursor.
    Effects {
        after: Option<Cursor>,
        done: usize,
    },
    Lines {
        after: Option<Cursor>,
    },
    Cells {
        after: Option<Digest>,
    },
}

/// Why a ledger is copied.
#[derive(Debug, Clone)]
pub enum CopyPurpose {
    /// To go on with the copy.
    Move,
    /// To keep it. The ledger may be in use meanwhile, so parts of it are of different moments.
    Backup { command: Option<CommandKey> },
    /// To go on with an older state: an epoch begins.
    Restore { reason: String, command: Option<CommandKey> },
}

#[derive(Debug, Clone)]
pub struct CopyPlan {
    /// The address of the ledger that is copied, as people may see it.
    pub from: String,
    pub purpose: CopyPurpose,
    pub now: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyPhase {
    Effects,
    Journal,
    Cells,
    Verify,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyProgress {
    pub phase: CopyPhase,
    pub done: u64,
    /// From 0 to 1, where that is known.
    pub fraction: Option<f64>,
}

pub type OnProgress<'p> = &'p mut (dyn FnMut(CopyProgress) + Send);

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

/// All that a ledger holds, as far as a copy must have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Inventory {
    pub effects: Tally,
    pub replies: Tally,
    pub journal: Tally,
    pub cells: Tally,
}

impl Inventory {
    fn add_row(&mut self, row: &Row, reply: Option<&[u8]>) {
        let ordinal = row.ordinal.to_be_bytes();
        let Index { effect, run, family, alike, open, owner, opened_at, changed_at } = &row.index;
        let columns = minicbor::to_vec((effect, run, family, alike, open, owner, opened_at, changed_at));
        let columns = columns.expect("memory takes all that is written to it");
        let Body { fixed, state, delivery } = &row.body;
        self.effects.add(&[&row.key.0, &ordinal, &columns, fixed, state, delivery]);
        if let Some(reply) = reply {
            self.replies.add(&[&row.key.0, &ordinal, reply]);
        }
    }

    fn add_line(&mut self, line: &JournalLine) {
        let bytes = serde_json::to_vec(line).expect("a line has only string keys");
        self.journal.add(&[&bytes]);
    }

    fn add_cell(&mut self, key: Digest, value: &CellValue) {
        match value {
            CellValue::Damaged => self.cells.add(&[&key.0]),
            CellValue::Sound(json) => self.cells.add(&[&key.0, json]),
        }
    }

    /// The first kind of which the other one has not the same.
    fn difference(&self, other: &Inventory) -> Option<String> {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyReport {
    /// `false`: it was complete before.
    pub is_new: bool,
    /// An earlier attempt was interrupted, and this one went on.
    pub resumed: bool,
    pub inventory: Inventory,
}

/// etcd takes 126 operations in a transaction, and a row can be twelve of them.
const ROWS_AT_ONCE: usize = 10;

/// A line or a cell is one operation.
const ITEMS_AT_ONCE: usize = 100;

/// etcd takes requests of 1.5 MiB, which become longer on the way. A single larger one is tried all the same.
const BYTES_AT_ONCE: usize = 256 * 1024;

impl Ledger {
    pub async fn copy_mark(&self) -> Result<Option<CopyMark>, Error> {
        Ok(self.cell(COPY_CELL).await?.1)
    }

    /// Refuses a ledger that is not all there, and to write to a backup.
    pub async fn refuse_partial(&self, ledger: &str, writes: bool) -> Result<(), Error> {
        let ledger = || ledger.to_owned();
        match self.copy_mark().await? {
            Some(CopyMark { stage: CopyStage::Copying(_), from, .. }) => {
                Err(Error::UnfinishedCopy { ledger: ledger(), from })
            }
            Some(CopyMark { stage: CopyStage::Backup { .. }, .. }) if writes => {
                Err(Error::IsBackup { ledger: ledger() })
            }
            _ => Ok(()),
        }
    }

    /// Whether there is nothing in it yet. It may have begun an epoch: then it was founded where another one was lost.
    pub async fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.store.scan(By::All, None, 1).await?.items.is_empty()
            && self.store.newest_lines(1).await?.is_empty()
            && self.store.cell_keys().await?.iter().all(|key| *key == EPOCH_CELL))
    }

    /// Effects that somebody is at work on just now.
    pub async fn in_flight(&self, now: At) -> Result<Vec<EffectId>, Error> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.scan(By::Open, after, PAGE_ROWS_MAX).await?;
            for effect in page.items.into_iter().map(|row| decode(row).effect) {
                if let Some(attempt) = effect.open_attempt()
                    && lapse_of(attempt, self.liveness_of(attempt).await?, now).is_none()
                {
                    found.push(effect.id);
                }
            }
            match page.next {
                None => return Ok(found),
                next => after = next,
            }
        }
    }

    /// Reads all of it.
    pub async fn inventory(&self, on_progress: OnProgress<'_>) -> Result<Inventory, Error> {
        self.inventory_as(&LineNumbers::default(), on_progress).await
    }

    async fn inventory_as(
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
    async fn replies(&self, rows: &[Row]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let asked = rows.iter().map(|row| self.store.reply(row.key, row.ordinal));
        all(asked.collect()).await.into_iter().collect()
    }

    async fn cell_keys(&self) -> Result<Vec<Digest>, Error> {
        let mut keys = self.store.cell_keys().await?;
        keys.retain(|key| *key != COPY_CELL);
        Ok(keys)
    }

    /// A cell as its copy must have it. `None`: there is none.
    async fn cell_value(
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
enum CellValue {
    Sound(Vec<u8>),
    /// Its bytes are left behind: at another revision they could pass for sound.
    Damaged,
}

impl CellValue {
    fn put(&self, key: Digest, expected: Revision) -> Put {
        let place: [&[u8]; 2] = [&key.0, &expected.next().0.to_be_bytes()];
        let body = match self {
            CellValue::Sound(json) => checksum::seal(&place, json.clone()),
            CellValue::Damaged => Vec::new(),
        };
        Put::Cell { key, expected, body }
    }
}

/// The field of a cell that holds the number of a line, and that number.
fn line_number(key: Digest, cell: &Cell) -> Option<(&'static str, Cursor)> {
    if let Some(Fence { journal_from, .. }) = cell_value(key, cell) {
        return Some(("journal_from", journal_from));
    }
    outbox::sent_to(key, cell).map(|sent_to| ("sent_to", sent_to))
}

/// The numbers that lines of one journal have in another, as far as cells speak of them.
#[derive(Debug, Default)]
struct LineNumbers(BTreeMap<Cursor, Cursor>);

impl LineNumbers {
    async fn of(from: &Ledger, to: &Ledger) -> Result<LineNumbers, Error> {
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
    fn renumber(&self, key: Digest, cell: &Cell) -> Option<Vec<u8>> {
        let (field, number) = line_number(key, cell)?;
        let mut value: serde_json::Map<String, serde_json::Value> = cell_value(key, cell)?;
        value[field] = self.0.get(&number)?.0.into();
        serde_json::to_vec(&value).ok()
    }
}

/// The journal of a ledger, a page at a time.
struct Lines<'l> {
    ledger: &'l Ledger,
    page: std::vec::IntoIter<(Cursor, JournalLine)>,
    after: Option<Cursor>,
    ended: bool,
}

impl<'l> Lines<'l> {
    fn of(ledger: &'l Ledger) -> Lines<'l> {
        Lines::behind(ledger, None)
    }

    fn behind(ledger: &'l Ledger, after: Option<Cursor>) -> Lines<'l> {
        Lines { ledger, page: Vec::new().into_iter(), after, ended: false }
    }

    async fn next(&mut self) -> Result<Option<(Cursor, JournalLine)>, Error> {
        if self.page.as_slice().is_empty() && !self.ended {
            let page = self.ledger.journal(self.after, JOURNAL_PAGE_MAX).await?;
            (self.after, self.ended) = (page.next, page.next.is_none());
            self.page = page.items.into_iter();
        }
        Ok(self.page.next())
    }
}

/// Copies one ledger to another place, or goes on with it. Both have the same secret.
pub async fn copy(
    from: &Ledger,
    to: &Ledger,
    plan: &CopyPlan,
    on_progress: OnProgress<'_>,
) -> Result<CopyReport, Error> {
    let refused = |what: String| Err(Error::CopyRefused { what });
    let of = from.secret().check_value();
    if from.store.is_newer() || to.store.is_newer() {
        return refused("a newer semel has written one of the ledgers; copy with that one".to_owned());
    }
    if of != to.secret().check_value() {
        return refused("another ledger stands in the place of the copy; name an empty place".to_owned());
    }
    if matches!(plan.purpose, CopyPurpose::Move) {
        from.refuse_partial(&plan.from, true).await?;
    }
    let (revision, found) = to.cell::<CopyMark>(COPY_CELL).await?;
    let (mark, position) = match found {
        Some(CopyMark { from, .. }) if from != plan.from => {
            return refused(format!("the place holds a copy of {from}; name an empty place"));
        }
        Some(mark) => match mark.stage {
            CopyStage::Copying(position) => (mark, position),
            CopyStage::Complete { at } => {
                if from.newest_line().await?.is_some_and(|(_, line)| line.at > at) {
                    return refused(format!(
                        "{} went on after it was copied, and the copy does not know of it. Empty the place and copy \
                         again, or use the copy alone",
                        plan.from
                    ));
                }
                let inventory = Inventory::default();
                return Ok(CopyReport { is_new: false, resumed: false, inventory });
            }
            CopyStage::Backup { .. } => return refused("a backup stands there".to_owned()),
        },
        None if !to.is_empty().await? => {
            return refused("the place is not empty; name another one".to_owned());
        }
        None => {
            let position = Position::Effects { after: None, done: 0 };
            (CopyMark::new(from.secret(), plan, CopyStage::Copying(position)), position)
        }
    };
    if matches!(plan.purpose, CopyPurpose::Move) {
        let busy = from.in_flight(plan.now).await?;
        if let Some(first) = busy.first() {
            let count = busy.len();
            let calls = if count == 1 { "call is" } else { "calls are" };
            return refused(format!(
                "{count} {calls} in flight, effect {first} first. Stop all that use the ledger, wait until they \
                 have ended, and copy again"
            ));
        }
        let waiting = from.spooled()?.waiting.len();
        if waiting > 0 {
            let answers = if waiting == 1 { "answer waits" } else { "answers wait" };
            return refused(format!(
                "{waiting} {answers} on this host for the ledger and would stay behind. The next semel run or semel \
                 serve with it brings them in; then stop it, and copy again"
            ));
        }
    }
    if from.store.holds_lines_back().await? {
        return refused(
            "another transaction on its server is open and holds back the newest lines of the journal. End it, and \
             copy again"
                .to_owned(),
        );
    }
    let read = Inventory::default();
    let resumed = revision != Revision::ABSENT;
    let mut copier = Copier { from, to, mark, revision, read, on_progress };
    if !resumed {
        // With the mark comes the epoch of the original, and before it nobody trusts an empty place.
        let epoch = to.store.cell(EPOCH_CELL).await?;
        let forget = epoch.map(|epoch| Put::ForgetCell { key: EPOCH_CELL, expected: epoch.revision });
        copier.write(forget.into_iter().collect(), Vec::new(), position).await?;
    }
    copier.run(position).await?;
    let inventory = copier.verify(&plan.purpose).await?;
    copier.finish(plan).await?;
    Ok(CopyReport { is_new: true, resumed, inventory })
}

struct Copier<'a> {
    from: &'a Ledger,
    to: &'a Ledger,
    mark: CopyMark,
    /// Of the mark.
    revision: Revision,
    /// All that this process has read.
    read: Inventory,
    on_progress: OnProgress<'a>,
}

impl Copier<'_> {
    async fn run(&mut self, mut position: Position) -> Result<(), Error> {
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
    async fn write(
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

    async fn verify(&mut self, purpose: &CopyPurpose) -> Result<Inventory, Error> {
        let copied = self.to.inventory_as(&LineNumbers::default(), self.on_progress).await?;
        let (original, advice) = match purpose {
            // It goes on meanwhile, so the copy has what was read of it.
            CopyPurpose::Backup { .. } => (self.read, "make it again"),
            CopyPurpose::Move | CopyPurpose::Restore { .. } => {
                let numbers = LineNumbers::of(self.from, self.to).await?;
                let advice = "the ledger was used meanwhile, or a bit is wrong. Stop all that use it, empty the place \
                              of the copy, and copy again";
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

    async fn finish(&mut self, plan: &CopyPlan) -> Result<(), Error> {
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

/// Waits for all of them at once.
async fn all<T>(mut waiting: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in waiting.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
