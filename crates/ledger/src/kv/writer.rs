//! Commits that arrive together travel together: one read of all that they need, and one batch of writes. A commit that
//! lost a race is examined again, against what it lost to.

use super::codec::StoredReply;
use super::engine::{Applied, Batch, Group, Kv};
use super::group::GroupBuilder;
use super::layout;
use super::prefetch::{Gap, Look, Needs, Prefetched};
use super::replies;
use super::shared::Shared;
use crate::Error;
use crate::precondition::{Finding, examine};
use crate::server_io::{Queued, news};
use crate::store::{Committed, Durability};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};

/// With more, the last of them would wait longer than the sharing saves.
const BATCH_MAX: usize = 128;

/// A commit that so often found something new is left to its caller. Each time another commit has landed.
const RACES_MAX: u32 = 200;

/// How often a server that does not answer is tried, and for how long the first pause is; each is twice the one before.
/// Together they take six seconds, in which a server restarts.
pub(super) const TRIES_MAX: u32 = 7;
const FIRST_PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn pause(failures: u32) {
    tokio::time::sleep(FIRST_PAUSE * (1 << failures)).await;
}

/// Takes commits from a queue that several of these share.
pub(super) struct Writer<K> {
    pub(super) shared: Arc<Shared<K>>,
    pub(super) queue: Arc<Mutex<mpsc::Receiver<Queued>>>,
}

struct Job {
    queued: Queued,
    needs: Needs,
    /// The replies that lie on the server already, by put.
    large: Vec<Option<StoredReply>>,
    races: u32,
    /// An attempt was sent, and nobody knows whether it landed.
    unsure: bool,
}

/// How a round of the server's work ended for a job that has no answer yet.
enum Retry {
    AtOnce,
    AfterPause(String),
}

impl<K: Kv> Writer<K> {
    pub(super) async fn run(self) {
        let (mut jobs, mut failures) = (Vec::new(), 0);
        loop {
            let mut came = Vec::new();
            if jobs.is_empty() {
                if self.queue.lock().await.recv_many(&mut came, BATCH_MAX).await == 0 {
                    return;
                }
            } else if let Ok(mut queue) = self.queue.try_lock() {
                while jobs.len() + came.len() < BATCH_MAX
                    && let Ok(queued) = queue.try_recv()
                {
                    came.push(queued);
                }
            }
            for queued in came {
                jobs.extend(self.accept(queued).await);
            }
            let (left, retry) = self.round(jobs).await;
            jobs = left;
            failures = match retry {
                Retry::AtOnce => 0,
                Retry::AfterPause(what) if failures == TRIES_MAX => {
                    jobs.drain(..).for_each(|job| give_up(job, &what));
                    0
                }
                Retry::AfterPause(_) => {
                    pause(failures).await;
                    failures + 1
                }
            };
        }
    }

    /// Large replies go first: they do not fit into one transaction of every server.
    async fn accept(&self, queued: Queued) -> Option<Job> {
        match replies::store(&self.shared, &queued.commit).await {
            Ok(large) => {
                let mut needs = Needs::default();
                needs.add(&queued.commit);
                needs.names.insert(layout::ledger());
                Some(Job { queued, needs, large, races: 0, unsure: false })
            }
            Err(error) => {
                let _gone = queued.answer.send(Err(error));
                None
            }
        }
    }

    /// Answers those that can be answered, and returns the others.
    async fn round(&self, jobs: Vec<Job>) -> (Vec<Job>, Retry) {
        let mut needs = Needs::default();
        for job in &jobs {
            needs.names.extend(job.needs.names.iter().cloned());
            needs.spans.extend(job.needs.spans.iter().cloned());
        }
        let (names, spans) = (Vec::from_iter(needs.names), Vec::from_iter(needs.spans));
        // Before the read: what it finds was true in this history, or the write tells.
        let lineage = self.shared.lineage();
        let state = match self.shared.kv.read(names.clone(), spans.clone()).await {
            Ok(found) => Prefetched::new(names, spans, found),
            Err(error) => return (jobs, Retry::AfterPause(error.to_string())),
        };
        if let Err(error) = self.shared.must_be_same(&state) {
            jobs.into_iter().for_each(|job| give_up(job, &error.to_string()));
            return (Vec::new(), Retry::AtOnce);
        }
        let (mut left, mut ready, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for mut job in jobs {
            match prepare(&self.shared, &state, &job) {
                Ok(Prepared::Group(group)) => {
                    ready.push(job);
                    groups.push(group);
                }
                Ok(Prepared::Answer(answer)) => self.answer_unwritten(job, answer).await,
                Err(gap) => match job.needs.lack(gap) {
                    Ok(()) => left.extend(race_again(job)),
                    Err(error) => self.answer_unwritten(job, Err(error)).await,
                },
            }
        }
        let (unlanded, retry) = self.apply(&lineage, ready, groups).await;
        left.extend(unlanded);
        (left, retry)
    }

    async fn apply(&self, lineage: &str, mut jobs: Vec<Job>, groups: Vec<Group>) -> (Vec<Job>, Retry) {
        if jobs.is_empty() {
            return (jobs, Retry::AtOnce);
        }
        let durable = jobs.iter().any(|job| job.queued.commit.durability == Durability::Durable);
        let moved: Vec<u64> = jobs.iter().flat_map(|job| news(&job.queued.commit)).collect();
        let batch = Batch { lineage, groups: &groups, durable, moved: &moved };
        match self.shared.kv.apply(batch).await {
            Applied::Each(landed) => {
                self.shared.note_lost_durability().await;
                let mut left = Vec::new();
                for ((job, group), landed) in jobs.into_iter().zip(&groups).zip(landed) {
                    if landed {
                        self.shared.heartbeat.landed(group);
                        self.shared.waiters.landed(&job.queued.commit);
                        answer(job.queued, Ok(Committed::Done));
                    } else {
                        left.extend(race_again(job));
                    }
                }
                (left, Retry::AtOnce)
            }
            Applied::OtherLineage => match self.shared.renew_lineage().await {
                Ok(()) => (jobs, Retry::AtOnce),
                Err(error) => (jobs, Retry::AfterPause(error.to_string())),
            },
            // The others are not to suffer for the one that the server refuses.
            Applied::Refused(_) if jobs.len() > 1 => {
                let mut left = Vec::new();
                for (job, group) in jobs.into_iter().zip(groups) {
                    let (unlanded, _) = Box::pin(self.apply(lineage, vec![job], vec![group])).await;
                    left.extend(unlanded);
                }
                (left, Retry::AtOnce)
            }
            Applied::Refused(what) => {
                for job in jobs {
                    self.answer_unwritten(job, Err(Error::NotWritten { what: what.clone() })).await;
                }
                (Vec::new(), Retry::AtOnce)
            }
            Applied::Again(what) => (jobs, Retry::AfterPause(what)),
            Applied::Unknown(what) => {
                // Lines alone leave nothing that could tell whether they landed, and must not be written twice.
                for job in jobs.extract_if(.., |job| job.queued.commit.puts.is_empty()) {
                    answer(job.queued, Ok(Committed::Unknown));
                }
                jobs.iter_mut().for_each(|job| job.unsure = true);
                (jobs, Retry::AfterPause(what))
            }
        }
    }

    /// This attempt wrote nothing. An earlier one may have: then its replies are in use, and what this one met may be what
    /// that one wrote.
    async fn answer_unwritten(&self, job: Job, result: Result<Committed, Error>) {
        if !job.unsure {
            replies::discard(&self.shared, &job.large).await;
        }
        let is_sure = !job.unsure || matches!(result, Ok(Committed::Done));
        answer(job.queued, if is_sure { result } else { Ok(Committed::Unknown) });
    }
}

enum Prepared {
    Group(Group),
    Answer(Result<Committed, Error>),
}

fn prepare<K: Kv>(shared: &Shared<K>, state: &Prefetched, job: &Job) -> Result<Prepared, Gap> {
    let commit = &job.queued.commit;
    let mut look = Look::at(state);
    look.value(layout::ledger())?;
    Ok(match examine(&mut look, commit)? {
        Finding::Clear(heads) => {
            let mut builder = GroupBuilder::new(look);
            builder.add(commit, heads, &job.large)?;
            if commit.require.begins {
                shared.missing_marks().into_iter().for_each(|(name, mark)| builder.put(name, mark));
            }
            Prepared::Group(builder.build())
        }
        Finding::Landed => Prepared::Answer(Ok(Committed::Done)),
        Finding::Conflict(conflict) => Prepared::Answer(Ok(Committed::Conflict(conflict))),
        Finding::Absurd(what) => Prepared::Answer(Err(Error::NotWritten { what })),
    })
}

/// `None`: it has lost too often, and its caller knows.
fn race_again(mut job: Job) -> Option<Job> {
    job.races += 1;
    if job.races < RACES_MAX {
        return Some(job);
    }
    give_up(job, "other processes keep writing the same");
    None
}

fn give_up(job: Job, what: &str) {
    let unwritten = || Err(Error::NotWritten { what: what.to_owned() });
    let result = if job.unsure { Ok(Committed::Unknown) } else { unwritten() };
    answer(job.queued, result);
}

fn answer(queued: Queued, result: Result<Committed, Error>) {
    // A caller that has gone needs no answer.
    let _gone = queued.answer.send(result);
}
