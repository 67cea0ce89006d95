//! The parts that all engines on servers have: a thread for their connections, a queue of commits, and the task that
//! looks for those who wait.

use crate::histogram::Histogram;
use crate::precondition::moved;
use crate::store::{Commit, Committed, Durability, Revision};
use crate::waiters::Waiters;
use crate::{Error, clock};
use semel_core::digest::Digest;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinError;
use tokio::time::timeout;

/// A store writes only to the ledger that it has opened, because all keys come from its secret.
pub(crate) const OTHER_LEDGER: &str = "the ledger was deleted from the server, or another one stands there. Find out why \
                                       before you start semel again";

/// Without a message all who wait look again after so long, together.
const POLL: Duration = Duration::from_millis(250);

/// Looking must not take more than a tenth of the time, however many keys are waited for.
const REST_PER_LOOK: u32 = 9;

/// Other questions come between.
const KEYS_AT_ONCE: usize = 500;

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

/// Looks for all who wait, until the thread of the connections ends: at keys that are new or were announced at once, and
/// at all of them now and then. `revisions` reads those of some keys.
pub(crate) async fn look_for<R>(waiters: Arc<Waiters>, revisions: impl Fn(Vec<Digest>) -> R + Send)
where
    R: Future<Output = Result<Vec<(Digest, Revision)>, Error>> + Send,
{
    let waiters = CloseAtTheEnd(waiters);
    let waiters = &*waiters.0;
    let (mut poll_at, mut looking_since) = (clock::now() + POLL, None);
    loop {
        waiters.expire();
        let now = clock::now();
        let (keys, until) = {
            let mut state = waiters.state();
            if now >= poll_at && looking_since.is_none() {
                state.look_at_all();
                looking_since = Some(now);
            }
            let soonest = state.next_deadline().map_or(poll_at, |deadline| deadline.min(poll_at));
            (state.take_unseen(KEYS_AT_ONCE), (!state.is_empty()).then_some(soonest))
        };
        if !keys.is_empty() {
            let mut reading = std::pin::pin!(revisions(keys.clone()));
            let found = loop {
                // The server may be away for longer than some have time.
                tokio::select! {
                    found = &mut reading => break found,
                    () = tokio::time::sleep(POLL) => waiters.expire(),
                }
            };
            match found {
                Ok(found) => found.into_iter().for_each(|(key, revision)| waiters.moved(key, revision)),
                Err(_) => {
                    waiters.state().look_again(&keys);
                    tokio::time::sleep(POLL).await;
                }
            }
        } else if let Some(since) = looking_since.take() {
            poll_at = now + POLL.max((now - since) * REST_PER_LOOK);
        } else if let Some(until) = until {
            let _called_or_time =
                timeout(until.saturating_duration_since(now), waiters.called.notified()).await;
        } else {
            waiters.called.notified().await;
            poll_at = clock::now() + POLL;
        }
    }
}

/// Without anybody who looks, nobody would be woken at the deadline either.
struct CloseAtTheEnd(Arc<Waiters>);

impl Drop for CloseAtTheEnd {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The keys that a commit has moved and that somebody may wait for. A first claim is news to nobody.
pub(crate) fn news(commit: &Commit) -> impl Iterator<Item = u64> {
    moved(commit).filter(|(_, revision)| *revision != Revision(1)).map(|(key, _)| key.short())
}
