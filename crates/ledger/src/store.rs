//! Where the bytes lie: the small trait that every engine implements, and the one write it has.
//!
//! A store knows rows, revisions and an append-only journal. It never interprets a body, so no lifecycle rule
//! can be written a second time in SQL. Batching is its private matter; a commit returns only after it is durable.

use crate::Error;
use crate::engine_facts::EngineFacts;
use crate::histogram::{Histogram, HistogramSnapshot};
use crate::small_records::cell_bytes;
use async_trait::async_trait;
use semel_core::digest::Digest;
pub use semel_core::ids::{Nonce, OwnerId};
use semel_core::time::At;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Counts the writes of one row; 0 means that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Revision(pub u64);

impl Revision {
    pub const ABSENT: Revision = Revision(0);

    #[must_use]
    pub fn next(self) -> Revision {
        Revision(self.0 + 1)
    }
}

/// One row of the record table: an effect, and what a store may look it up by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The intent key. Several rows share it when the record holds several effects.
    pub key: Digest,
    /// Which effect of the record this is, from 1. Reads by key give the highest.
    pub ordinal: u32,
    pub revision: Revision,
    pub index: Index,
    pub body: Body,
    /// The recorded reply, if one is kept. Lives beside the row so that pruning need not rewrite facts.
    pub reply: Option<Vec<u8>>,
}

/// An effect as bytes, in parts by how often they change. Stores keep them as they are, and may keep them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Shared: it is written again with each change where a store keeps a row in one piece.
    pub fixed: Arc<[u8]>,
    pub state: Vec<u8>,
    /// The delivered mark; empty without one.
    pub delivery: Vec<u8>,
}

/// The parts of a [`Body`] that a write changes: this one and all that follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Fixed,
    State,
    Delivery,
}

/// The row whose revision a write expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// The newest row of the record; 0 = no row at all. An ordinal one above it inserts a new row, which becomes the
    /// newest; its own ordinal overwrites it.
    Newest,
    /// The very row that is overwritten, whatever came after it in its record.
    Itself,
}

/// The columns that scans use. The ledger derives them from the body at every write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// The effect's public id, unique over the ledger.
    pub effect: u128,
    /// Tenant and run, as one digest; `None` when the effect belongs to no named run.
    pub run: Option<Digest>,
    /// Same tenant, principal, authority, action and identity, whatever the scope.
    pub family: Digest,
    /// Other calls find it by this, to compare themselves with it: its outline, or the server at which a removing one
    /// removed something.
    pub alike: Option<Digest>,
    /// Tells those of one `alike` apart that differ in more than stamps.
    pub content: u64,
    /// In flight or in doubt.
    pub open: bool,
    /// The holder of the open attempt; `None` unless in flight.
    pub owner: Option<OwnerId>,
    pub opened_at: At,
    /// The last time the effect changed its state.
    pub changed_at: At,
}

/// A value with a revision and nothing else: a turn, a fence, the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    pub revision: Revision,
    pub body: Vec<u8>,
}

/// The result of [`Store::read`] for an intent key: the newest row, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// Revision of the newest row; 0 = absent.
    pub revision: Revision,
    pub row: Option<Row>,
    /// Revision of the epoch cell as of this read.
    pub epoch: Revision,
    /// The highest number that the engine has given so far. Every commit with a line raises it, and only older data lowers
    /// it. 0: the engine watches over that itself.
    pub position: u64,
}

/// The cell whose revision [`Store::read`] reports as the epoch. No digest of anything is all zeros.
pub const EPOCH_CELL: Digest = Digest([0; 32]);

/// The cell that says that this ledger is a copy of another one, and how far it has come (see [`crate::copy`]).
pub const COPY_CELL: Digest = Digest([0xff; 32]);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// Writes the row (key, ordinal), whose revision becomes `expected + 1`.
    Record {
        key: Digest,
        ordinal: u32,
        expected: Revision,
        against: Against,
        index: Box<Index>,
        body: Body,
        /// An inserted row has all parts, whatever this says.
        changed: Part,
        reply: ReplyChange,
    },
    /// Deletes the row (key, ordinal) and its reply, at the revision that very row has. Retention of facts only.
    Forget { key: Digest, ordinal: u32, expected: Revision },
    /// Deletes the reply of the row (key, ordinal) and nothing else. Retention of replies only.
    DropReply { key: Digest, ordinal: u32 },
    /// Writes a cell at `expected` (0 = must be absent); its revision becomes `expected + 1`.
    Cell { key: Digest, expected: Revision, body: Vec<u8> },
    /// Deletes a cell at the revision that it has. Its next write begins again at revision 1.
    ForgetCell { key: Digest, expected: Revision },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyChange {
    Keep,
    Set(Vec<u8>),
    Drop,
}

/// Conditions that must still hold when the commit lands. Checked in the same transaction as the puts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Require {
    /// Cells (run fence, epoch) and the revision each must have; 0 = absent.
    pub cells: Vec<(Digest, Revision)>,
    /// No *open* row with this family may exist under another intent key than this commit's record.
    pub family_quiet: Option<Digest>,
    /// The rows with this [`Index::alike`] must be as they were seen.
    pub alike: Option<(Digest, SeenAlike)>,
    /// It begins something, so it may be refused at once where too many such commits wait, and other hosts hear with it
    /// that its process is alive. A commit that ends something is never refused.
    pub begins: bool,
}

/// The rows that a call was compared with, as far as one more of them would show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeenAlike {
    /// The newest one.
    pub newest: Option<Cursor>,
    /// How often the newest [`ALIKE_MAX`] were written, added up: an older one may be tried again. Marks of delivery are
    /// not counted, for they are in nobody's way.
    pub changes: u64,
    /// The numbers of the open ones, of [`PAGE_ROWS_MAX`] at most, added up.
    pub open: u64,
}

/// A call is compared with so many of the newest rows that are like it, and with all open ones.
pub const ALIKE_MAX: usize = 64;

/// A row as calls that are like it see it first. Few of them have to be read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    pub cursor: Cursor,
    pub key: Digest,
    pub ordinal: u32,
    /// See [`Index::content`].
    pub content: u64,
    pub open: bool,
    /// It has its mark.
    pub delivered: bool,
    pub revision: Revision,
}

impl Card {
    pub(crate) fn of(cursor: Cursor, row: &Row) -> Card {
        let Row { key, ordinal, revision, index: Index { content, open, .. }, .. } = *row;
        let delivered = !row.body.delivery.is_empty();
        Card { cursor, key, ordinal, content, open, delivered, revision }
    }

    /// How often its row was written but for its mark.
    pub(crate) fn changes(&self) -> u64 {
        self.revision.0.saturating_sub(u64::from(self.delivered))
    }
}

impl SeenAlike {
    /// Of the newest ones, and older ones that are open, newest first.
    pub fn of(cards: &[Card]) -> SeenAlike {
        SeenAlike {
            newest: cards.first().map(|card| card.cursor),
            changes: cards.iter().take(ALIKE_MAX).map(Card::changes).sum(),
            // As many as the commit looks at.
            open: cards.iter().filter(|card| card.open).take(PAGE_ROWS_MAX).map(|card| card.cursor.0).sum(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// On the disk before [`Store::commit`] returns.
    Durable,
    /// Survives the death of the process, not of the machine. For what may be lost: delivered marks, counts, and all
    /// about generations, which are generated again.
    Lazy,
}

/// One line of the append-only history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalLine {
    pub at: At,
    /// The effect concerned; `None` for lines about a run or the ledger itself.
    pub effect: Option<u128>,
    /// Tenant and run, as in [`Index::run`].
    pub run: Option<Digest>,
    /// A stable word: `claimed`, `applied`, `lapsed`, ….
    pub kind: String,
    /// One JSON object.
    pub data: String,
}

/// The one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Names this write, and no other. Every row and cell keeps the nonce of its last write, so that a commit whose
    /// answer was lost can be sent again: one that has landed is [`Committed::Done`], and is not written twice. What it
    /// deletes cannot tell; a commit of deletions alone is a conflict the second time.
    pub nonce: Nonce,
    /// Few: a record with its turn, its caller's key and its run's visits; or a day's counts and their total. A copy of a whole ledger
    /// writes more at once, beside [`COPY_CELL`].
    pub puts: Vec<Put>,
    pub require: Require,
    pub journal: Vec<JournalLine>,
    pub durability: Durability,
}

impl Put {
    /// A cell that holds this value.
    pub(crate) fn cell(key: Digest, expected: Revision, value: &impl Serialize) -> Put {
        Put::Cell { key, expected, body: cell_bytes(key, expected.next(), value) }
    }

    /// The bytes that the caller has given it, about.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Put::Record { body: Body { fixed, state, delivery }, reply, .. } => {
                let reply = if let ReplyChange::Set(reply) = reply { reply.len() } else { 0 };
                fixed.len() + state.len() + delivery.len() + reply
            }
            Put::Cell { body, .. } => body.len(),
            Put::Forget { .. } | Put::DropReply { .. } | Put::ForgetCell { .. } => 0,
        }
    }
}

impl Commit {
    /// Whether the ledger has come further with it, for good.
    pub(crate) fn is_progress(&self) -> bool {
        self.durability == Durability::Durable && !self.journal.is_empty()
    }

    /// A durable one that requires nothing else and leaves no line.
    pub fn of(nonce: Nonce, puts: Vec<Put>) -> Commit {
        let (require, journal) = (Require::default(), Vec::new());
        Commit { nonce, puts, require, journal, durability: Durability::Durable }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// Durable. The revisions of the puts are `expected + 1`.
    Done,
    /// Nothing was written.
    Conflict(Conflict),
    /// It may or may not have landed. The same commit again tells, and lands if it has not.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// The record has another revision than expected.
    Record,
    /// This cell has another revision than expected or required.
    Cell(Digest),
    /// An open row of the family exists under this other intent key.
    Family(Digest),
    /// A row was added that perhaps means the same.
    Alike,
}

/// The filter of a scan, always in order of insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Run(Digest),
    /// In flight or in doubt.
    Open,
    /// Open rows held by one process.
    Owner(OwnerId),
    /// All rows whose state last changed before this instant.
    ChangedBefore(At),
    /// Every row.
    All,
    /// Every effect of one record.
    Record(Digest),
    /// The row of one effect id.
    Effect(u128),
}

/// The filter of a scan from the newest on, always in the reverse order of insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latest {
    All,
    /// In flight or in doubt.
    Open,
    Run(Digest),
    /// By [`Index::alike`].
    Alike(Digest),
    /// The open ones of these.
    OpenAlike(Digest),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cursor(pub u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// Cuts what was read for one item more than the limit, which tells whether there is a next page.
    pub(crate) fn cut(mut items: Vec<T>, limit: usize, cursor: impl Fn(&T) -> Cursor) -> Page<T> {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(cursor);
        Page { items, next }
    }
}

/// Something may have changed, or the time is up; only a read tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    Changed,
    TimedOut,
}

/// At most this many rows in one page: a scan must not hold a read transaction for long.
pub const PAGE_ROWS_MAX: usize = 500;

/// At most this many lines of the journal in one page.
pub const JOURNAL_PAGE_MAX: usize = 1_000;

#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    async fn read(&self, key: Digest) -> Result<Versioned, Error>;

    async fn cell(&self, key: Digest) -> Result<Option<Cell>, Error>;

    async fn commit(&self, commit: Arc<Commit>) -> Result<Committed, Error>;

    /// Rows without their replies, `limit` at most (itself at most [`PAGE_ROWS_MAX`]), after the cursor.
    async fn scan(&self, by: By, after: Option<Cursor>, limit: usize) -> Result<Page<Row>, Error>;

    /// One effect of a record, without its reply.
    async fn occurrence(&self, key: Digest, ordinal: u32) -> Result<Option<Row>, Error> {
        let mut after = None;
        loop {
            let page = self.scan(By::Record(key), after, PAGE_ROWS_MAX).await?;
            let found = page.items.into_iter().find(|row| row.ordinal == ordinal);
            if found.is_some() || page.next.is_none() {
                return Ok(found);
            }
            after = page.next;
        }
    }

    /// Rows without their replies, newest first, before the cursor, each with its own: for people, who read the newest
    /// and stop. `limit` as in [`Store::scan`].
    async fn latest(
        &self,
        of: Latest,
        before: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, Row)>, Error>;

    /// The cards of the newest [`ALIKE_MAX`] rows with this [`Index::alike`], and of older ones that are open, of
    /// [`PAGE_ROWS_MAX`] at most; newest first.
    async fn cards(&self, alike: Digest) -> Result<Vec<Card>, Error> {
        let Page { items: mut rows, next } = self.latest(Latest::Alike(alike), None, ALIKE_MAX).await?;
        if let (Some(_), Some(oldest)) = (next, rows.last().map(|(cursor, _)| *cursor)) {
            let open = self.latest(Latest::OpenAlike(alike), Some(oldest), PAGE_ROWS_MAX).await?;
            rows.extend(open.items);
        }
        Ok(rows.iter().map(|(cursor, row)| Card::of(*cursor, row)).collect())
    }

    /// Lines after the cursor, oldest first, with their own cursors.
    async fn journal(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, JournalLine)>, Error>;

    /// The newest lines, the last one first, with their cursors; `limit` as in [`Store::journal`].
    async fn newest_lines(&self, limit: usize) -> Result<Vec<(Cursor, JournalLine)>, Error>;

    /// The recorded reply of one effect of a record.
    async fn reply(&self, key: Digest, ordinal: u32) -> Result<Option<Vec<u8>>, Error>;

    /// The keys of all cells, in their order. All at once, 32 bytes each: a hash of Redis has no order to page by. For
    /// copies of a whole ledger.
    async fn cell_keys(&self) -> Result<Vec<Digest>, Error> {
        Err(Error::NotRead { what: "this engine does not list its cells".to_owned() })
    }

    /// Resolves when the row or cell under `key` may have moved past `since`, or at the latest after `wait`.
    /// It may be spurious; polling by reads is the truth.
    async fn changed(&self, key: Digest, since: Revision, wait: std::time::Duration) -> Hint;

    /// From now on the others who share the ledger hear of this process, as long as the store is open. Engines of one
    /// machine need not tell them: there the locks are the proof.
    fn announce(&self, _owner: OwnerId) {}

    /// Those of these who were heard of, and are not any more.
    async fn silent(&self, _owners: &[OwnerId]) -> Result<Vec<OwnerId>, Error> {
        Ok(Vec::new())
    }

    /// The engine's name, from a closed set.
    fn engine(&self) -> &'static str;

    /// Whether an acknowledged durable commit is on a disk. Else the ledger is best effort, and answers say so.
    fn is_durable(&self) -> bool;

    /// The engine and how far its answers can be trusted, for people. `now` is this host's clock.
    async fn describe(&self, now: At) -> Result<EngineFacts, Error>;

    /// Whether lines of the journal are there that cannot be read yet.
    async fn holds_lines_back(&self) -> Result<bool, Error> {
        Ok(false)
    }

    /// A newer semel has written it. It is read as far as this one can, and every commit is refused.
    fn is_newer(&self) -> bool {
        false
    }

    /// What is wrong with the bytes as they lie there, in words. Reads everything.
    async fn check(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// How long durable commits took, since this process opened it.
    fn commit_times(&self) -> HistogramSnapshot {
        Histogram::default().counted()
    }

    /// Nothing more is to come: what the engine keeps beside the data goes into it.
    fn fold_back(&self) {}
}
