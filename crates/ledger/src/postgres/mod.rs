//! A ledger on PostgreSQL, for many hosts.
//!
//! A commit names the rows and cells that it touches, locks them by number, reads them, is examined in memory like on
//! every engine, and is written: two round trips, shared by all commits that arrive together. Constraints and guarded
//! updates decide again, should anybody write beside the locks.
//!
//! Connections live on a thread of their own, so that any executor can wait for them.

mod address;
mod batch;
mod columns;
mod connect;
mod describe;
mod heartbeat;
mod lineage;
mod needs;
mod prefetch;
mod read;
mod schema;
mod statements;
mod transaction;
mod wake;
mod write;

pub use address::PostgresAddress;

use crate::Error;
use crate::engine_facts::EngineFacts;
use crate::histogram::{Histogram, HistogramSnapshot};
use crate::server_io::{IoThread, Queued, look_for, submit};
use crate::store::{
    By, Card, Cell, Commit, Committed, Cursor, Hint, JournalLine, Latest, Page, Revision, Row, Store,
    Versioned,
};
use async_trait::async_trait;
use batch::Batcher;
use heartbeat::Heartbeat;
use read::Reader;
use schema::FoundLedger;
use semel_core::digest::{Digest, Secret};
use semel_core::ids::OwnerId;
use semel_core::time::At;
use statements::Sql;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use wake::News;

/// One batch is on its way while the next is gathered.
const BATCHERS: usize = 2;

/// More commits than this wait for a server that does not keep up; what begins something is refused then.
const QUEUE_MAX: usize = 10_000;

pub struct PostgresStore {
    address: PostgresAddress,
    queue: mpsc::Sender<Queued>,
    times: Histogram,
    reader: Arc<Reader>,
    news: Arc<News>,
    heartbeat: Arc<Heartbeat>,
    /// The format of a newer semel: it is read, and nothing is written.
    newer: Option<i32>,
    io: IoThread,
}

impl PostgresStore {
    /// Connects, refuses a server that could lose claims, and founds or migrates the ledger. Returns its secret;
    /// `fresh_secret` becomes that of a new one.
    pub async fn open(
        address: PostgresAddress,
        fresh_secret: [u8; 32],
    ) -> Result<(PostgresStore, Secret), Error> {
        let io = IoThread::start()?;
        let sql = Arc::new(Sql::new(&address.schema));
        let opening = {
            let (address, sql) = (address.clone(), Arc::clone(&sql));
            async move {
                let mut client = connect::session(&address).await?;
                let found = schema::migrate(&mut client, &address, fresh_secret).await?;
                if found.newer.is_none() {
                    lineage::begin_epoch(&mut client, &sql)
                        .await
                        .map_err(|error| Error::NotWritten { what: connect::explain(&error) })?;
                }
                Ok((client, found))
            }
        };
        let (client, FoundLedger { secret, newer }) = io.run(opening).await?;
        let news = Arc::<News>::default();
        let (queue, receiver) = mpsc::channel(QUEUE_MAX);
        let queue_end = Arc::new(Mutex::new(receiver));
        for _ in 0..BATCHERS {
            let batcher = Batcher {
                address: address.clone(),
                sql: Arc::clone(&sql),
                secret: secret.clone(),
                queue: Arc::clone(&queue_end),
                news: Arc::clone(&news),
            };
            io.spawn(batcher.run());
        }
        io.spawn(wake::listen(address.clone(), Arc::clone(&sql), Arc::clone(&news)));
        let reader = Arc::new(Reader::new(address.clone(), sql, client));
        let looking = Arc::clone(&reader);
        io.spawn(look_for(Arc::clone(&news.waiters), move |keys| {
            let reader = Arc::clone(&looking);
            async move { reader.revisions(keys).await }
        }));
        let heartbeat = Arc::<Heartbeat>::default();
        if newer.is_none() {
            io.spawn(Arc::clone(&heartbeat).run(Arc::clone(&reader)));
        }
        let times = Histogram::default();
        Ok((PostgresStore { address, queue, times, reader, news, heartbeat, newer, io }, secret))
    }

    pub fn address(&self) -> &PostgresAddress {
        &self.address
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn read(&self, key: Digest) -> Result<Versioned, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.read(key).await }).await
    }

    async fn cell(&self, key: Digest) -> Result<Option<Cell>, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.cell(key).await }).await
    }

    async fn commit(&self, commit: Arc<Commit>) -> Result<Committed, Error> {
        match self.newer {
            None => submit(&self.queue, &self.times, commit).await,
            Some(format) => Err(Error::NotWritten { what: schema::too_new(format) }),
        }
    }

    async fn scan(&self, by: By, after: Option<Cursor>, limit: usize) -> Result<Page<Row>, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.scan(by, after, limit).await }).await
    }

    async fn occurrence(&self, key: Digest, ordinal: u32) -> Result<Option<Row>, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.occurrence(key, ordinal).await }).await
    }

    async fn latest(
        &self,
        of: Latest,
        before: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, Row)>, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.latest(of, before, limit).await }).await
    }

    async fn cards(&self, alike: Digest) -> Result<Vec<Card>, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.cards(alike).await }).await
    }

    async fn journal(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, JournalLine)>, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.journal(after, limit).await }).await
    }

    async fn newest_lines(&self, limit: usize) -> Result<Vec<(Cursor, JournalLine)>, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.newest_lines(limit).await }).await
    }

    async fn reply(&self, key: Digest, ordinal: u32) -> Result<Option<Vec<u8>>, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.reply(key, ordinal).await }).await
    }

    async fn cell_keys(&self) -> Result<Vec<Digest>, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.cell_keys().await }).await
    }

    async fn changed(&self, key: Digest, since: Revision, wait: Duration) -> Hint {
        self.news.waiters.wait(key, since, wait).await
    }

    fn engine(&self) -> &'static str {
        "postgresql"
    }

    fn is_durable(&self) -> bool {
        true
    }

    async fn describe(&self, now: At) -> Result<EngineFacts, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.describe(now).await }).await
    }

    fn commit_times(&self) -> HistogramSnapshot {
        self.times.counted()
    }

    async fn holds_lines_back(&self) -> Result<bool, Error> {
        let reader = Arc::clone(&self.reader);
        self.io.run(async move { reader.holds_lines_back().await }).await
    }

    fn is_newer(&self) -> bool {
        self.newer.is_some()
    }

    fn announce(&self, owner: OwnerId) {
        self.heartbeat.announce(owner);
    }

    async fn silent(&self, owners: &[OwnerId]) -> Result<Vec<OwnerId>, Error> {
        let (reader, owners) = (Arc::clone(&self.reader), owners.to_vec());
        self.io.run(async move { reader.silent(&owners).await }).await
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("address", &self.address).finish_non_exhaustive()
    }
}
