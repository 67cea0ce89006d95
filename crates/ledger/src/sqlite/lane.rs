//! Group commit: how callers come to share a transaction.
//!
//! Alone, a caller commits in its own poll and no thread exists. As soon as one finds the writer taken, a thread
//! drains the queue, and everybody uses it until it has been lonely for a while.

use super::clock;
use super::linger::{Linger, Span};
use super::waiters::Waiters;
use super::writer::{Answer, Cost, Writer};
use crate::precondition::moved;
use crate::store::{Commit, Committed, Durability};
use crate::times::{Counted, Times};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// More would only lengthen the transaction: at this size the fsync is a small part of it.
const BATCH_MAX: usize = 512;

/// After so many batches of one the thread steps back and callers commit by themselves again.
const LONELY_BATCHES: u32 = 16;

#[derive(Debug)]
pub(super) struct Lane {
    writer: Mutex<Writer>,
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// The thread serves; callers only queue.
    busy: AtomicBool,
    linger: Linger,
    durable_commits: AtomicU64,
    times: Times,
    waiters: Arc<Waiters>,
}

#[derive(Debug)]
struct Queue {
    jobs: VecDeque<Job>,
    /// The thread wants to be woken once this many jobs wait; `usize::MAX` while it is at work.
    wake_at: usize,
    closed: bool,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Job {
    commit: Commit,
    answer: oneshot::Sender<Answer>,
}

impl Lane {
    pub(super) fn new(writer: Writer, waiters: Arc<Waiters>) -> Self {
        let queue = Queue { jobs: VecDeque::new(), wake_at: usize::MAX, closed: false, thread: None };
        Lane {
            writer: Mutex::new(writer),
            queue: Mutex::new(queue),
            arrived: Condvar::new(),
            busy: AtomicBool::new(false),
            linger: Linger::default(),
            durable_commits: AtomicU64::new(0),
            times: Times::default(),
            waiters,
        }
    }

    /// Dropping the future does not take the commit back.
    pub(super) async fn commit(self: &Arc<Self>, commit: Commit) -> Answer {
        let (answer, mut answered) = oneshot::channel();
        let job = Job { commit, answer };
        if !self.busy.load(Ordering::Relaxed) && !self.linger.disk_is_slow() {
            self.queue().jobs.push_back(job);
            if let Some(mut writer) = self.try_writer() {
                self.lead(&mut writer);
                if let Ok(answer) = answered.try_recv() {
                    return answer;
                }
            }
            self.call_thread(None);
        } else {
            self.call_thread(Some(job));
        }
        answered.await.unwrap_or(Ok(Committed::Unknown))
    }

    /// The same without ever waiting in the executor: whoever gets the writer commits for all who queued.
    pub(super) fn commit_blocking(&self, commit: Commit) -> Answer {
        let (answer, mut answered) = oneshot::channel();
        self.queue().jobs.push_back(Job { commit, answer });
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match answered.try_recv() {
                Ok(answer) => return answer,
                Err(oneshot::error::TryRecvError::Closed) => return Ok(Committed::Unknown),
                Err(oneshot::error::TryRecvError::Empty) => self.lead(&mut writer),
            };
        }
    }

    pub(super) fn times(&self) -> Counted {
        self.times.counted()
    }

    pub(super) fn durable_commits(&self) -> u64 {
        self.durable_commits.load(Ordering::Relaxed)
    }

    /// The writer, if nobody has it.
    pub(super) fn try_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        match self.writer.try_lock() {
            Ok(writer) => Some(writer),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Answers what is queued, then ends the thread if there is one.
    pub(super) fn close(&self) {
        let thread = {
            let mut queue = self.queue();
            queue.closed = true;
            queue.thread.take()
        };
        self.arrived.notify_all();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }

    /// One batch. Returns how many callers were answered.
    fn lead(&self, writer: &mut Writer) -> usize {
        if self.queue().jobs.is_empty() {
            return 0;
        }
        let durability = self.durability_of_next(writer);
        let mut answers_to = Vec::new();
        let (commits, answers, cost) = writer.write(durability, || self.drain(durability, &mut answers_to));
        if let Cost::Synced(took) = cost {
            self.durable_commits.fetch_add(1, Ordering::Relaxed);
            self.linger.note(took);
            self.times.add(took);
        }
        let released = answers.len();
        for ((commit, answer), to) in commits.iter().zip(answers).zip(answers_to) {
            if matches!(answer, Ok(Committed::Done | Committed::Unknown)) && self.waiters.any() {
                moved(commit).for_each(|(key, revision)| self.waiters.moved(key, revision));
            }
            // The caller may have gone; its commit stands.
            let _ = to.send(answer);
        }
        writer.tidy();
        released
    }

    /// Lazy only if all that wait are: one durable commit makes the fsync, and the lazy ones ride along. Where a
    /// checkpoint is due, the batch is durable too: a ledger of lazy commits alone would else never have one.
    fn durability_of_next(&self, writer: &Writer) -> Durability {
        let lazy = self.queue().jobs.iter().all(|job| job.commit.durability == Durability::Lazy);
        if lazy && !writer.checkpoint_is_due() { Durability::Lazy } else { Durability::Durable }
    }

    fn drain(&self, durability: Durability, answers_to: &mut Vec<oneshot::Sender<Answer>>) -> Vec<Commit> {
        let mut queue = self.queue();
        let fits = |job: &Job| durability == Durability::Durable || job.commit.durability == Durability::Lazy;
        let count = queue.jobs.iter().take(BATCH_MAX).take_while(|job| fits(job)).count();
        let jobs = queue.jobs.drain(..count);
        jobs.map(|job| {
            answers_to.push(job.answer);
            job.commit
        })
        .collect()
    }

    fn call_thread(self: &Arc<Self>, job: Option<Job>) {
        self.busy.store(true, Ordering::Relaxed);
        let mut queue = self.queue();
        queue.jobs.extend(job);
        let gone = queue.thread.as_ref().is_none_or(JoinHandle::is_finished);
        if gone && !queue.closed {
            let lane = Arc::clone(self);
            let thread = std::thread::Builder::new().name("semel-ledger".to_owned());
            queue.thread = thread.spawn(move || lane.serve()).ok();
        }
        if queue.thread.is_none() {
            // No thread to be had: this caller does the work, whatever else its executor has to do.
            drop(queue);
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            self.lead(&mut writer);
        } else if queue.jobs.len() >= queue.wake_at {
            // Woken once, by whoever completes the batch, and outside the lock that it takes first.
            queue.wake_at = usize::MAX;
            drop(queue);
            self.arrived.notify_one();
        }
    }

    fn serve(&self) {
        let mut expected = 1;
        let mut lonely = 0;
        while self.gather(expected) {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let released = self.lead(&mut writer);
            drop(writer);
            let waiting = self.queue().jobs.len();
            // Those just answered tend to come back at once, those who came during the commit are here already.
            expected = if released > 1 { (released + waiting).min(BATCH_MAX) } else { 1 };
            lonely = if released <= 1 && waiting == 0 { lonely + 1 } else { 0 };
            if lonely > LONELY_BATCHES {
                self.busy.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Waits for work, and a little for company. `false`: the lane is closed and empty.
    fn gather(&self, expected: usize) -> bool {
        let mut queue = self.queue();
        while queue.jobs.is_empty() {
            if queue.closed {
                return false;
            }
            queue.wake_at = 1;
            queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(span) = self.linger.span() {
            queue = self.linger(queue, expected, span);
        }
        queue.wake_at = usize::MAX;
        true
    }

    /// Waits until so many jobs are there, or nobody has come for a while.
    fn linger<'q>(
        &'q self,
        mut queue: MutexGuard<'q, Queue>,
        expected: usize,
        span: Span,
    ) -> MutexGuard<'q, Queue> {
        let until = clock::now() + span.whole;
        queue.wake_at = expected;
        while queue.jobs.len() < expected && !queue.closed {
            let (before, left) = (queue.jobs.len(), until.saturating_duration_since(clock::now()));
            let wait = span.quiet.min(left);
            queue = self.arrived.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
            if queue.jobs.len() == before || left.is_zero() {
                break;
            }
        }
        queue
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
