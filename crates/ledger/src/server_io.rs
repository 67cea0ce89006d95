//! The parts that all engines on servers have: a thread for their connections, a queue of commits, and waiters.

use crate::Error;
use crate::histogram::Histogram;
use crate::precondition::moved;
use crate::store::{Commit, Committed, Durability, Hint, Revision};
use semel_core::digest::Digest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinError};
use tokio::time::timeout;

/// A store writes only to the ledger that it has opened, because all keys come from its secret.
pub(crate) const OTHER_LEDGER: &str = "the ledger was deleted from the server, or another one stands there. Find out why \
                                       before you start semel again";

/// Without a message a waiter looks again after so long.
const POLL: Duration = Duration::from_millis(250);

/// A runtime on a thread of its own, so that any executor can wait for its connections. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct IoThread {
    handle: Handle,
    _end: oneshot::Sender<()>,
}

impl IoThread {
    pub(crate) fn start() -> Result<IoThread, Error> {
        let failed =
            |error: std::io::Error| Error::NotRead { what: format!("no thread for the ledger: {error}") };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let run = move || {
            let _dropped = runtime.block_on(ended);
        };
        std::thread::Builder::new().name("semel-ledger-io".to_owned()).spawn(run).map_err(failed)?;
        Ok(IoThread { handle, _end: end })
    }

    /// Runs beside everything else, until the thread ends.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let stopped = |error: JoinError| Error::NotRead {
            what: format!("the thread of the ledger has stopped: {error}"),
        };
        self.handle.spawn(work).await.map_err(stopped)?
    }

    /// Waits until `revision` tells of one past `since`: looks at once, whenever somebody is woken, and now and then.
    pub(crate) async fn changed<R>(
        &self,
        (waiters, key): (Arc<Waiters>, Digest),
        since: Revision,
        wait: Duration,
        revision: impl Fn() -> R + Send + 'static,
    ) -> Hint
    where
        R: Future<Output = Result<Revision, Error>> + Send,
    {
        let looking = async move {
            loop {
                let notify = waiters.register(key);
                // Listens before it looks, so that nothing falls between.
                let mut woken = std::pin::pin!(notify.notified());
                woken.as_mut().enable();
                if revision().await.is_ok_and(|revision| revision != since) {
                    return Hint::Changed;
                }
                let _woken_or_time_to_poll = timeout(POLL, woken).await;
            }
        };
        // A timer needs the runtime that it is made in.
        let waiting = self.handle.spawn(async move { timeout(wait, looking).await });
        let _ends_with_the_caller = AbortOnDrop(waiting.abort_handle());
        waiting.await.ok().and_then(Result::ok).unwrap_or(Hint::TimedOut)
    }
}

/// A caller that has gone waits for nothing.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A commit, and the caller that waits for it.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) commit: Arc<Commit>,
    pub(crate) answer: oneshot::Sender<Result<Committed, Error>>,
}

/// Hands a commit to those who write, and waits for their answer. What begins something is refused where too many wait.
#[allow(clippy::disallowed_methods, reason = "measures the server; decides nothing about effects")]
pub(crate) async fn submit(
    queue: &mpsc::Sender<Queued>,
    times: &Histogram,
    commit: Arc<Commit>,
) -> Result<Committed, Error> {
    let begun = (commit.durability == Durability::Durable).then(Instant::now);
    let stopped = || Error::NotWritten { what: "the thread of the ledger has stopped".to_owned() };
    let begins = commit.require.begins;
    let (answer, answered) = oneshot::channel();
    let queued = Queued { commit, answer };
    match begins {
        true => queue.try_send(queued).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => Error::Overloaded,
            mpsc::error::TrySendError::Closed(_) => stopped(),
        })?,
        false => queue.send(queued).await.map_err(|_| stopped())?,
    }
    // The writer had it and is gone: nobody knows how far it came.
    let answer = answered.await.unwrap_or(Ok(Committed::Unknown));
    if let (Some(begun), Ok(Committed::Done)) = (begun, &answer) {
        times.add(begun.elapsed());
    }
    answer
}

/// Who waits in this process, by the first bytes of the key. Two keys that share them wake each other's waiters, who look
/// and wait on.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<HashMap<u64, Weak<Notify>>>);

impl Waiters {
    pub(crate) fn register(&self, key: Digest) -> Arc<Notify> {
        let mut waiting = self.lock();
        if let Some(notify) = waiting.get(&key.short()).and_then(Weak::upgrade) {
            return notify;
        }
        waiting.retain(|_, notify| notify.strong_count() > 0);
        let notify = Arc::new(Notify::new());
        waiting.insert(key.short(), Arc::downgrade(&notify));
        notify
    }

    pub(crate) fn wake(&self, key: u64) {
        if let Some(notify) = self.lock().get(&key).and_then(Weak::upgrade) {
            notify.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Weak<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys that a commit has moved and that somebody may wait for. A first claim is news to nobody.
pub(crate) fn news(commit: &Commit) -> impl Iterator<Item = u64> {
    moved(commit).filter(|(_, revision)| *revision != Revision(1)).map(|(key, _)| key.short())
}
