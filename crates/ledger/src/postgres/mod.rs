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
use crate::store::{
    By, Cell, Commit, Committed, Cursor, Hint, JournalLine, Latest, Page, Revision, Row, Store, Versioned,
};
use async_trait::async_trait;
use batch::{Batcher, Queued};
use heartbeat::Heartbeat;
use read::Reader;
use semel_core::digest::{Digest, Secret};
use semel_core::ids::OwnerId;
use semel_core::time::At;
use statements::Sql;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::AbortHandle;
use wake::{POLL, Waiters};

/// One batch is on its way while the next is gathered.
const BATCHERS: usize = 2;

/// More commits than this wait for a server that does not keep up; what begins something is refused then.
const QUEUE_MAX: usize = 10_000;

pub struct PostgresStore {
    address: PostgresAddress,
    queue: mpsc::Sender<Queued>,
    reader: Arc<Reader>,
    waiters: Arc<Waiters>,
    heartbeat: Arc<Heartbeat>,
    io: Handle,
    /// Ends the connections with the store.
    _thread: IoThread,
}

/// A runtime on a thread of its own.
struct IoThread(Option<oneshot::Sender<()>>);

impl IoThread {
    fn start() -> Result<(Handle, IoThread), Error> {
        let failed =
            |error: std::io::Error| Error::NotRead { what: format!("no thread for the ledger: {error}") };
        let runtime: Runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let run = move || {
            // The sender is dropped with the store, which is the end too.
            let _end = runtime.block_on(ended);
        };
        std::thread::Builder::new().name("semel-postgres".into()).spawn(run).map_err(failed)?;
        Ok((handle, IoThread(Some(end))))
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            let _ended_already = end.send(());
        }
    }
}

/// A caller that has gone waits for nothing.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl PostgresStore {
    /// Connects, refuses a server that could lose claims, and founds or migrates the ledger. Returns its secret;
    /// `fresh_secret` becomes that of a new one.
    pub async fn open(
        address: PostgresAddress,
        fresh_secret: [u8; 32],
    ) -> Result<(PostgresStore, Secret), Error> {
        let (io, thread) = IoThread::start()?;
        let sql = Arc::new(Sql::new(&address.schema));
        let opening = {
            let (address, sql) = (address.clone(), Arc::clone(&sql));
            io.spawn(async move {
                let mut client = connect::session(&address).await?;
                let secret = schema::migrate(&mut client, &address, fresh_secret).await?;
                lineage::begin_epoch(&mut client, &sql)
                    .await
                    .map_err(|error| Error::NotWritten { what: connect::explain(&error) })?;
                Ok::<_, Error>((client, secret))
            })
        };
        let (client, secret) = opening.await.map_err(stopped)??;
        let waiters = Arc::<Waiters>::default();
        let (queue, receiver) = mpsc::channel(QUEUE_MAX);
        let queue_end = Arc::new(Mutex::new(receiver));
        for _ in 0..BATCHERS {
            let batcher = Batcher {
                address: address.clone(),
                sql: Arc::clone(&sql),
                queue: Arc::clone(&queue_end),
                waiters: Arc::clone(&waiters),
            };
            io.spawn(batcher.run());
        }
        io.spawn(wake::listen(address.clone(), Arc::clone(&sql), Arc::clone(&waiters)));
        let reader = Arc::new(Reader::new(address.clone(), sql, client));
        let heartbeat = Arc::<Heartbeat>::default();
        io.spawn(Arc::clone(&heartbeat).run(Arc::clone(&reader)));
        Ok((PostgresStore { address, queue, reader, waiters, heartbeat, io, _thread: thread }, secret))
    }

    pub fn address(&self) -> &PostgresAddress {
        &self.address
    }

    async fn on_io<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.io.spawn(work).await.map_err(stopped)?
    }
}

fn stopped(error: tokio::task::JoinError) -> Error {
    Error::NotRead { what: format!("the thread of the ledger has stopped: {error}") }
}

#[async_trait]
impl Store for PostgresStore {
    async fn read(&self, key: Digest) -> Result<Versioned, Error> {
        let reader = Arc::clone(&self.reader);
        self.on_io(async move { reader.read(key).await }).await
    }

    async fn cell(&self, key: Digest) -> Result<Option<Cell>, Error> {
        let reader = Arc::clone(&self.reader);
        self.on_io(async move { reader.cell(key).await }).await
    }

    async fn commit(&self, commit: Arc<Commit>) -> Result<Committed, Error> {
        let stopped = || Error::NotWritten { what: "the thread of the ledger has stopped".to_owned() };
        let begins = commit.require.room;
        let (answer, answered) = oneshot::channel();
        let queued = Queued { commit, answer };
        match begins {
            true => self.queue.try_send(queued).map_err(|refused| match refused {
                mpsc::error::TrySendError::Full(_) => Error::Overloaded,
                mpsc::error::TrySendError::Closed(_) => stopped(),
            })?,
            false => self.queue.send(queued).await.map_err(|_| stopped())?,
        }
        // The batcher had it and is gone: nobody knows how far it came.
        answered.await.unwrap_or(Ok(Committed::Unknown))
    }

    async fn scan(&self, by: By, after: Option<Cursor>, limit: usize) -> Result<Page<Row>, Error> {
        let reader = Arc::clone(&self.reader);
        self.on_io(async move { reader.scan(by, after, limit).await }).await
    }

    async fn latest(
        &self,
        of: Latest,
        before: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, Row)>, Error> {
        let reader = Arc::clone(&self.reader);
        self.on_io(async move { reader.latest(of, before, limit).await }).await
    }

    async fn journal(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, JournalLine)>, Error> {
        let reader = Arc::clone(&self.reader);
        self.on_io(async move { reader.journal(after, limit).await }).await
    }

    async fn newest_lines(&self, limit: usize) -> Result<Vec<(Cursor, JournalLine)>, Error> {
        let reader = Arc::clone(&self.reader);
        self.on_io(async move { reader.newest_lines(limit).await }).await
    }

    async fn reply(&self, key: Digest, ordinal: u32) -> Result<Option<Vec<u8>>, Error> {
        let reader = Arc::clone(&self.reader);
        self.on_io(async move { reader.reply(key, ordinal).await }).await
    }

    async fn changed(&self, key: Digest, since: Revision, wait: Duration) -> Hint {
        let (reader, waiters) = (Arc::clone(&self.reader), Arc::clone(&self.waiters));
        let looking = async move {
            loop {
                let notify = waiters.register(key);
                // Listens before it looks, so that nothing falls between.
                let mut woken = std::pin::pin!(notify.notified());
                woken.as_mut().enable();
                if reader.revision(key).await.is_ok_and(|revision| revision > since) {
                    return Hint::Changed;
                }
                let _woken_or_time_to_poll = tokio::time::timeout(POLL, woken).await;
            }
        };
        let waiting = self.io.spawn(async move { tokio::time::timeout(wait, looking).await });
        let _ends_with_the_caller = AbortOnDrop(waiting.abort_handle());
        match waiting.await {
            Ok(Ok(hint)) => hint,
            _ => Hint::TimedOut,
        }
    }

    async fn describe(&self, now: At) -> Result<Vec<(&'static str, String)>, Error> {
        let reader = Arc::clone(&self.reader);
        self.on_io(async move { reader.describe(now).await }).await
    }

    fn announce(&self, owner: OwnerId) {
        self.heartbeat.announce(owner);
    }

    async fn silent(&self, owners: &[OwnerId]) -> Result<Vec<OwnerId>, Error> {
        let (reader, owners) = (Arc::clone(&self.reader), owners.to_vec());
        self.on_io(async move { reader.silent(&owners).await }).await
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("address", &self.address).finish_non_exhaustive()
    }
}
