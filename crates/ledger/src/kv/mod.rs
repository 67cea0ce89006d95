//! A ledger on a key-value server, for many hosts: Redis, Valkey or etcd.
//!
//! A commit reads all that it may ask about, is examined in memory like on every engine, and is written if everything
//! that it looked at is still the same. So a server needs to compare, write and read in order, and knows no rule.
//!
//! Connections live on a thread of their own, so that any executor can wait for them.

mod codec;
mod engine;
#[cfg(feature = "etcd")]
pub mod etcd;
mod group;
mod heartbeat;
mod layout;
mod memory;
mod prefetch;
mod read;
#[cfg(feature = "redis")]
pub mod redis;
mod replies;
mod shared;
mod writer;

pub use crate::server_address::Clock;
pub use engine::{Applied, Batch, Found, Group, Kv, Span, Template, Value, Version, Write};
pub use memory::{KvFault, MemoryKv};
pub use shared::FORMAT;

use crate::Error;
use crate::engine_facts::EngineFacts;
use crate::histogram::{Histogram, HistogramSnapshot};
use crate::server_io::{IoThread, Queued, look_for, submit};
use crate::store::{
    By, Card, Cell, Commit, Committed, Cursor, Hint, JournalLine, Latest, OwnerId, Page, Revision, Row,
    Store, Versioned,
};
use async_trait::async_trait;
use semel_core::digest::{Digest, Secret};
use semel_core::time::At;
use shared::Shared;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use writer::Writer;

/// After the way to the server has broken, messages are missing for so long.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// A process that ends does not wait longer for a server that does not answer.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// One batch is on its way while the next is gathered.
const WRITERS: usize = 2;

/// More commits than this wait for a server that does not keep up; a claim is refused then.
const QUEUE_MAX: usize = 1_024;

pub struct KvStore<K: Kv> {
    shared: Arc<Shared<K>>,
    queue: mpsc::Sender<Queued>,
    times: Histogram,
    io: IoThread,
}

/// The name of the ledger, as the parameters of an address give it.
pub fn ledger_name(parameters: &str) -> Result<&str, &'static str> {
    let name = match parameters.split_once('=') {
        Some(("ledger", name)) => name,
        None if parameters.is_empty() => "ledger",
        _ => return Err("the only parameter of the URL is ledger=NAME"),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !name.is_empty() && name.chars().all(is_name) {
        true => Ok(name),
        false => Err("ledger=NAME must consist of letters, digits, - _ and ."),
    }
}

impl<K: Kv> KvStore<K> {
    /// Connects with `connect`, and founds the ledger if there is none; `fresh_secret` is then its secret. Returns the
    /// secret that it has.
    pub async fn open<C>(
        connect: C,
        fresh_secret: [u8; 32],
        clock: Clock,
    ) -> Result<(KvStore<K>, Secret), Error>
    where
        C: Future<Output = Result<K, Error>> + Send + 'static,
    {
        let io = IoThread::start()?;
        let opening = async move { Shared::open(connect.await?, fresh_secret, clock).await };
        let (shared, secret) = io.run(opening).await?;
        let shared = Arc::new(shared);
        let (queue, receiver) = mpsc::channel(QUEUE_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..WRITERS {
            io.spawn(Writer { shared: Arc::clone(&shared), queue: Arc::clone(&receiver) }.run());
        }
        io.spawn(listen(Arc::clone(&shared)));
        let looked_at = Arc::clone(&shared);
        io.spawn(look_for(Arc::clone(&shared.waiters), move |keys| {
            let shared = Arc::clone(&looked_at);
            async move { shared.revisions(keys).await }
        }));
        io.spawn(Arc::clone(&shared).beat());
        Ok((KvStore { shared, queue, times: Histogram::default(), io }, secret))
    }

    pub fn server(&self) -> &K {
        &self.shared.kv
    }

    async fn on_io<T, F>(&self, work: impl FnOnce(Arc<Shared<K>>) -> F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.io.run(work(Arc::clone(&self.shared))).await
    }
}

async fn listen<K: Kv>(shared: Arc<Shared<K>>) {
    loop {
        shared.kv.listen(|key| shared.waiters.announced(key)).await;
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

#[async_trait]
impl<K: Kv> Store for KvStore<K> {
    async fn read(&self, key: Digest) -> Result<Versioned, Error> {
        self.on_io(|shared| async move { shared.read(key).await }).await
    }

    async fn cell(&self, key: Digest) -> Result<Option<Cell>, Error> {
        self.on_io(|shared| async move { shared.cell(key).await }).await
    }

    async fn commit(&self, commit: Arc<Commit>) -> Result<Committed, Error> {
        if self.shared.is_newer {
            return Err(Error::NotWritten { what: "a newer semel has written it; update semel".to_owned() });
        }
        submit(&self.queue, &self.times, commit).await
    }

    async fn scan(&self, by: By, after: Option<Cursor>, limit: usize) -> Result<Page<Row>, Error> {
        self.on_io(|shared| async move { shared.scan(by, after, limit).await }).await
    }

    async fn occurrence(&self, key: Digest, ordinal: u32) -> Result<Option<Row>, Error> {
        self.on_io(move |shared| async move { shared.occurrence(key, ordinal).await }).await
    }

    async fn latest(
        &self,
        of: Latest,
        before: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, Row)>, Error> {
        self.on_io(|shared| async move { shared.latest(of, before, limit).await }).await
    }

    async fn cards(&self, alike: Digest) -> Result<Vec<Card>, Error> {
        self.on_io(|shared| async move { shared.cards(alike).await }).await
    }

    async fn journal(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, JournalLine)>, Error> {
        self.on_io(|shared| async move { shared.journal(after, limit).await }).await
    }

    async fn newest_lines(&self, limit: usize) -> Result<Vec<(Cursor, JournalLine)>, Error> {
        self.on_io(move |shared| async move { shared.newest_lines(limit).await }).await
    }

    async fn reply(&self, key: Digest, ordinal: u32) -> Result<Option<Vec<u8>>, Error> {
        self.on_io(|shared| async move { shared.reply(key, ordinal).await }).await
    }

    async fn cell_keys(&self) -> Result<Vec<Digest>, Error> {
        self.on_io(|shared| async move { shared.cell_keys().await }).await
    }

    async fn changed(&self, key: Digest, since: Revision, wait: Duration) -> Hint {
        self.shared.waiters.wait(key, since, wait).await
    }

    fn is_newer(&self) -> bool {
        self.shared.is_newer
    }

    fn announce(&self, owner: OwnerId) {
        self.shared.heartbeat.announce(owner);
    }

    async fn silent(&self, owners: &[OwnerId]) -> Result<Vec<OwnerId>, Error> {
        let owners = owners.to_vec();
        self.on_io(|shared| async move { shared.silent(&owners).await }).await
    }

    fn commit_times(&self) -> HistogramSnapshot {
        self.times.counted()
    }

    fn engine(&self) -> &'static str {
        self.shared.kv.engine()
    }

    fn is_durable(&self) -> bool {
        self.shared.kv.is_durable()
    }

    async fn describe(&self, now: At) -> Result<EngineFacts, Error> {
        self.on_io(move |shared| async move { shared.kv.describe(now).await }).await
    }
}

impl<K: Kv> Drop for KvStore<K> {
    fn drop(&mut self) {
        let shared = Arc::clone(&self.shared);
        let (done, wait) = std::sync::mpsc::channel();
        self.io.spawn(async move {
            shared.take_marks_away().await;
            let _nobody_waits = done.send(());
        });
        let _gone_or_late = wait.recv_timeout(LEAVE_WITHIN);
    }
}

impl<K: Kv> fmt::Debug for KvStore<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvStore").field("server", &self.shared.kv.address()).finish_non_exhaustive()
    }
}
