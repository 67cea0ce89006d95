//! Denominators: the least that any ledger on this machine has to do, written as plainly as possible.

use super::house::REPLY_BYTES;
use super::load::{LoadResult, drive};
use super::measure::{Times, time};
use rusqlite::{Connection, TransactionBehavior, params};
use semel_core::digest::Digest;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use xtask::project::Result;

const RESULT: [u8; REPLY_BYTES] = [b'r'; REPLY_BYTES];

type RawKey = [u8; 32];

/// Where keys fall in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// As hashes do: anywhere.
    Hash,
    /// As counters do: at the end.
    Time,
}

pub fn key(order: KeyOrder, n: u64) -> RawKey {
    let mut key = Digest::of(&[&n.to_be_bytes()]).0;
    if order == KeyOrder::Time {
        key[..8].copy_from_slice(&n.to_be_bytes());
    }
    key
}

/// One file that grows by 4 KiB, the size of a page, and is flushed each time.
#[derive(Debug)]
pub struct Appended(File);

impl Appended {
    pub fn create(directory: &Path) -> Result<Self> {
        Ok(Appended(File::create(directory.join("appended"))?))
    }

    pub fn flush_one(&mut self) -> Result<Duration> {
        let (done, took) = time(|| self.0.write_all(&[7; 4096]).and_then(|()| self.0.sync_data()));
        done?;
        Ok(took)
    }
}

pub enum Op {
    Claim(RawKey),
    Settle(RawKey),
}

/// Makes a batch of operations durable at once.
pub trait Engine: Send + 'static {
    fn commit(&mut self, ops: &[Op]);
}

/// The bare table: claim inserts, settle updates, nothing else is kept.
#[derive(Debug)]
pub struct BareTable(Connection);

impl BareTable {
    pub fn open(file: &Path) -> Result<Self> {
        let connection = Connection::open(file)?;
        connection.execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
             CREATE TABLE IF NOT EXISTS effect(key BLOB PRIMARY KEY, state INTEGER, result BLOB) WITHOUT ROWID;",
        )?;
        Ok(BareTable(connection))
    }

    /// The recorded result, by one point read.
    pub fn result(&self, key: &RawKey) -> Result<Vec<u8>> {
        let mut read = self.0.prepare_cached("SELECT result FROM effect WHERE key = ?1 AND state = 2")?;
        Ok(read.query_row([key], |row| row.get(0))?)
    }
}

impl Engine for BareTable {
    fn commit(&mut self, ops: &[Op]) {
        let write = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for op in ops {
                let changed = match op {
                    Op::Claim(key) => transaction
                        .prepare_cached(
                            "INSERT INTO effect(key, state) VALUES(?1, 1) ON CONFLICT DO NOTHING",
                        )?
                        .execute([key])?,
                    Op::Settle(key) => transaction
                        .prepare_cached(
                            "UPDATE effect SET state = 2, result = ?2 WHERE key = ?1 AND state = 1",
                        )?
                        .execute(params![key, RESULT])?,
                };
                assert_eq!(changed, 1, "every key is claimed and settled once");
            }
            transaction.commit()
        };
        write(&mut self.0).expect("the bare table can be written");
    }
}

/// An append-only log with its index in memory: one write and one flush a batch.
#[derive(Debug)]
pub struct BareLog {
    file: File,
    known: HashMap<RawKey, bool>,
}

impl BareLog {
    pub fn create(file: &Path) -> Result<Self> {
        Ok(BareLog { file: File::create(file)?, known: HashMap::new() })
    }
}

impl Engine for BareLog {
    fn commit(&mut self, ops: &[Op]) {
        let mut bytes = Vec::with_capacity(ops.len() * 256);
        for op in ops {
            let (key, settled) = match op {
                Op::Claim(key) => (key, false),
                Op::Settle(key) => (key, true),
            };
            assert_eq!(self.known.insert(*key, settled).is_some(), settled, "claimed once, then settled");
            bytes.extend_from_slice(key);
            bytes.push(settled.into());
            bytes.extend_from_slice(if settled { &RESULT } else { &[] });
        }
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        written.expect("the log can be written");
    }
}

/// More than this in one batch only delays the first of it.
const BATCH_MAX: usize = 4_096;

/// The rate at which one writer thread, which commits whatever waits, serves so many callers.
pub fn group_commit(
    runtime: &Runtime,
    mut engine: impl Engine,
    order: KeyOrder,
    callers: usize,
    span: Duration,
) -> LoadResult {
    let (queue, jobs) = mpsc::channel::<(Op, oneshot::Sender<()>)>();
    let writer = std::thread::spawn(move || {
        while let Ok(first) = jobs.recv() {
            let batch = std::iter::once(first).chain(jobs.try_iter()).take(BATCH_MAX);
            let (ops, answers): (Vec<_>, Vec<_>) = batch.unzip();
            engine.commit(&ops);
            for answer in answers {
                let _gone = answer.send(());
            }
        }
    });
    let queue = Arc::new(queue);
    let load = drive(runtime, callers, span, move |n| {
        let queue = Arc::clone(&queue);
        async move {
            for op in [Op::Claim(key(order, n)), Op::Settle(key(order, n))] {
                let (answer, answered) = oneshot::channel();
                queue.send((op, answer)).expect("the writer lives as long as its callers");
                answered.await.expect("the writer answers everybody");
            }
        }
    });
    writer.join().expect("the writer does not panic");
    load
}

/// A number below `keys`, different from call to call in no order that a cache could follow.
pub fn scattered(seed: u64, n: u64, keys: u64) -> u64 {
    let mixed = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed.wrapping_mul(0xD1B5_4A32_D192_ED03);
    ((u128::from(mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9)) * u128::from(keys)) >> 64) as u64
}

/// The median of a pair of flushes, for whoever makes two durable writes an operation.
pub fn two_flushes(times: &mut Times) -> f64 {
    2.0 * times.median()
}
