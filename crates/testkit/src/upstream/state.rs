//! The world at this end: what was made, and what waits.

use super::log::EventLog;
use super::performed::WorldChange;
use super::plan::{FaultPlan, KeySupport};
use super::reply::UpstreamReply;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub struct UpstreamState {
    log: EventLog,
    /// Where redirects point.
    pub elsewhere: SocketAddr,
    requests: AtomicU64,
    inner: Mutex<Inner>,
    released: Condvar,
}

/// The answer to a key.
#[derive(Debug)]
pub struct Stored {
    pub digest: String,
    /// None while the first request is at work.
    pub reply: Option<UpstreamReply>,
}

#[derive(Debug, Default)]
pub struct Inner {
    pub plan: FaultPlan,
    pub honours: KeySupport,
    pub keys: HashMap<String, Stored>,
    /// All that was made, by kind, oldest first.
    pub made: Vec<(&'static str, Value)>,
    released: BTreeSet<String>,
}

/// Often enough that nobody notices; what is waited for is another process.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl UpstreamState {
    pub fn new(log: EventLog, elsewhere: SocketAddr) -> Self {
        let (requests, inner, released) = (AtomicU64::new(0), Mutex::default(), Condvar::new());
        UpstreamState { log, elsewhere, requests, inner, released }
    }

    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Each request has a number, and so has whatever it makes.
    pub fn number(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub fn say(&self, number: u64, at: &str, mut more: Value) -> std::io::Result<()> {
        more["at"] = json!(at);
        more["request"] = json!(number);
        self.log.say(&more)
    }

    /// The world changes. The log has it before anybody hears of it.
    pub fn commit(&self, number: u64, change: &WorldChange) -> std::io::Result<()> {
        match change {
            WorldChange::Nothing => Ok(()),
            WorldChange::Effect { kind, object } => {
                let mut inner = self.inner();
                self.say(number, "effect", json!({"kind": kind, "object": object}))?;
                inner.made.push((kind, object.clone()));
                Ok(())
            }
            WorldChange::Generation { api, id, streamed } => {
                self.say(number, "generation", json!({"api": api, "id": id, "streamed": streamed}))
            }
        }
    }

    pub fn release(&self, name: &str) {
        self.inner().released.insert(name.to_owned());
        self.released.notify_all();
    }

    /// Waits until this is released. False if the peer went away before.
    pub fn wait(&self, name: &str, peer: Option<&TcpStream>) -> bool {
        let mut inner = self.inner();
        while !inner.released.contains(name) {
            if peer.is_some_and(gone) {
                return false;
            }
            let waited = self.released.wait_timeout(inner, LOOK_EVERY);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Whether the peer has closed its end, without taking anything that it sent.
pub fn gone(peer: &TcpStream) -> bool {
    let mut byte = [0; 1];
    let looked = peer.set_nonblocking(true).and_then(|()| peer.peek(&mut byte));
    let back = peer.set_nonblocking(false);
    match looked {
        Ok(0) => true,
        Ok(_) => back.is_err(),
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock || back.is_err(),
    }
}
