//! Waiters by key. Commits of this process wake them directly; for those of others one thread or task looks at the
//! store now and then, one read a key however many wait for it. The same one watches the deadlines, so that those who
//! wait need no runtime.

use crate::clock;
use crate::precondition::moved;
use crate::store::{Commit, Hint, Revision};
use semel_core::digest::Digest;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// More callers than this are told at once that their time is up. At some 150 bytes each this is 10 MB.
const WAITERS_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    state: Mutex<WaitList>,
    /// For a thread that looks.
    pub(crate) news: Condvar,
    /// For a task that looks.
    pub(crate) called: Notify,
    count: AtomicUsize,
}

#[derive(Debug, Default)]
pub(crate) struct WaitList {
    keys: BTreeMap<Digest, WatchedKey>,
    /// Those that nobody has looked at since somebody had reason to.
    unseen: BTreeSet<Digest>,
    deadlines: BTreeMap<(Instant, u64), Digest>,
    next: u64,
    pub(crate) closed: bool,
}

#[derive(Debug, Default)]
struct WatchedKey {
    /// As last seen; `None` until somebody has looked.
    revision: Option<Revision>,
    waiting: HashMap<u64, (Revision, Waker)>,
}

impl Waiters {
    /// A future that resolves when `key` moves past `since`.
    pub(crate) fn wait(self: &Arc<Self>, key: Digest, since: Revision, wait: Duration) -> KeyWait {
        KeyWait { waiters: Arc::clone(self), key, since, until: clock::now() + wait, id: None }
    }

    /// Cheap enough to ask after every commit.
    fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// A commit of this process did.
    pub(crate) fn landed(&self, commit: &Commit) {
        if self.any() {
            moved(commit).for_each(|(key, revision)| self.moved(key, revision));
        }
    }

    /// Somebody has looked at `key`, or written there.
    pub(crate) fn moved(&self, key: Digest, revision: Revision) {
        let wakers = self.state().see(key, revision);
        self.wake(wakers);
    }

    /// A commit of another process moved the keys that begin so. Nobody says how far.
    pub(crate) fn announced(&self, short: u64) {
        let mut bounds = [Digest([0; 32]), Digest([0xff; 32])];
        bounds.iter_mut().for_each(|bound| bound.0[..8].copy_from_slice(&short.to_be_bytes()));
        let mut state = self.state();
        let keys: Vec<Digest> = state.keys.range(bounds[0]..=bounds[1]).map(|(key, _)| *key).collect();
        let is_watched = !keys.is_empty();
        state.unseen.extend(keys);
        drop(state);
        if is_watched {
            self.called.notify_one();
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, WaitList> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakers may run code of the executor, so they are never called under the lock.
    fn wake(&self, wakers: Vec<Waker>) {
        self.count.fetch_sub(wakers.len(), Ordering::Relaxed);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Tells those whose time is up.
    pub(crate) fn expire(&self) {
        let expired = self.state().expired(clock::now());
        self.wake(expired);
    }

    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let keys = std::mem::take(&mut state.keys);
        let wakers = keys.into_values().flat_map(|watched| watched.waiting.into_values());
        let wakers = wakers.map(|(_, waker)| waker).collect();
        state.deadlines.clear();
        state.unseen.clear();
        drop(state);
        self.wake(wakers);
        self.news.notify_all();
        self.called.notify_one();
    }
}

impl WaitList {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.keys().next().map(|(until, _)| *until)
    }

    /// Whether somebody waits for a key that is to be looked at.
    pub(crate) fn has_unseen(&self) -> bool {
        !self.unseen.is_empty()
    }

    /// So many of the keys that are to be looked at, for whoever looks at them.
    pub(crate) fn take_unseen(&mut self, most: usize) -> Vec<Digest> {
        std::iter::from_fn(|| self.unseen.pop_first()).take(most).collect()
    }

    pub(crate) fn look_again(&mut self, keys: &[Digest]) {
        self.unseen.extend(keys.iter().filter(|key| self.keys.contains_key(*key)));
    }

    pub(crate) fn look_at_all(&mut self) {
        self.unseen.extend(self.keys.keys());
    }

    /// Takes out those who waited for this revision, or for one that a deletion took away.
    pub(crate) fn see(&mut self, key: Digest, revision: Revision) -> Vec<Waker> {
        let Some(watched) = self.keys.get_mut(&key) else { return Vec::new() };
        watched.revision = Some(revision);
        // The deadlines of the woken are left to run out; they find nobody.
        let woken = watched.waiting.extract_if(|_, (since, _)| *since != revision);
        let wakers = woken.map(|(_, (_, waker))| waker).collect();
        if watched.waiting.is_empty() {
            self.forget(key);
        }
        wakers
    }

    fn forget(&mut self, key: Digest) {
        self.keys.remove(&key);
        self.unseen.remove(&key);
    }

    fn expired(&mut self, now: Instant) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(entry) = self.deadlines.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, id), key) = entry.remove_entry();
            wakers.extend(self.remove(key, id));
        }
        wakers
    }

    fn remove(&mut self, key: Digest, id: u64) -> Option<Waker> {
        let watched = self.keys.get_mut(&key)?;
        let waker = watched.waiting.remove(&id).map(|(_, waker)| waker);
        if watched.waiting.is_empty() {
            self.forget(key);
        }
        waker
    }
}

#[derive(Debug)]
pub(crate) struct KeyWait {
    waiters: Arc<Waiters>,
    key: Digest,
    since: Revision,
    until: Instant,
    id: Option<u64>,
}

impl KeyWait {
    fn register(&mut self, waker: &Waker) -> Option<Hint> {
        if self.waiters.count.load(Ordering::Relaxed) >= WAITERS_MAX {
            return Some(Hint::TimedOut);
        }
        let mut state = self.waiters.state();
        if state.closed {
            return Some(Hint::TimedOut);
        }
        let id = state.next;
        let watched = state.keys.entry(self.key).or_default();
        if watched.revision.is_some_and(|revision| revision > self.since) {
            return Some(Hint::Changed);
        }
        let first = watched.waiting.is_empty();
        watched.waiting.insert(id, (self.since, waker.clone()));
        if first {
            state.unseen.insert(self.key);
        }
        state.next += 1;
        let soonest = state.next_deadline().is_none_or(|soonest| self.until < soonest);
        state.deadlines.insert((self.until, id), self.key);
        // Still under the lock, so that nobody takes it off the count before it is on.
        self.waiters.count.fetch_add(1, Ordering::Relaxed);
        drop(state);
        self.id = Some(id);
        if first || soonest {
            self.waiters.news.notify_one();
            self.waiters.called.notify_one();
        }
        None
    }
}

impl Future for KeyWait {
    type Output = Hint;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Hint> {
        let Some(id) = self.id else {
            return self.register(context.waker()).map_or(Poll::Pending, Poll::Ready);
        };
        let mut state = self.waiters.state();
        let entry = state.keys.get_mut(&self.key).and_then(|watched| watched.waiting.get_mut(&id));
        if let Some((_, waker)) = entry {
            waker.clone_from(context.waker());
            return Poll::Pending;
        }
        state.deadlines.remove(&(self.until, id));
        drop(state);
        self.id = None;
        Poll::Ready(if clock::now() >= self.until { Hint::TimedOut } else { Hint::Changed })
    }
}

impl Drop for KeyWait {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let mut state = self.waiters.state();
            state.deadlines.remove(&(self.until, id));
            if state.remove(self.key, id).is_some() {
                self.waiters.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}
