//! The engine of tests and simulations: the same semantics as every other one, in memory, with faults on demand.

use crate::Error;
use crate::engine_facts::EngineFacts;
use crate::precondition::{Finding, LastWrite, RowHead, View, examine, moved};
use crate::store::{
    ALIKE_MAX, By, Card, Cell, Commit, Committed, Cursor, Durability, EPOCH_CELL, Hint, Index,
    JOURNAL_PAGE_MAX, JournalLine, Latest, Nonce, PAGE_ROWS_MAX, Page, Put, ReplyChange, Revision, Row,
    SeenAlike, Store, Versioned,
};
use async_trait::async_trait;
use semel_core::digest::Digest;
use semel_core::time::At;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Lets time pass for those who wait, so that a manual clock can drive them.
pub trait Sleeper: Send + Sync {
    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The fault of the next call of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// The commit lands, and its caller hears that nobody knows.
    LandsUnanswered,
    /// The commit lands, its answer is lost on the way, and the store's client sends it a second time by itself.
    LandsThenConflicts,
    /// The commit does not land, and its caller hears that nobody knows.
    VanishesUnanswered,
    /// The commit is refused for good.
    NotWritten,
    /// The read fails.
    NotRead,
}

pub struct MemoryStore {
    state: Mutex<MemoryState>,
    sleeper: Arc<dyn Sleeper>,
}

/// All that a store knew at one moment.
#[derive(Debug, Clone)]
pub struct MemorySnapshot(Tables);

#[derive(Debug, Default)]
struct MemoryState {
    tables: Tables,
    /// The state after a power cut, where lazy commits have come since the last durable one.
    synced: Option<Tables>,
    faults: VecDeque<InjectedFault>,
    waiting: HashMap<Digest, Vec<MemoryWaiter>>,
    durable_commits: u64,
    next_waiting: u64,
}

#[derive(Debug)]
struct MemoryWaiter {
    id: u64,
    since: Revision,
    waker: Waker,
}

#[derive(Debug, Clone, Default)]
struct Tables {
    rows: BTreeMap<u64, Row>,
    /// The last commit of each row and cell.
    row_nonces: HashMap<u64, Nonce>,
    cell_nonces: HashMap<Digest, Nonce>,
    /// The rows of each record, in order of insertion.
    records: HashMap<Digest, Vec<u64>>,
    cells: HashMap<Digest, Cell>,
    journal: Vec<JournalLine>,
    last: u64,
}

impl MemoryStore {
    pub fn new(sleeper: Arc<dyn Sleeper>) -> Self {
        MemoryStore { state: Mutex::default(), sleeper }
    }

    /// The next call that this fault fits fails with it; several are used up in order.
    pub fn inject(&self, fault: InjectedFault) {
        self.state().faults.push_back(fault);
    }

    /// The faults that were not used up are gone.
    pub fn recover(&self) {
        self.state().faults.clear();
    }

    pub fn snapshot(&self) -> MemorySnapshot {
        MemorySnapshot(self.state().tables.clone())
    }

    /// Forgets everything after the snapshot, as a failover to a replica that lags does.
    pub fn fail_over_to(&self, snapshot: &MemorySnapshot) {
        let mut state = self.state();
        (state.tables, state.synced) = (snapshot.0.clone(), None);
    }

    /// Loses the lazy commits that no durable one came after.
    pub fn cut_power(&self) {
        let mut state = self.state();
        if let Some(synced) = state.synced.take() {
            state.tables = synced;
        }
    }

    pub fn durable_commits(&self) -> u64 {
        self.state().durable_commits
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readable(&self) -> Result<MutexGuard<'_, MemoryState>, Error> {
        let mut state = self.state();
        if state.faults.front() == Some(&InjectedFault::NotRead) {
            state.faults.pop_front();
            return Err(Error::NotRead { what: "an injected fault".to_owned() });
        }
        Ok(state)
    }
}

impl MemoryState {
    fn commit(&mut self, commit: &Commit) -> Result<Committed, Error> {
        let fault = self.faults.front().copied().filter(|fault| *fault != InjectedFault::NotRead);
        if fault.is_some() {
            self.faults.pop_front();
        }
        match fault {
            Some(InjectedFault::NotWritten) => {
                return Err(Error::NotWritten { what: "an injected fault".to_owned() });
            }
            Some(InjectedFault::VanishesUnanswered) => return Ok(Committed::Unknown),
            _ => {}
        }
        let answer = self.try_commit(commit);
        match (fault, &answer) {
            (Some(InjectedFault::LandsThenConflicts), _) => self.try_commit(commit),
            (Some(InjectedFault::LandsUnanswered), Ok(Committed::Done)) => Ok(Committed::Unknown),
            _ => answer,
        }
    }

    fn try_commit(&mut self, commit: &Commit) -> Result<Committed, Error> {
        let Ok(finding) = examine(&mut self.tables, commit);
        match finding {
            Finding::Clear(found) => self.land(commit, found),
            Finding::Landed => {}
            Finding::Conflict(conflict) => return Ok(Committed::Conflict(conflict)),
            Finding::Absurd(what) => return Err(Error::NotWritten { what }),
        }
        Ok(Committed::Done)
    }

    fn land(&mut self, commit: &Commit, found: Vec<Option<RowHead>>) {
        match commit.durability {
            Durability::Durable => self.synced = None,
            Durability::Lazy if self.synced.is_none() => self.synced = Some(self.tables.clone()),
            Durability::Lazy => {}
        }
        for (put, head) in commit.puts.iter().zip(found) {
            self.tables.put(commit.nonce, put, head);
        }
        self.tables.journal.extend(commit.journal.iter().cloned());
        self.durable_commits += u64::from(commit.durability == Durability::Durable);
    }

    /// Those who wait for a key that this commit moved.
    fn woken_by(&mut self, commit: &Commit) -> Vec<Waker> {
        let mut woken = Vec::new();
        for (key, revision) in moved(commit) {
            let Some(waiting) = self.waiting.get_mut(&key) else { continue };
            let past = |since: Revision| revision > since || revision == Revision::ABSENT;
            woken.extend(waiting.extract_if(.., |one| past(one.since)).map(|one| one.waker));
            if waiting.is_empty() {
                self.waiting.remove(&key);
            }
        }
        woken
    }
}

impl Tables {
    fn put(&mut self, nonce: Nonce, put: &Put, head: Option<RowHead>) {
        match put {
            Put::Record { key, ordinal, expected, index, body, reply, .. } => {
                let id = head.map_or(self.last + 1, |head| head.id);
                let kept = self.rows.remove(&id).and_then(|row| row.reply);
                let reply = match reply {
                    ReplyChange::Keep => kept,
                    ReplyChange::Set(reply) => Some(reply.clone()),
                    ReplyChange::Drop => None,
                };
                let (index, body) = (Index::clone(index), body.clone());
                let row = Row { key: *key, ordinal: *ordinal, revision: expected.next(), index, body, reply };
                self.rows.insert(id, row);
                self.row_nonces.insert(id, nonce);
                if id > self.last {
                    self.last = id;
                    self.records.entry(*key).or_default().push(id);
                }
            }
            Put::Forget { key, .. } => {
                let id = head.expect("a row to forget was found by the check").id;
                self.rows.remove(&id);
                self.row_nonces.remove(&id);
                if let Some(ids) = self.records.get_mut(key) {
                    ids.retain(|other| *other != id);
                }
            }
            Put::DropReply { .. } => {
                let id = head.expect("a row whose reply goes was found by the check").id;
                if let Some(row) = self.rows.get_mut(&id) {
                    row.reply = None;
                }
            }
            Put::Cell { key, expected, body } => {
                self.cells.insert(*key, Cell { revision: expected.next(), body: body.clone() });
                self.cell_nonces.insert(*key, nonce);
            }
            Put::ForgetCell { key, .. } => {
                self.cells.remove(key);
                self.cell_nonces.remove(key);
            }
        }
    }

    fn newest_id(&self, key: Digest) -> Option<u64> {
        self.records.get(&key)?.last().copied()
    }

    fn head(&self, id: u64) -> RowHead {
        let row = &self.rows[&id];
        let last_write = LastWrite { revision: row.revision, nonce: self.row_nonces[&id] };
        RowHead { id, ordinal: row.ordinal, last_write, index: row.index.clone(), reply_apart: false }
    }

    fn revision(&self, key: Digest) -> Revision {
        let row = self.newest_id(key).map(|id| self.rows[&id].revision);
        row.max(self.cells.get(&key).map(|cell| cell.revision)).unwrap_or_default()
    }

    fn find(&self, key: Digest, ordinal: u32) -> Option<(u64, &Row)> {
        let ids = self.records.get(&key)?;
        ids.iter().map(|id| (*id, &self.rows[id])).find(|(_, row)| row.ordinal == ordinal)
    }
}

impl View for Tables {
    type Error = Infallible;

    fn newest(&mut self, key: Digest) -> Result<Option<RowHead>, Infallible> {
        Ok(self.newest_id(key).map(|id| self.head(id)))
    }

    fn row(&mut self, key: Digest, ordinal: u32) -> Result<Option<RowHead>, Infallible> {
        Ok(self.find(key, ordinal).map(|(id, _)| self.head(id)))
    }

    fn cell(&mut self, key: Digest) -> Result<LastWrite, Infallible> {
        let last = |cell: &Cell| LastWrite { revision: cell.revision, nonce: self.cell_nonces[&key] };
        Ok(self.cells.get(&key).map_or(LastWrite::NONE, last))
    }

    fn open_relative(
        &mut self,
        family: Digest,
        except: Option<Digest>,
    ) -> Result<Option<Digest>, Infallible> {
        let relative = |row: &&Row| row.index.open && row.index.family == family && Some(row.key) != except;
        Ok(self.rows.values().find(relative).map(|row| row.key))
    }

    fn alike(&mut self, alike: Digest) -> Result<SeenAlike, Infallible> {
        let rows = || self.rows.iter().filter(|(_, row)| row.index.alike == Some(alike));
        let newest = rows().next_back().map(|(id, _)| Cursor(*id));
        let newest_ones = rows().rev().take(ALIKE_MAX);
        let changes = newest_ones.map(|(id, row)| Card::of(Cursor(*id), row).changes()).sum();
        let open = rows().rev().filter(|(_, row)| row.index.open).take(PAGE_ROWS_MAX);
        let open = open.map(|(id, _)| id).sum();
        Ok(SeenAlike { newest, changes, open })
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn read(&self, key: Digest) -> Result<Versioned, Error> {
        let state = self.readable()?;
        let tables = &state.tables;
        let row = tables.newest_id(key).map(|id| tables.rows[&id].clone());
        let revision = row.as_ref().map_or(Revision::ABSENT, |row| row.revision);
        Ok(Versioned {
            revision,
            row,
            epoch: tables.cells.get(&EPOCH_CELL).map_or(Revision::ABSENT, |c| c.revision),
            position: tables.journal.len() as u64,
        })
    }

    async fn cell(&self, key: Digest) -> Result<Option<Cell>, Error> {
        Ok(self.readable()?.tables.cells.get(&key).cloned())
    }

    async fn commit(&self, commit: Arc<Commit>) -> Result<Committed, Error> {
        let (answer, woken) = {
            let mut state = self.state();
            let answer = state.commit(&commit);
            let lands = matches!(answer, Ok(Committed::Done | Committed::Unknown));
            (answer, if lands { state.woken_by(&commit) } else { Vec::new() })
        };
        woken.into_iter().for_each(Waker::wake);
        answer
    }

    async fn scan(&self, by: By, after: Option<Cursor>, limit: usize) -> Result<Page<Row>, Error> {
        let state = self.readable()?;
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let wanted = |row: &Row| match by {
            By::Run(run) => row.index.run == Some(run),
            By::Open => row.index.open,
            By::Owner(owner) => row.index.open && row.index.owner == Some(owner),
            By::ChangedBefore(at) => row.index.changed_at < at,
            By::All => true,
            By::Record(key) => row.key == key,
            By::Effect(effect) => row.index.effect == effect,
        };
        let first = after.map_or(0, |Cursor(id)| id.saturating_add(1));
        let mut found = state.tables.rows.range(first..).filter(|(_, row)| wanted(row)).peekable();
        let mut page = Page { items: Vec::new(), next: None };
        while let Some((id, row)) = found.next() {
            page.items.push(Row { reply: None, ..row.clone() });
            if page.items.len() == limit {
                page.next = found.peek().map(|_| Cursor(*id));
                break;
            }
        }
        Ok(page)
    }

    async fn latest(
        &self,
        of: Latest,
        before: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, Row)>, Error> {
        let state = self.readable()?;
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let wanted = |row: &Row| match of {
            Latest::All => true,
            Latest::Open => row.index.open,
            Latest::Run(run) => row.index.run == Some(run),
            Latest::Alike(alike) => row.index.alike == Some(alike),
            Latest::OpenAlike(alike) => row.index.open && row.index.alike == Some(alike),
        };
        let end = before.map_or(u64::MAX, |Cursor(id)| id);
        let found = state.tables.rows.range(..end).rev().filter(|(_, row)| wanted(row));
        let mut items: Vec<_> = found
            .take(limit + 1)
            .map(|(id, row)| (Cursor(*id), Row { reply: None, ..row.clone() }))
            .collect();
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|(cursor, _)| *cursor);
        Ok(Page { items, next })
    }

    async fn journal(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, JournalLine)>, Error> {
        let state = self.readable()?;
        let journal = &state.tables.journal;
        let first =
            after.map_or(0, |Cursor(id)| usize::try_from(id).unwrap_or(usize::MAX)).min(journal.len());
        let last = first.saturating_add(limit.clamp(1, JOURNAL_PAGE_MAX)).min(journal.len());
        let numbered = |(n, line): (usize, &JournalLine)| (Cursor((first + n + 1) as u64), line.clone());
        let items = journal[first..last].iter().enumerate().map(numbered).collect();
        Ok(Page { items, next: (last < journal.len()).then_some(Cursor(last as u64)) })
    }

    async fn newest_lines(&self, limit: usize) -> Result<Vec<(Cursor, JournalLine)>, Error> {
        let state = self.readable()?;
        let numbered = state.tables.journal.iter().enumerate().rev();
        let newest = numbered.map(|(before, line)| (Cursor(before as u64 + 1), line.clone()));
        Ok(newest.take(limit.min(JOURNAL_PAGE_MAX)).collect())
    }

    async fn reply(&self, key: Digest, ordinal: u32) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.readable()?.tables.find(key, ordinal).and_then(|(_, row)| row.reply.clone()))
    }

    async fn cell_keys(&self) -> Result<Vec<Digest>, Error> {
        let mut keys: Vec<Digest> = self.readable()?.tables.cells.keys().copied().collect();
        keys.sort_unstable();
        Ok(keys)
    }

    fn engine(&self) -> &'static str {
        "memory"
    }

    fn is_durable(&self) -> bool {
        true
    }

    async fn describe(&self, _now: At) -> Result<EngineFacts, Error> {
        Ok(EngineFacts::of_memory())
    }

    async fn changed(&self, key: Digest, since: Revision, wait: Duration) -> Hint {
        let sleep = self.sleeper.sleep(wait);
        Moved { store: self, key, since, sleep, id: None }.await
    }
}

struct Moved<'s> {
    store: &'s MemoryStore,
    key: Digest,
    since: Revision,
    sleep: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Set while it stands in the list of waiters; taking it off the list means that a change was seen.
    id: Option<u64>,
}

impl Future for Moved<'_> {
    type Output = Hint;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Hint> {
        let mut state = self.store.state();
        if state.tables.revision(self.key) != self.since {
            return Poll::Ready(Hint::Changed);
        }
        let (key, since, fresh) = (self.key, self.since, state.next_waiting);
        let waiting = state.waiting.entry(key).or_default();
        match self.id {
            Some(id) => match waiting.iter_mut().find(|one| one.id == id) {
                Some(one) => one.waker.clone_from(context.waker()),
                None => return Poll::Ready(Hint::Changed),
            },
            None => {
                waiting.push(MemoryWaiter { id: fresh, since, waker: context.waker().clone() });
                state.next_waiting += 1;
            }
        }
        drop(state);
        self.id.get_or_insert(fresh);
        self.sleep.as_mut().poll(context).map(|()| Hint::TimedOut)
    }
}

impl Drop for Moved<'_> {
    fn drop(&mut self) {
        let mut state = self.store.state();
        if let Some(waiting) = state.waiting.get_mut(&self.key) {
            waiting.retain(|one| Some(one.id) != self.id);
            if waiting.is_empty() {
                state.waiting.remove(&self.key);
            }
        }
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
