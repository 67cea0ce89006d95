//! A store in trouble: slow, sometimes down, sometimes silent about what it did.

use super::Sabotage;
use super::beneath::StoreBeneath;
use super::clock::ManualClock;
use super::executor::step_aside;
use super::random::SharedRandom;
use super::tally::EventTally;
use async_trait::async_trait;
use semel_core::digest::Digest;
use semel_core::effect::Occurrence;
use semel_core::time::At;
use semel_gate::clock::{Clock, block_on};
use semel_ledger::Error;
use semel_ledger::engine_facts::EngineFacts;
use semel_ledger::memory::InjectedFault;
use semel_ledger::record::{StoredEffect, decode};
use semel_ledger::store::{
    By, Cell, Commit, Committed, Cursor, Durability, Hint, Index, JournalLine, Latest, Page, Put, Revision,
    Row, Store, Versioned,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct ShakyStore {
    pub inner: StoreBeneath,
    pub clock: ManualClock,
    pub random: SharedRandom,
    pub tally: EventTally,
    pub trouble: StoreTrouble,
    pub broken: Option<Sabotage>,
}

/// How much goes wrong, shared by all who use the store.
#[derive(Debug, Clone, Default)]
pub struct StoreTrouble(Arc<Mutex<Level>>);

#[derive(Debug, Default)]
struct Level {
    /// Of a hundred calls, this many meet a fault.
    percent: u64,
    down_until: Duration,
}

impl StoreTrouble {
    pub fn set(&self, percent: u64) {
        let mut level = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *level = Level { percent, down_until: Duration::ZERO };
    }

    pub fn down_until(&self, until: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).down_until = until;
    }
}

impl ShakyStore {
    /// Others go first, sometimes for long. Gives the fault that strikes.
    async fn meet(&self, faults: &[(InjectedFault, &'static str)]) -> Option<InjectedFault> {
        for _ in 0..self.random.below(3) {
            step_aside().await;
        }
        if self.random.percent(2) {
            self.clock.nap(self.random.millis(1, 40)).await;
        }
        let (percent, down_until) = {
            let level = self.trouble.0.lock().unwrap_or_else(PoisonError::into_inner);
            (level.percent, level.down_until)
        };
        if self.clock.elapsed() < down_until {
            self.tally.count("store down");
            let last = faults.last().expect("every call has a fault that refuses it");
            return Some(last.0);
        }
        self.random.percent(percent).then(|| {
            let (fault, what) = *self.random.pick(faults);
            self.tally.count(what);
            fault
        })
    }

    async fn before_read(&self) -> Result<(), Error> {
        match self.meet(&[(InjectedFault::NotRead, "read failed")]).await {
            Some(_) => Err(Error::NotRead { what: "an injected fault".to_owned() }),
            None => Ok(()),
        }
    }

    fn write(&self, commit: Arc<Commit>, fault: Option<InjectedFault>) -> Result<Committed, Error> {
        let store = match (&self.inner, fault) {
            (_, None) => return block_on(self.inner.commit(commit)),
            (StoreBeneath::Memory(memory), Some(fault)) => {
                memory.inject(fault);
                return block_on(memory.commit(commit));
            }
            (StoreBeneath::Server(store), Some(_)) => store,
        };
        match fault {
            Some(InjectedFault::NotWritten) => {
                Err(Error::NotWritten { what: "an injected fault".to_owned() })
            }
            Some(InjectedFault::LandsUnanswered) => {
                block_on(store.commit(commit))?;
                Ok(Committed::Unknown)
            }
            // A driver that sends it again.
            Some(InjectedFault::LandsThenConflicts) => {
                block_on(store.commit(Arc::clone(&commit)))?;
                block_on(store.commit(commit))
            }
            _ => Ok(Committed::Unknown),
        }
    }
}

const COMMIT_FAULTS: [(InjectedFault, &str); 4] = [
    (InjectedFault::LandsUnanswered, "commit landed unanswered"),
    (InjectedFault::LandsThenConflicts, "commit landed and was sent again"),
    (InjectedFault::VanishesUnanswered, "commit vanished unanswered"),
    (InjectedFault::NotWritten, "commit refused"),
];

#[async_trait]
impl Store for ShakyStore {
    async fn read(&self, key: Digest) -> Result<Versioned, Error> {
        self.before_read().await?;
        let found = block_on(self.inner.read(key))?;
        // Nobody is to find out by himself.
        let position = if self.broken == Some(Sabotage::EpochMissed) { 0 } else { found.position };
        Ok(Versioned { position, ..found })
    }

    async fn cell(&self, key: Digest) -> Result<Option<Cell>, Error> {
        self.before_read().await?;
        block_on(self.inner.cell(key))
    }

    async fn commit(&self, commit: Arc<Commit>) -> Result<Committed, Error> {
        let fault = self.meet(&COMMIT_FAULTS).await;
        let mut commit = Arc::unwrap_or_clone(commit);
        if self.broken == Some(Sabotage::FenceIgnored) {
            commit.require.cells.clear();
        }
        if self.broken == Some(Sabotage::NothingSynced) {
            commit.durability = Durability::Lazy;
        }
        if self.broken == Some(Sabotage::PastDropped) {
            commit.puts.iter_mut().for_each(drop_the_past);
        }
        let done = self.write(commit.into(), fault);
        // The answer too takes its time.
        if self.random.percent(30) {
            step_aside().await;
        }
        done
    }

    async fn scan(&self, by: By, after: Option<Cursor>, limit: usize) -> Result<Page<Row>, Error> {
        self.before_read().await?;
        block_on(self.inner.scan(by, after, limit))
    }

    async fn latest(
        &self,
        of: Latest,
        before: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, Row)>, Error> {
        self.before_read().await?;
        block_on(self.inner.latest(of, before, limit))
    }

    async fn journal(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, JournalLine)>, Error> {
        self.before_read().await?;
        block_on(self.inner.journal(after, limit))
    }

    async fn newest_lines(&self, limit: usize) -> Result<Vec<(Cursor, JournalLine)>, Error> {
        self.before_read().await?;
        block_on(self.inner.newest_lines(limit))
    }

    async fn cell_keys(&self) -> Result<Vec<Digest>, Error> {
        self.before_read().await?;
        block_on(self.inner.cell_keys())
    }

    async fn reply(&self, key: Digest, ordinal: u32) -> Result<Option<Vec<u8>>, Error> {
        self.before_read().await?;
        block_on(self.inner.reply(key, ordinal))
    }

    fn engine(&self) -> &'static str {
        self.inner.engine()
    }

    fn is_durable(&self) -> bool {
        self.inner.is_durable()
    }

    async fn describe(&self, now: At) -> Result<EngineFacts, Error> {
        // A real server goes by another clock than the simulation.
        let facts = block_on(self.inner.describe(now))?;
        Ok(EngineFacts { clock_ahead_ms: None, ..facts })
    }

    async fn changed(&self, key: Digest, since: Revision, wait: Duration) -> Hint {
        match &self.inner {
            StoreBeneath::Memory(memory) => memory.changed(key, since, wait).await,
            // Nothing tells the clock of the simulation that a server has spoken; a hint may fail to come.
            StoreBeneath::Server(_) => {
                self.clock.nap(wait).await;
                Hint::TimedOut
            }
        }
    }
}

fn drop_the_past(put: &mut Put) {
    let Put::Record { key, ordinal, expected, index, body, .. } = put else { return };
    let (key, ordinal, revision, index) = (*key, *ordinal, *expected, Index::clone(index));
    let mut effect =
        decode(Row { key, ordinal, revision, index: index.clone(), body: body.clone(), reply: None }).effect;
    effect.occurrence = Occurrence { number: ordinal, ..Occurrence::first(effect.occurrence.reason) };
    *body = StoredEffect::first(key, index, effect).body(key);
}
