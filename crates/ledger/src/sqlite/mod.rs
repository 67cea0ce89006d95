//! The embedded engine: one SQLite file in WAL mode, shared by any number of processes.
//!
//! It never opens the database file by any other way than SQLite: closing such a descriptor would drop the POSIX
//! locks that SQLite holds on the file for the whole process.

mod apply;
mod at_once;
mod backup;
mod batching;
mod checkpoint;
mod columns;
mod connection;
mod epoch;
mod fault;
mod group_commit;
mod head_cache;
mod identity;
mod older;
mod open;
mod poller;
mod read;
mod readers;
mod renew;
mod scan;
mod schema;
mod statements;
mod watermark;
mod witness;
mod writer;
mod writer_turn;

pub use backup::{Replacement, back_up};
pub use older::export_older;
pub use open::{LedgerPast, OpenOptions, OpenedStore};
pub use renew::{SecretRenewal, renew_secret};
pub use schema::FORMAT;

use crate::Error;
use crate::clock;
use crate::engine_facts::EngineFacts;
use crate::histogram::{Histogram, HistogramSnapshot};
use crate::place::Place;
use crate::store::{
    By, Card, Cell, Commit, Committed, Cursor, Hint, JournalLine, Latest, Page, Revision, Row, Store,
    Versioned,
};
use crate::waiters::Waiters;
use async_trait::async_trait;
use fault::SqliteFault;
use group_commit::GroupCommit;
use poller::Poller;
use readers::Readers;
use rusqlite::Connection;
use semel_core::digest::Digest;
use semel_core::time::At;
use std::sync::Arc;
use std::time::Duration;
use witness::KeyWitness;

/// How often a blocking waiter looks, at first and at last.
const LOOK: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// The version of the engine that is linked in.
pub fn version() -> &'static str {
    rusqlite::version()
}

#[derive(Debug)]
pub struct SqliteStore {
    place: Place,
    /// `None` in a store that only reads.
    lane: Option<Arc<GroupCommit>>,
    readers: Arc<Readers>,
    waiters: Arc<Waiters>,
    poller: Poller,
    witness: KeyWitness,
    blocking: bool,
    /// By the format that it has.
    is_newer: bool,
    /// Connections and locks do not survive `fork`; a child must open the ledger itself.
    process: u32,
}

impl SqliteStore {
    /// Durable commits so far, each of them one fsync of the WAL however many callers shared it.
    pub fn durable_commits(&self) -> u64 {
        self.lane.as_ref().map_or(0, |lane| lane.durable_commits())
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Looks at every page and every index, and at what SQLite cannot know. Takes time in proportion to the ledger.
    /// An empty list means that all is well.
    pub fn integrity_check(&self) -> Result<Vec<String>, Error> {
        self.with_reader(|connection| {
            let mut check = connection.prepare("PRAGMA integrity_check(100)")?;
            let complaints =
                check.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
            let mut complaints: Vec<_> = complaints.into_iter().filter(|line| line != "ok").collect();
            let own = [
                (
                    "open effects are missing from the tree of open effects",
                    "SELECT count(*) FROM whole WHERE open AND id NOT IN (SELECT id FROM open)",
                ),
                (
                    "settled effects stand in the tree of open effects",
                    "SELECT count(DISTINCT id) FROM open WHERE id NOT IN (SELECT id FROM whole WHERE whole.open)",
                ),
                (
                    "effects of a record share their number",
                    "SELECT count(*) FROM (SELECT 1 FROM effect GROUP BY key, ordinal HAVING count(*) > 1)",
                ),
                (
                    "effects have columns that cannot be read",
                    "SELECT count(*) FROM effect WHERE length(key) <> 32 OR length(effect) <> 16 \
                     OR length(family) <> 32 OR length(ifnull(alike, key)) <> 32 OR length(ifnull(run, key)) <> 32 \
                     OR length(ifnull(owner, effect)) <> 16 OR length(nonce) <> 16",
                ),
                (
                    "outcomes, marks or replies belong to no effect",
                    "SELECT count(*) FROM (SELECT id FROM outcome UNION ALL SELECT id FROM delivery \
                     UNION ALL SELECT id FROM reply) WHERE id NOT IN (SELECT id FROM effect)",
                ),
            ];
            for (what, count) in own {
                let count: i64 = connection.query_row(count, [], |row| row.get(0))?;
                if count > 0 {
                    complaints.push(format!("{count} {what}"));
                }
            }
            Ok(complaints)
        })
    }

    fn with_reader<T>(&self, read: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        self.same_process().map_err(|what| Error::NotRead { what })?;
        // A command opens one connection and no more; nobody else in its process wants to write meanwhile.
        if let Some(lane) = self.lane.as_ref().filter(|_| self.blocking)
            && let Some(writer) = lane.try_writer()
            && let Some(connection) = writer.connection().filter(|connection| connection.is_autocommit())
        {
            match read(connection) {
                Err(error) if SqliteFault::of(&error).spoils_connection() => {}
                result => return result.map_err(|error| SqliteFault::while_reading(&self.place, &error)),
            }
        }
        self.readers.with(read)
    }

    fn same_process(&self) -> Result<(), String> {
        if std::process::id() == self.process {
            return Ok(());
        }
        Err("it was opened before this process was forked off; open it again".to_owned())
    }

    fn watch_blocking(&self, key: Digest, since: Revision, wait: Duration) -> Hint {
        let until = clock::now() + wait;
        let mut nap = LOOK.0;
        loop {
            let seen = self.with_reader(|connection| read::revision(connection, key));
            if seen.is_ok_and(|revision| revision != since) {
                return Hint::Changed;
            }
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                return Hint::TimedOut;
            }
            clock::sleep(nap.min(left));
            nap = (nap * 2).min(LOOK.1);
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn read(&self, key: Digest) -> Result<Versioned, Error> {
        self.with_reader(|connection| read::newest(connection, key, &self.witness))
    }

    async fn cell(&self, key: Digest) -> Result<Option<Cell>, Error> {
        self.with_reader(|connection| read::cell(connection, key))
    }

    async fn commit(&self, commit: Arc<Commit>) -> Result<Committed, Error> {
        self.same_process().map_err(|what| Error::NotWritten { what })?;
        let Some(lane) = &self.lane else {
            let why =
                if self.is_newer { "a newer semel has written it" } else { "it was opened for reading only" };
            return Err(Error::NotWritten { what: why.to_owned() });
        };
        if self.blocking { lane.commit_blocking(commit) } else { lane.commit(commit).await }
    }

    async fn scan(&self, by: By, after: Option<Cursor>, limit: usize) -> Result<Page<Row>, Error> {
        self.with_reader(|connection| scan::scan(connection, by, after, limit))
    }

    async fn occurrence(&self, key: Digest, ordinal: u32) -> Result<Option<Row>, Error> {
        self.with_reader(|connection| read::occurrence(connection, key, ordinal))
    }

    async fn latest(
        &self,
        of: Latest,
        before: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, Row)>, Error> {
        self.with_reader(|connection| scan::latest(connection, of, before, limit))
    }

    async fn cards(&self, alike: Digest) -> Result<Vec<Card>, Error> {
        self.with_reader(|connection| scan::cards(connection, alike))
    }

    async fn journal(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, JournalLine)>, Error> {
        self.with_reader(|connection| read::journal(connection, after, limit))
    }

    async fn newest_lines(&self, limit: usize) -> Result<Vec<(Cursor, JournalLine)>, Error> {
        self.with_reader(|connection| read::newest_lines(connection, limit))
    }

    async fn reply(&self, key: Digest, ordinal: u32) -> Result<Option<Vec<u8>>, Error> {
        self.with_reader(|connection| read::reply(connection, key, ordinal))
    }

    async fn cell_keys(&self) -> Result<Vec<Digest>, Error> {
        self.with_reader(read::cell_keys)
    }

    async fn changed(&self, key: Digest, since: Revision, wait: Duration) -> Hint {
        if self.blocking || !self.poller.start() {
            return self.watch_blocking(key, since, wait);
        }
        self.waiters.wait(key, since, wait).await
    }

    fn commit_times(&self) -> HistogramSnapshot {
        self.lane.as_ref().map_or_else(|| Histogram::default().counted(), |lane| lane.times())
    }

    fn is_newer(&self) -> bool {
        self.is_newer
    }

    fn engine(&self) -> &'static str {
        "sqlite"
    }

    fn is_durable(&self) -> bool {
        true
    }

    async fn describe(&self, _now: At) -> Result<EngineFacts, Error> {
        let mode: String =
            self.with_reader(|connection| connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)))?;
        Ok(EngineFacts {
            server: format!("SQLite {}", version()),
            persistence: format!("journal_mode {mode}, synchronous full for claims"),
            durability: "durable: on this disk before anything is sent; the loss of the disk loses all"
                .to_owned(),
            clock_ahead_ms: None,
        })
    }

    async fn check(&self) -> Result<Vec<String>, Error> {
        self.integrity_check()
    }

    /// Folds the WAL back, so that the database file alone is the whole ledger: for a program that ran for long and
    /// ends. An older file put in its place would else lie beside a later WAL, which SQLite takes for
    /// its own. It waits for no other process; while others are at work, the last of them does it.
    fn fold_back(&self) {
        if self.same_process().is_ok()
            && let Some(mut writer) = self.lane.as_ref().and_then(|lane| lane.writer_at_the_end())
        {
            writer.fold_back();
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // In a forked child the threads do not exist and must not be waited for.
        if self.same_process().is_ok() {
            self.poller.close();
            if let Some(lane) = &self.lane {
                lane.close();
            }
        }
    }
}
