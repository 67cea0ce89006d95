//! Redis 7 or Valkey, alone or as a cluster. A ledger is one hash of values and one sorted set of entries, in one slot,
//! and every write is one script.

mod address;
mod node;
mod script;
mod tier;

pub use address::RedisAddress;
pub use tier::Tier;

use super::engine::{Applied, Batch, Found, Kv, Span, Value, Version};
use crate::Error;
use crate::engine_facts::EngineFacts;
use node::{Node, Replication, explain};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, ProtocolVersion, PushInfo, PushKind, RedisError};
use script::ApplyScript;
use semel_core::time::At;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex as StdMutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

/// How long the server may take to tell that a write is on its disk.
const ON_DISK_MILLIS: u64 = 5_000;

/// A read is given up, however many hosts there are to try.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// The server serves nobody else while it looks at so many.
const SCAN_AT_ONCE: usize = 1_000;

/// Errors that pass: the server starts, lost its role, or its cluster is not complete. Nothing was written.
const PASSING: [&str; 9] =
    ["LOADING", "READONLY", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "BUSY", "NOREPLICAS"];

pub struct RedisKv {
    address: RedisAddress,
    keys: [String; 3],
    script: ApplyScript,
    node: Mutex<KnownNode>,
    /// How often it was looked for in vain.
    failures: AtomicU64,
    tier: StdMutex<Tier>,
}

enum KnownNode {
    At(Box<Node>),
    /// The connection broke, and nobody has looked for the node since.
    Lost,
    /// The last look found no node, for this reason.
    NotFound(String),
}

fn unusable(address: &RedisAddress, what: String) -> Error {
    Error::Engine { ledger: address.to_string(), what }
}

impl RedisKv {
    pub async fn connect(address: RedisAddress) -> Result<RedisKv, Error> {
        let node = node::connect(&address).await.map_err(|what| unusable(&address, what))?;
        Ok(RedisKv {
            keys: ["values", "index", "moved"].map(|what| address.key(what)),
            script: ApplyScript::new(),
            tier: StdMutex::new(node.tier),
            node: Mutex::new(KnownNode::At(Box::new(node))),
            failures: AtomicU64::new(0),
            address,
        })
    }

    pub fn tier(&self) -> Tier {
        *self.tier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_tier(&self, tier: Tier) {
        *self.tier.lock().unwrap_or_else(PoisonError::into_inner) = tier;
    }

    /// The node, found again if the way to it broke. Those that come while it is looked for share what is found.
    async fn node(&self) -> Result<Node, Error> {
        let failures_before = self.failures.load(Ordering::Acquire);
        let mut kept = self.node.lock().await;
        match &*kept {
            KnownNode::At(node) => return Ok(Node::clone(node)),
            KnownNode::NotFound(what) if self.failures.load(Ordering::Acquire) > failures_before => {
                return Err(unusable(&self.address, what.clone()));
            }
            KnownNode::Lost | KnownNode::NotFound(_) => {}
        }
        match node::connect(&self.address).await {
            Ok(node) => {
                self.set_tier(node.tier);
                *kept = KnownNode::At(Box::new(node.clone()));
                Ok(node)
            }
            Err(what) => {
                self.failures.fetch_add(1, Ordering::Release);
                *kept = KnownNode::NotFound(what.clone());
                Err(unusable(&self.address, what))
            }
        }
    }

    /// The next one looks for the node again.
    async fn forget_node(&self) {
        *self.node.lock().await = KnownNode::Lost;
    }

    async fn replication(&self) -> Result<Replication, Error> {
        let mut node = self.node().await?;
        match node::replication(&mut node.reader).await {
            Ok(Some(replication)) => Ok(replication),
            Ok(None) => {
                Err(Error::NotRead { what: "the server does not tell its replication id".to_owned() })
            }
            Err(error) => Err(self.not_read(error).await),
        }
    }

    async fn not_read(&self, error: RedisError) -> Error {
        self.forget_node().await;
        Error::NotRead { what: explain(&error) }
    }

    /// Runs the script, which the server forgets when it restarts.
    async fn run(&self, node: &mut Node, batch: Batch<'_>) -> Result<redis::Value, RedisError> {
        let command = self.script.command(&self.keys, batch);
        match send(&mut node.writer, &command).await {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                let load = redis::cmd("SCRIPT").arg("LOAD").arg(script::APPLY).to_owned();
                send(&mut node.writer, &load).await?;
                send(&mut node.writer, &command).await
            }
            answer => answer,
        }
    }

    /// Waits until the server's disk has what this connection wrote.
    async fn wait_for_disk(&self, node: &mut Node) {
        let wait = redis::cmd("WAITAOF").arg(1).arg(0).arg(ON_DISK_MILLIS).to_owned();
        let synced = wait.query_async::<(u64, u64)>(&mut node.writer).await;
        if !matches!(synced, Ok((1.., _))) {
            // Somebody has changed its settings since.
            self.set_tier(Tier::SometimesOnDisk);
        }
    }
}

async fn send(connection: &mut MultiplexedConnection, command: &Cmd) -> Result<redis::Value, RedisError> {
    command.query_async(connection).await
}

fn value(bytes: Vec<u8>) -> Option<Value> {
    let (version, bytes) = bytes.split_first_chunk::<8>()?;
    Some(Value { version: Version(u64::from_be_bytes(*version)), bytes: bytes.to_vec() })
}

fn bound(mark: u8, bytes: &[u8]) -> Vec<u8> {
    [&[mark], bytes].concat()
}

impl RedisKv {
    async fn ask(&self, names: Vec<Vec<u8>>, spans: Vec<Span>) -> Result<Found, Error> {
        let mut node = self.node().await?;
        let mut asked = redis::pipe();
        if !names.is_empty() {
            asked.cmd("HMGET").arg(&self.keys[0]).arg(&names).arg("last");
        }
        for span in &spans {
            let (from, to) = (bound(b'[', &span.first()), bound(b'(', &span.end()));
            let range = asked.cmd("ZRANGE").arg(&self.keys[1]);
            match span.descending {
                true => range.arg(to).arg(from).arg("BYLEX").arg("REV"),
                false => range.arg(from).arg(to).arg("BYLEX"),
            };
            range.arg("LIMIT").arg(0).arg(span.limit);
        }
        let answers = asked.query_async::<Vec<Vec<Option<Vec<u8>>>>>(&mut node.reader).await;
        let mut answers = match answers {
            Ok(answers) => answers.into_iter(),
            Err(error) => return Err(self.not_read(error).await),
        };
        let mut values = if names.is_empty() { Vec::new() } else { answers.next().unwrap_or_default() };
        let last = values.pop().flatten().and_then(|last| String::from_utf8(last).ok()?.parse().ok());
        let entries = answers.map(|entries| entries.into_iter().flatten().collect()).collect();
        let values = values.into_iter().map(|bytes| bytes.and_then(value)).collect();
        Ok(Found { values, entries, last: last.unwrap_or_default() })
    }
}

impl Kv for RedisKv {
    async fn read(&self, names: Vec<Vec<u8>>, spans: Vec<Span>) -> Result<Found, Error> {
        let silent = |_| Error::NotRead { what: "the server does not answer".to_owned() };
        timeout(READ_WITHIN, self.ask(names, spans)).await.map_err(silent)?
    }

    async fn names(&self, prefix: u8) -> Result<Vec<Vec<u8>>, Error> {
        let mut node = self.node().await?;
        let (mut names, mut cursor) = (Vec::new(), 0);
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(&self.keys[0]).arg(cursor);
            scan.arg("MATCH").arg(&[prefix, b'*']).arg("COUNT").arg(SCAN_AT_ONCE);
            let found = scan.query_async::<(u64, Vec<(Vec<u8>, Vec<u8>)>)>(&mut node.reader).await;
            let (next, page) = match found {
                Ok(found) => found,
                Err(error) => return Err(self.not_read(error).await),
            };
            names.extend(page.into_iter().map(|(name, _)| name));
            if next == 0 {
                return Ok(names);
            }
            cursor = next;
        }
    }

    async fn apply(&self, batch: Batch<'_>) -> Applied {
        let mut node = match self.node().await {
            Ok(node) => node,
            Err(error) => return Applied::Again(error.to_string()),
        };
        match self.run(&mut node, batch).await {
            Ok(redis::Value::Nil) => Applied::OtherLineage,
            Ok(answer) => match redis::from_redis_value::<Vec<bool>>(answer) {
                Ok(landed) if landed.len() == batch.groups.len() => {
                    if batch.durable && node.has_waitaof && self.tier().is_durable() {
                        self.wait_for_disk(&mut node).await;
                    }
                    Applied::Each(landed)
                }
                _ => Applied::Unknown("the server gave an answer that means nothing".to_owned()),
            },
            Err(error) => {
                let what = explain(&error);
                match error.code() {
                    Some(code) if PASSING.contains(&code) => {
                        self.forget_node().await;
                        Applied::Again(what)
                    }
                    Some(_) if matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) => {
                        Applied::Refused(what)
                    }
                    _ => {
                        self.forget_node().await;
                        Applied::Unknown(what)
                    }
                }
            }
        }
    }

    /// The replication id. A restart and a first replica change it too.
    async fn lineage(&self) -> Result<String, Error> {
        Ok(self.replication().await?.id)
    }

    /// One that has always written to its disk first has read everything again. A replica that took over keeps the id that
    /// it had before.
    async fn has_only_restarted(&self) -> Result<bool, Error> {
        Ok(!self.replication().await?.took_over && self.tier().is_durable())
    }

    async fn listen(&self, heard: impl Fn(u64) + Send) {
        let Ok(node) = self.node().await else { return };
        let settings = node.info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let Ok(client) = Client::open(node.info.set_redis_settings(settings)) else { return };
        let (sender, mut pushed) = mpsc::unbounded_channel::<PushInfo>();
        let config = AsyncConnectionConfig::new().set_push_sender(sender);
        let Ok(mut connection) = client.get_multiplexed_async_connection_with_config(&config).await else {
            return;
        };
        if connection.subscribe(&self.keys[2]).await.is_err() {
            return;
        }
        while let Some(PushInfo { kind, data }) = pushed.recv().await {
            match (kind, data.into_iter().nth(1).map(redis::from_redis_value::<String>)) {
                (PushKind::Message, Some(Ok(news))) => {
                    news.split(' ').filter_map(|key| u64::from_str_radix(key, 16).ok()).for_each(&heard);
                }
                (PushKind::Disconnection, _) => return,
                _ => {}
            }
        }
    }

    fn engine(&self) -> &'static str {
        "redis"
    }

    fn is_durable(&self) -> bool {
        self.tier().is_durable()
    }

    async fn describe(&self, now: At) -> Result<EngineFacts, Error> {
        let mut node = self.node().await?;
        match node::describe(&mut node, now).await {
            Ok(facts) => Ok(EngineFacts { durability: self.tier().to_string(), ..facts }),
            Err(error) => Err(self.not_read(error).await),
        }
    }

    fn address(&self) -> String {
        self.address.to_string()
    }
}

impl std::fmt::Debug for RedisKv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisKv").field("address", &self.address).finish_non_exhaustive()
    }
}
