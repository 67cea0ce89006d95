//! Commits that arrive together share a transaction, and so one flush of the server's disk.

use super::address::PostgresAddress;
use super::connect::session;
use super::needs::Needs;
use super::statements::Sql;
use super::transaction::{Answer, Failure, transact};
use super::wake::News;
use crate::Error;
use crate::server_io::Queued;
use crate::store::{Commit, Committed, Put};
use semel_core::digest::Secret;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio_postgres::Client;

/// With more, the last of them would wait longer than the sharing saves.
const BATCH_MAX: usize = 128;

/// The bodies and replies of one batch. The server takes no message of a gigabyte; a single commit is far below.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// A transaction that the server has ended for its own reasons is begun again so often.
const TRIES_MAX: u32 = 5;

/// As many times over as it was tried.
const REFUSED_PAUSE: Duration = Duration::from_millis(20);

/// Takes commits from a queue that several of these share, each over a connection of its own.
pub(super) struct Batcher {
    pub(super) address: PostgresAddress,
    pub(super) sql: Arc<Sql>,
    pub(super) secret: Secret,
    pub(super) queue: Arc<Mutex<mpsc::Receiver<Queued>>>,
    pub(super) news: Arc<News>,
}

impl Batcher {
    pub(super) async fn run(self) {
        let mut client: Option<Client> = None;
        // Those that touch the same as an earlier one, or found no room beside it, wait here for the next batch.
        let mut left: VecDeque<Queued> = VecDeque::new();
        loop {
            self.fill(&mut left).await;
            if left.is_empty() {
                return;
            }
            let (mut needs, mut bytes) = (Needs::of_any_batch(&self.sql), 0);
            let (mut batch, mut later) = (Vec::new(), VecDeque::new());
            for queued in left.drain(..) {
                bytes += size(&queued.commit);
                let fits = batch.is_empty() || bytes <= BATCH_BYTES_MAX;
                match fits && needs.add(&self.sql, &queued.commit) {
                    true => batch.push(queued),
                    false => later.push_back(queued),
                }
            }
            left = later;
            self.land(&mut client, &needs, batch).await;
        }
    }

    /// Waits for a commit if there is none, and takes those that have come meanwhile. Nothing is left when the store is
    /// gone.
    async fn fill(&self, left: &mut VecDeque<Queued>) {
        let mut came = Vec::new();
        if left.is_empty() {
            self.queue.lock().await.recv_many(&mut came, BATCH_MAX).await;
        } else if let Ok(mut queue) = self.queue.try_lock() {
            // Else another batcher is waiting there, and takes them.
            while left.len() + came.len() < BATCH_MAX
                && let Ok(queued) = queue.try_recv()
            {
                came.push(queued);
            }
        }
        left.extend(came);
    }

    async fn land(&self, client: &mut Option<Client>, needs: &Needs, batch: Vec<Queued>) {
        let commits: Vec<Arc<Commit>> = batch.iter().map(|queued| Arc::clone(&queued.commit)).collect();
        let failure = match self.attempt(client, needs, &commits).await {
            Ok(answers) => {
                for (queued, answer) in batch.into_iter().zip(answers) {
                    if matches!(answer, Ok(Committed::Done)) {
                        self.news.announce(&queued.commit);
                    }
                    // A caller that has gone needs no answer.
                    let _gone = queued.answer.send(answer);
                }
                return;
            }
            Err(failure) => failure,
        };
        if matches!(failure, Failure::Refused(_)) && batch.len() > 1 {
            // The others are not to suffer for the one that the server refuses.
            for queued in batch {
                let mut needs = Needs::of_any_batch(&self.sql);
                needs.add(&self.sql, &queued.commit);
                Box::pin(self.land(client, &needs, vec![queued])).await;
            }
            return;
        }
        for queued in batch {
            let _gone = queued.answer.send(match &failure {
                Failure::Unknown => Ok(Committed::Unknown),
                Failure::Unreachable(what) | Failure::Again(what) | Failure::Refused(what) => {
                    Err(Error::NotWritten { what: what.clone() })
                }
            });
        }
    }

    async fn attempt(
        &self,
        kept: &mut Option<Client>,
        needs: &Needs,
        commits: &[Arc<Commit>],
    ) -> Result<Vec<Answer>, Failure> {
        let mut tried = 0;
        loop {
            tried += 1;
            let mut client = match kept.take() {
                Some(client) if !client.is_closed() => client,
                _ => session(&self.address).await.map_err(|error| Failure::Unreachable(error.to_string()))?,
            };
            match transact(&mut client, (&self.sql, &self.secret), needs, commits).await {
                Ok(answers) => {
                    *kept = Some(client);
                    return Ok(answers);
                }
                // The connection is dropped, and what was begun on it ends.
                Err(Failure::Again(_)) if tried < TRIES_MAX => {}
                // Others may have used up what the server has, and are done in a moment.
                Err(Failure::Refused(_)) if tried < TRIES_MAX && commits.len() == 1 => {
                    tokio::time::sleep(REFUSED_PAUSE * tried).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}

/// The bytes that the caller has given it, about.
fn size(commit: &Commit) -> usize {
    commit.puts.iter().map(Put::bytes).sum::<usize>()
        + commit.journal.iter().map(|line| line.data.len()).sum::<usize>()
}
