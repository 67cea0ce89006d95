//! Group commit: how callers come to share a transaction.
//!
//! Alone, a caller commits in its own poll and no thread exists, and so do a few who seldom meet: each steps aside once
//! where others have come of late, and the one with the writer commits for all who queued meanwhile. Once callers keep
//! finding the writer taken, a thread drains the queue, and everybody uses it until it has been lonely for a while.

use super::at_once::try_lock;
use super::batching::{BatchWait, Company, WaitLimits};
use super::clock;
use super::writer::{BatchCost, CommitResult, Patience, Writer};
use crate::Error;
use crate::histogram::{Histogram, HistogramSnapshot};
use crate::store::{Commit, Committed, Durability};
use crate::waiters::Waiters;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// More would only lengthen the transaction: at this size the fsync is a small part of it.
const BATCH_MAX: usize = 512;

/// Claims that wait. They fill two batches; of more the last would wait for longer than it is worth, and is told so
/// before anything is sent.
const CLAIMS_WAITING_MAX: usize = 2 * BATCH_MAX;

/// How long a caller waits for the writer before it calls the thread: what a commit that needs no disk has left. Two
/// changes of threads take longer.
const WRITER_SOON: Duration = Duration::from_micros(200);

/// How long an ending process waits for the thread to be done: it has answered the last commit before it tidies up.
const WRITER_AT_THE_END: Duration = Duration::from_secs(1);

/// After so many batches of one the thread steps back and callers commit by themselves again.
const LONELY_BATCHES: u32 = 16;

#[derive(Debug)]
pub(super) struct GroupCommit {
    writer: Mutex<Writer>,
    queue: Mutex<CommitQueue>,
    arrived: Condvar,
    /// The thread serves; callers only queue.
    busy: AtomicBool,
    company: Company,
    meetings: Meetings,
    batch_wait: BatchWait,
    durable_commits: AtomicU64,
    times: Histogram,
    waiters: Arc<Waiters>,
}

#[derive(Debug)]
struct CommitQueue {
    /// Settlements go before claims: an answer that cannot be recorded is a doubt.
    jobs: VecDeque<QueuedCommit>,
    claims: VecDeque<QueuedCommit>,
    /// The thread wants to be woken once this many jobs wait; `usize::MAX` while it is at work.
    wake_at: usize,
    closed: bool,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct QueuedCommit {
    commit: Arc<Commit>,
    answer: oneshot::Sender<CommitResult>,
}

impl CommitQueue {
    fn len(&self) -> usize {
        self.jobs.len() + self.claims.len()
    }

    /// How many callers wait for it. What is in no hurry is nobody's company.
    fn callers(&self) -> usize {
        self.claims.len() + self.jobs.iter().filter(|job| !is_in_no_hurry(&job.commit)).count()
    }

    fn all_lazy(&self) -> bool {
        self.jobs.iter().chain(&self.claims).all(|job| job.commit.durability == Durability::Lazy)
    }

    fn push(&mut self, job: QueuedCommit) -> Result<(), Error> {
        match job.commit.require.begins {
            true if self.claims.len() >= CLAIMS_WAITING_MAX => Err(Error::Overloaded),
            true => {
                self.claims.push_back(job);
                Ok(())
            }
            false => {
                self.jobs.push_back(job);
                Ok(())
            }
        }
    }

    /// The next batch. A lazy one has lazy commits alone.
    fn take(&mut self, durability: Durability) -> Vec<QueuedCommit> {
        let fits = |job: &QueuedCommit| {
            durability == Durability::Durable || job.commit.durability == Durability::Lazy
        };
        let mut batch = Vec::new();
        for queue in [&mut self.jobs, &mut self.claims] {
            let room = BATCH_MAX - batch.len();
            let count = queue.iter().take(room).take_while(|job| fits(job)).count();
            batch.extend(queue.drain(..count));
        }
        batch
    }
}

impl GroupCommit {
    pub(super) fn new(writer: Writer, waiters: Arc<Waiters>) -> Self {
        let queue = CommitQueue {
            jobs: VecDeque::new(),
            claims: VecDeque::new(),
            wake_at: usize::MAX,
            closed: false,
            thread: None,
        };
        GroupCommit {
            writer: Mutex::new(writer),
            queue: Mutex::new(queue),
            arrived: Condvar::new(),
            busy: AtomicBool::new(false),
            company: Company::default(),
            meetings: Meetings::default(),
            batch_wait: BatchWait::default(),
            durable_commits: AtomicU64::new(0),
            times: Histogram::default(),
            waiters,
        }
    }

    /// Dropping the future does not take the commit back.
    pub(super) async fn commit(self: &Arc<Self>, commit: Arc<Commit>) -> CommitResult {
        let (answer, mut answered) = oneshot::channel();
        let hurries = !is_in_no_hurry(&commit);
        let job = QueuedCommit { commit, answer };
        if self.busy.load(Ordering::Relaxed) || self.batch_wait.disk_is_slow() {
            self.leave_to_thread(Some(job))?;
        } else {
            self.queue().push(job)?;
            if !hurries || self.company.is_worth_a_look() {
                let queued = QueueGuard(self);
                step_aside().await;
                std::mem::forget(queued);
            }
            if let Some(mut writer) = if hurries { self.writer_soon() } else { self.try_writer() } {
                // Somebody may have committed it meanwhile.
                if let Ok(answer) = answered.try_recv() {
                    return answer;
                }
                // An executor's thread never waits for another process.
                self.lead(&mut writer, Patience::None);
                if let Ok(answer) = answered.try_recv() {
                    return answer;
                }
            }
            match hurries {
                true => self.leave_to_thread(None)?,
                // Nobody else need do without the writer for its sake.
                false => self.call_thread(None)?,
            }
        }
        answered.await.unwrap_or(Ok(Committed::Unknown))
    }

    /// The same without ever waiting in the executor: the caller that gets the writer commits for all who queued.
    pub(super) fn commit_blocking(&self, commit: Arc<Commit>) -> CommitResult {
        let (answer, mut answered) = oneshot::channel();
        self.queue().push(QueuedCommit { commit, answer })?;
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match answered.try_recv() {
                Ok(answer) => return answer,
                Err(oneshot::error::TryRecvError::Closed) => return Ok(Committed::Unknown),
                Err(oneshot::error::TryRecvError::Empty) => self.lead(&mut writer, Patience::Waits),
            };
        }
    }

    pub(super) fn times(&self) -> HistogramSnapshot {
        self.times.counted()
    }

    pub(super) fn durable_commits(&self) -> u64 {
        self.durable_commits.load(Ordering::Relaxed)
    }

    /// The writer, if nobody has it.
    pub(super) fn try_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        try_lock(&self.writer)
    }

    /// The writer, if it is free or given back at once. Not where callers keep meeting: they are
    /// too many to wait in their executor.
    fn writer_soon(&self) -> Option<MutexGuard<'_, Writer>> {
        let writer = self.try_writer();
        let many = self.meetings.note(writer.is_none());
        if writer.is_some() || many {
            return writer;
        }
        self.writer_within(WRITER_SOON, std::thread::yield_now)
    }

    /// The writer, for a caller that has nothing else to do any more.
    pub(super) fn writer_at_the_end(&self) -> Option<MutexGuard<'_, Writer>> {
        const NAP: Duration = Duration::from_millis(1);
        self.try_writer().or_else(|| self.writer_within(WRITER_AT_THE_END, || clock::sleep(NAP)))
    }

    fn writer_within(&self, span: Duration, rest: impl Fn()) -> Option<MutexGuard<'_, Writer>> {
        let until = clock::now() + span;
        while clock::now() < until {
            rest();
            if let Some(writer) = self.try_writer() {
                return Some(writer);
            }
        }
        None
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

    /// One batch. Returns how many callers were answered, but for those in no hurry.
    fn lead(&self, writer: &mut Writer, patience: Patience) -> usize {
        if self.queue().len() == 0 {
            return 0;
        }
        let durability = self.durability_of_next(writer);
        let mut answers_to = Vec::new();
        let drain = || self.drain(durability, &mut answers_to);
        let Some((commits, answers, cost)) = writer.write(durability, patience, drain) else {
            return 0;
        };
        if let BatchCost::Synced(took) = cost {
            self.durable_commits.fetch_add(1, Ordering::Relaxed);
            self.batch_wait.note(took);
            self.times.add(took);
        }
        let released = commits.iter().filter(|commit| !is_in_no_hurry(commit)).count();
        self.company.note(released);
        for ((commit, answer), to) in commits.into_iter().zip(answers).zip(answers_to) {
            if matches!(answer, Ok(Committed::Done | Committed::Unknown)) {
                self.waiters.landed(&commit);
            }
            // First: memory is freed the cheapest by the caller, who has it too and soon needs it again.
            drop(commit);
            // The caller may have gone; its commit stands.
            let _ = to.send(answer);
        }
        writer.tidy();
        released
    }

    /// Lazy only if all that wait are: one durable commit makes the fsync, and the lazy ones ride along. Where a
    /// checkpoint is due, the batch is durable too: a ledger of lazy commits alone would else never have one.
    fn durability_of_next(&self, writer: &Writer) -> Durability {
        let lazy = self.queue().all_lazy();
        if lazy && !writer.checkpoint_is_due() { Durability::Lazy } else { Durability::Durable }
    }

    fn drain(
        &self,
        durability: Durability,
        answers_to: &mut Vec<oneshot::Sender<CommitResult>>,
    ) -> Vec<Arc<Commit>> {
        let jobs = self.queue().take(durability).into_iter();
        jobs.map(|job| {
            answers_to.push(job.answer);
            job.commit
        })
        .collect()
    }

    /// Everybody does, from now on.
    fn leave_to_thread(self: &Arc<Self>, job: Option<QueuedCommit>) -> Result<(), Error> {
        self.busy.store(true, Ordering::Relaxed);
        self.call_thread(job)
    }

    fn call_thread(self: &Arc<Self>, job: Option<QueuedCommit>) -> Result<(), Error> {
        let mut queue = self.queue();
        if let Some(job) = job {
            queue.push(job)?;
        }
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
            self.lead(&mut writer, Patience::Waits);
        } else if queue.len() >= queue.wake_at {
            // Woken once, by the thread that completes the batch, and outside the lock that it takes first.
            queue.wake_at = usize::MAX;
            drop(queue);
            self.arrived.notify_one();
        }
        Ok(())
    }

    fn serve(&self) {
        let mut expected = 1;
        let mut lonely = 0;
        while self.gather(expected) {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let released = self.lead(&mut writer, Patience::Waits);
            drop(writer);
            let waiting = self.queue().callers();
            // Those just answered tend to come back at once, those who came during the commit are here already.
            expected = if released > 1 { (released + waiting).min(BATCH_MAX) } else { 1 };
            lonely = if released <= 1 && waiting <= 1 { lonely + 1 } else { 0 };
            if lonely > LONELY_BATCHES {
                self.busy.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Waits for work, and a little for company. `false`: the lane is closed and empty.
    fn gather(&self, expected: usize) -> bool {
        let mut queue = self.queue();
        while queue.len() == 0 {
            if queue.closed {
                return false;
            }
            queue.wake_at = 1;
            queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(span) = self.batch_wait.span() {
            queue = self.linger(queue, expected, span);
        }
        queue.wake_at = usize::MAX;
        true
    }

    /// Waits until so many jobs are there, or nobody has come for a while.
    fn linger<'q>(
        &'q self,
        mut queue: MutexGuard<'q, CommitQueue>,
        expected: usize,
        span: WaitLimits,
    ) -> MutexGuard<'q, CommitQueue> {
        let until = clock::now() + span.whole;
        queue.wake_at = expected;
        while queue.len() < expected && !queue.closed {
            let (before, left) = (queue.len(), until.saturating_duration_since(clock::now()));
            let wait = span.quiet.min(left);
            queue = self.arrived.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
            if queue.len() == before || left.is_zero() {
                break;
            }
        }
        queue
    }

    fn queue(&self) -> MutexGuard<'_, CommitQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A commit that waits for its caller to come back. If the caller does not, the thread takes it.
struct QueueGuard<'l>(&'l Arc<GroupCommit>);

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        let _nothing_new_is_refused = self.0.call_thread(None);
    }
}

/// Marks, counts, the ends of generations: what a power cut may take may also wait for company. What begins something
/// may not, its sending waits for it.
fn is_in_no_hurry(commit: &Commit) -> bool {
    commit.durability == Durability::Lazy && !commit.require.begins
}

/// Lets all that is ready go first, once.
async fn step_aside() {
    let mut stepped = false;
    poll_fn(|context| {
        if std::mem::replace(&mut stepped, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How often callers found the writer taken, of late.
#[derive(Debug, Default)]
struct Meetings(AtomicU32);

impl Meetings {
    const REMEMBERED: u32 = u16::BITS;
    const MANY: u32 = 10;

    /// Whether that is too often to wait.
    fn note(&self, met: bool) -> bool {
        let older = self.0.load(Ordering::Relaxed);
        // Two at once may lose one: it is an estimate.
        let all = (older << 1 | u32::from(met)) & ((1 << Self::REMEMBERED) - 1);
        self.0.store(all, Ordering::Relaxed);
        all.count_ones() >= Self::MANY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Nonce, Require};

    fn queue() -> CommitQueue {
        let (jobs, claims) = (VecDeque::new(), VecDeque::new());
        CommitQueue { jobs, claims, wake_at: usize::MAX, closed: false, thread: None }
    }

    fn job(number: u128, claim: bool, durability: Durability) -> QueuedCommit {
        let require = Require { begins: claim, ..Require::default() };
        let (puts, journal) = (Vec::new(), Vec::new());
        let commit = Commit { nonce: Nonce(number), puts, require, journal, durability };
        QueuedCommit { commit: commit.into(), answer: oneshot::channel().0 }
    }

    fn numbers(batch: &[QueuedCommit]) -> Vec<u128> {
        batch.iter().map(|job| job.commit.nonce.0).collect()
    }

    #[test]
    fn callers_who_seldom_meet_wait_and_callers_who_often_do_call_the_thread() {
        let meetings = Meetings::default();
        assert!((0..100).all(|n| !meetings.note(n % 2 == 0)), "every other time is not often");
        let noted = |met| (0..16).map(|_| meetings.note(met)).last();
        assert_eq!(noted(true), Some(true));
        assert_eq!(noted(false), Some(false));
        assert!(!meetings.note(true));
    }

    #[test]
    fn what_ends_something_goes_before_what_begins_something() {
        let mut queue = queue();
        for number in 0..600 {
            queue.push(job(number, true, Durability::Durable)).unwrap();
        }
        queue.push(job(1_000, false, Durability::Durable)).unwrap();
        queue.push(job(1_001, false, Durability::Lazy)).unwrap();
        let batch = queue.take(Durability::Durable);
        assert_eq!((batch.len(), &numbers(&batch)[..3]), (BATCH_MAX, &[1_000, 1_001, 0][..]));
        assert_eq!(
            numbers(&queue.take(Durability::Durable)),
            (510..600).collect::<Vec<_>>(),
            "in their order"
        );
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn too_many_claims_are_refused_and_settlements_never() {
        let mut queue = queue();
        for number in 0..CLAIMS_WAITING_MAX as u128 {
            queue.push(job(number, true, Durability::Durable)).unwrap();
        }
        assert!(matches!(queue.push(job(0, true, Durability::Durable)), Err(Error::Overloaded)));
        for number in 0..10_000 {
            queue.push(job(number, false, Durability::Durable)).unwrap();
        }
        queue.take(Durability::Durable);
        assert!(matches!(queue.push(job(0, true, Durability::Durable)), Err(Error::Overloaded)));
    }

    /// Marks come by themselves every few milliseconds: counted, they would keep the thread at work for one caller.
    #[test]
    fn what_is_in_no_hurry_is_no_company() {
        let mut queue = queue();
        queue.push(job(1, false, Durability::Lazy)).unwrap();
        assert_eq!((queue.len(), queue.callers()), (1, 0));
        queue.push(job(2, false, Durability::Durable)).unwrap();
        queue.push(job(3, true, Durability::Lazy)).unwrap();
        assert_eq!((queue.len(), queue.callers()), (3, 2));
    }

    #[test]
    fn a_lazy_batch_has_nothing_that_needs_the_disk() {
        let mut queue = queue();
        queue.push(job(1, false, Durability::Lazy)).unwrap();
        queue.push(job(2, true, Durability::Lazy)).unwrap();
        assert!(queue.all_lazy());
        queue.push(job(3, true, Durability::Durable)).unwrap();
        queue.push(job(4, false, Durability::Durable)).unwrap();
        assert!(!queue.all_lazy());
        assert_eq!(numbers(&queue.take(Durability::Lazy)), [1, 2]);
    }
}
