//! The key-value server of tests: in memory, with faults on demand.

use super::engine::{Applied, Batch, Found, Group, Kv, Span, Value, Version, Write};
use crate::Error;
use crate::engine_facts::EngineFacts;
use semel_core::time::At;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

/// The fault of the next batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvFault {
    /// It lands, and the answer is lost.
    LandsUnanswered,
    /// It is lost on its way.
    VanishesUnanswered,
    /// The server cannot be reached.
    Unreachable,
}

/// Several stores may share one: a clone is another connection.
#[derive(Debug, Clone)]
pub struct MemoryKv {
    server: std::sync::Arc<MemoryServer>,
}

#[derive(Debug)]
struct MemoryServer {
    state: Mutex<ServerState>,
    moved: broadcast::Sender<u64>,
}

#[derive(Debug, Default)]
struct ServerState {
    values: BTreeMap<Vec<u8>, Value>,
    index: BTreeSet<Vec<u8>>,
    last: u64,
    lineage: String,
    /// Nothing was lost when the lineage last changed.
    has_only_restarted: bool,
    is_forgetful: bool,
    /// Announcements get lost.
    is_mute: bool,
    /// Questions so far, each of many names.
    reads: u64,
    faults: VecDeque<KvFault>,
}

impl Default for MemoryKv {
    fn default() -> Self {
        let server = MemoryServer { state: Mutex::default(), moved: broadcast::Sender::new(1_024) };
        MemoryKv { server: server.into() }
    }
}

impl MemoryKv {
    /// The next batches fail with these, in order.
    pub fn inject(&self, fault: KvFault) {
        self.state().faults.push_back(fault);
    }

    /// Acknowledged writes may be gone from now on.
    pub fn change_lineage(&self, lineage: &str) {
        let mut state = self.state();
        lineage.clone_into(&mut state.lineage);
        state.has_only_restarted = false;
    }

    /// It has read everything again that was on its disk.
    pub fn restart(&self, lineage: &str) {
        self.change_lineage(lineage);
        self.state().has_only_restarted = true;
    }

    /// Whether it acknowledges writes before they are on a disk, from now on.
    pub fn set_forgetful(&self, is_forgetful: bool) {
        self.state().is_forgetful = is_forgetful;
    }

    /// From now on nobody hears what others have written.
    pub fn mute(&self) {
        self.state().is_mute = true;
    }

    /// How often it was asked so far.
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    /// Deletes everything.
    pub fn flush(&self) {
        let mut state = self.state();
        state.values.clear();
        state.index.clear();
    }

    /// The number of values.
    pub fn values(&self) -> usize {
        self.state().values.len()
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.server.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerState {
    fn apply(&mut self, group: &Group) -> bool {
        let version = |name: &Vec<u8>| self.values.get(name).map_or(Version::ABSENT, |value| value.version);
        if group.compares.iter().any(|(name, expected)| version(name) != *expected) {
            return false;
        }
        let first = self.last + 1;
        self.last += u64::from(group.numbers.max(1));
        for write in &group.writes {
            match write {
                Write::Put { name, value } => {
                    let value = Value { version: Version(self.last), bytes: value.fill(first) };
                    self.values.insert(name.clone(), value);
                }
                Write::Delete { name } => {
                    self.values.remove(name);
                }
                Write::Enter(entry) => {
                    self.index.insert(entry.fill(first));
                }
                Write::Leave(entry) => {
                    assert!(self.index.remove(entry), "an entry that leaves was there");
                }
            }
        }
        true
    }

    fn span(&self, span: &Span) -> Vec<Vec<u8>> {
        let (first, end) = (span.first(), span.end());
        let entries = self.index.range::<Vec<u8>, _>((Bound::Included(&first), Bound::Excluded(&end)));
        match span.descending {
            true => entries.rev().take(span.limit).cloned().collect(),
            false => entries.take(span.limit).cloned().collect(),
        }
    }
}

impl Kv for MemoryKv {
    async fn read(&self, names: Vec<Vec<u8>>, spans: Vec<Span>) -> Result<Found, Error> {
        let mut state = self.state();
        state.reads += 1;
        let values = names.iter().map(|name| state.values.get(name).cloned()).collect();
        let entries = spans.iter().map(|span| state.span(span)).collect();
        Ok(Found { values, entries, last: state.last })
    }

    async fn names(&self, prefix: u8) -> Result<Vec<Vec<u8>>, Error> {
        let state = self.state();
        Ok(state.values.keys().filter(|name| name.first() == Some(&prefix)).cloned().collect())
    }

    async fn apply(&self, batch: Batch<'_>) -> Applied {
        let mut state = self.state();
        if state.lineage != batch.lineage {
            return Applied::OtherLineage;
        }
        let unknown = || Applied::Unknown("an injected fault".to_owned());
        let fault = state.faults.pop_front();
        match fault {
            Some(KvFault::VanishesUnanswered) => return unknown(),
            Some(KvFault::Unreachable) => return Applied::Again("an injected fault".to_owned()),
            _ => {}
        }
        let landed = batch.groups.iter().map(|group| state.apply(group)).collect();
        for key in batch.moved.iter().filter(|_| !state.is_mute) {
            let _nobody_listens = self.server.moved.send(*key);
        }
        if fault == Some(KvFault::LandsUnanswered) { unknown() } else { Applied::Each(landed) }
    }

    async fn lineage(&self) -> Result<String, Error> {
        Ok(self.state().lineage.clone())
    }

    async fn has_only_restarted(&self) -> Result<bool, Error> {
        Ok(self.is_durable() && self.state().has_only_restarted)
    }

    fn engine(&self) -> &'static str {
        "memory"
    }

    async fn describe(&self, _now: At) -> Result<EngineFacts, Error> {
        Ok(EngineFacts::of_memory())
    }

    fn is_durable(&self) -> bool {
        !self.state().is_forgetful
    }

    async fn listen(&self, heard: impl Fn(u64) + Send) {
        let mut moved = self.server.moved.subscribe();
        while let Ok(key) = moved.recv().await {
            heard(key);
        }
    }

    fn address(&self) -> String {
        "memory".to_owned()
    }
}
