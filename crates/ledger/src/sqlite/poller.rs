//! The thread that looks after waiters: commits of other processes, and deadlines. It starts with the first one.

use super::readers::Readers;
use super::{clock, read};
use crate::waiters::Waiters;
use rusqlite::Connection;
use semel_core::digest::Digest;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// `PRAGMA data_version` costs some microseconds; at this pace a foreign commit is noticed before a human could.
const NAP_MIN: Duration = Duration::from_millis(1);

/// Where the pace slows down to while nothing changes.
const NAP_MAX: Duration = Duration::from_millis(20);

/// Looking must not take more than a twentieth of a core, however many keys are waited for.
const REST_PER_LOOK: u32 = 20;

#[derive(Debug)]
pub(super) struct Poller {
    readers: Arc<Readers>,
    waiters: Arc<Waiters>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Poller {
    pub(super) fn new(readers: Arc<Readers>, waiters: Arc<Waiters>) -> Self {
        Poller { readers, waiters, thread: Mutex::new(None) }
    }

    /// Without a thread nobody would be woken at the deadline, so the caller must know if there is none.
    pub(super) fn start(&self) -> bool {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let look = ChangeDetector { readers: Arc::clone(&self.readers), version: None };
            let waiters = Arc::clone(&self.waiters);
            let builder = std::thread::Builder::new().name("semel-waiters".to_owned());
            *thread = builder.spawn(move || watch(&waiters, look)).ok();
        }
        thread.is_some()
    }

    pub(super) fn close(&self) {
        self.waiters.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

fn watch(waiters: &Waiters, mut look: ChangeDetector) {
    let mut nap = NAP_MIN;
    loop {
        let mut state = waiters.state();
        while state.is_empty() && !state.closed {
            nap = NAP_MIN;
            state = waiters.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.has_unseen() && !state.closed {
            let now = clock::now();
            let left =
                state.next_deadline().map_or(nap, |until| until.saturating_duration_since(now).min(nap));
            state = waiters.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.closed {
            return;
        }
        drop(state);
        waiters.expire();

        let started = clock::now();
        let moved = look.changed_since_last();
        let keys = {
            let mut state = waiters.state();
            if moved {
                state.look_at_all();
            }
            state.take_unseen(usize::MAX)
        };
        if keys.is_empty() {
            nap = (nap * 2).min(NAP_MAX);
            continue;
        }
        if !look.at(waiters, &keys) {
            waiters.state().look_again(&keys);
            // The database cannot be read now; deadlines still run, and callers that read will hear the reason.
            clock::sleep(NAP_MIN);
        }
        nap = NAP_MIN.max(started.elapsed() * REST_PER_LOOK);
    }
}

/// The version of the database that was last seen, by a connection that nobody else uses.
#[derive(Debug)]
struct ChangeDetector {
    readers: Arc<Readers>,
    version: Option<i64>,
}

impl ChangeDetector {
    fn changed_since_last(&mut self) -> bool {
        let version = self.read(read::data_version).ok();
        std::mem::replace(&mut self.version, version) != version && version.is_some()
    }

    fn at(&mut self, waiters: &Waiters, keys: &[Digest]) -> bool {
        keys.iter().all(|key| match self.read(|connection| read::revision(connection, *key)) {
            Ok(revision) => {
                waiters.moved(*key, revision);
                true
            }
            Err(_) => false,
        })
    }

    fn read<T>(&mut self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let (result, anew) = self.readers.watch(read);
        if anew {
            // Versions of two connections do not compare.
            self.version = None;
        }
        result
    }
}
