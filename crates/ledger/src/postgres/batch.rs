//! Commits that arrive together share a transaction, and so one flush of the server's disk.

use super::address::PostgresAddress;
use super::columns::Sql;
use super::connect::{explain, session};
use super::lineage;
use super::prefetch::Needs;
use super::wake::Waiters;
use super::write::Writes;
use crate::Error;
use crate::precondition::{Finding, examine};
use crate::store::{Commit, Committed, Durability};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// With more, the last of them would wait longer than the sharing saves.
const BATCH_MAX: usize = 128;

/// A transaction that the server has ended for its own reasons is begun again so often.
const TRIES_MAX: usize = 5;

/// A commit, and the caller that waits for it.
pub(super) struct Queued {
    pub(super) commit: Arc<Commit>,
    pub(super) answer: oneshot::Sender<Result<Committed, Error>>,
}

/// Takes commits from a queue that several of these share, each over a connection of its own.
pub(super) struct Batcher {
    pub(super) address: PostgresAddress,
    pub(super) sql: Arc<Sql>,
    pub(super) queue: Arc<Mutex<mpsc::Receiver<Queued>>>,
    pub(super) waiters: Arc<Waiters>,
}

/// Why a batch has no outcome.
enum Failure {
    /// Nothing was written, and the same may work in a moment.
    Again(String),
    /// Nothing was written, because of one of its commits.
    Refused(String),
    /// The connection broke while the server may have been committing.
    Unknown,
}

impl Batcher {
    pub(super) async fn run(self) {
        let mut client: Option<Client> = None;
        // Those that touch the same as an earlier one wait here for the next batch.
        let mut left: VecDeque<Queued> = VecDeque::new();
        loop {
            if left.is_empty() {
                let mut came = Vec::new();
                if self.queue.lock().await.recv_many(&mut came, BATCH_MAX).await == 0 {
                    return;
                }
                left.extend(came);
            }
            let (mut needs, mut batch, mut later) = (Needs::default(), Vec::new(), VecDeque::new());
            for queued in left.drain(..) {
                if needs.add(&queued.commit) { batch.push(queued) } else { later.push_back(queued) }
            }
            left = later;
            self.land(&mut client, &needs, batch).await;
        }
    }

    async fn land(&self, client: &mut Option<Client>, needs: &Needs, batch: Vec<Queued>) {
        let commits: Vec<Arc<Commit>> = batch.iter().map(|queued| Arc::clone(&queued.commit)).collect();
        match self.attempt(client, needs, &commits).await {
            Ok(findings) => {
                for (queued, committed) in batch.into_iter().zip(findings) {
                    // A caller that has gone needs no answer.
                    let _gone = queued.answer.send(committed);
                }
            }
            // The others are not to suffer for the one that the server refuses.
            Err(Failure::Refused(_)) if batch.len() > 1 => {
                for queued in batch {
                    let mut needs = Needs::default();
                    needs.add(&queued.commit);
                    Box::pin(self.land(client, &needs, vec![queued])).await;
                }
            }
            Err(failure) => {
                for queued in batch {
                    let answer = match &failure {
                        Failure::Unknown => Ok(Committed::Unknown),
                        Failure::Again(what) | Failure::Refused(what) => {
                            Err(Error::NotWritten { what: what.clone() })
                        }
                    };
                    let _gone = queued.answer.send(answer);
                }
            }
        }
    }

    async fn attempt(
        &self,
        client: &mut Option<Client>,
        needs: &Needs,
        commits: &[Arc<Commit>],
    ) -> Result<Vec<Result<Committed, Error>>, Failure> {
        let mut tried = 0;
        loop {
            tried += 1;
            match self.once(client, needs, commits).await {
                Err(Failure::Again(_)) if tried < TRIES_MAX => {}
                other => return other,
            }
        }
    }

    async fn once(
        &self,
        kept: &mut Option<Client>,
        needs: &Needs,
        commits: &[Arc<Commit>],
    ) -> Result<Vec<Result<Committed, Error>>, Failure> {
        let client = match kept {
            Some(client) if !client.is_closed() => client,
            kept => {
                let fresh = session(&self.address).await.map_err(|error| Failure::Again(error.to_string()))?;
                kept.insert(fresh)
            }
        };
        let durable = commits.iter().any(|commit| commit.durability == Durability::Durable);
        // Pinned here: a role or database may have it switched off.
        let begin = format!("BEGIN; SET LOCAL synchronous_commit = {}", if durable { "on" } else { "off" });
        let began = async { client.batch_execute(&begin).await };
        let mut state = match tokio::try_join!(began, needs.fetch(client, &self.sql)) {
            Ok(((), state)) => state,
            Err(error) => {
                // Whatever was begun ends with the connection.
                let failure = Failure::Again(explain(&error));
                *kept = None;
                return Err(failure);
            }
        };
        if !state.is_same_history {
            let ended = client.batch_execute("ROLLBACK").await;
            let begun = match ended {
                Ok(()) => lineage::begin_epoch(client, &self.sql).await,
                Err(error) => Err(error),
            };
            let what = begun.err().map_or("the database has another history now".to_owned(), |error| explain(&error));
            return Err(Failure::Again(what));
        }
        let mut writes = Writes::from_id(state.first_id);
        let mut answers = Vec::with_capacity(commits.len());
        let mut landed: Vec<&Commit> = Vec::new();
        for commit in commits {
            let Ok(finding) = examine(&mut state, commit);
            answers.push(match finding {
                Finding::Clear(heads) => {
                    writes.add(commit, heads);
                    landed.push(commit);
                    Ok(Committed::Done)
                }
                Finding::Landed => Ok(Committed::Done),
                Finding::Conflict(conflict) => Ok(Committed::Conflict(conflict)),
                Finding::Absurd(what) => Err(Error::NotWritten { what }),
            });
        }
        if landed.is_empty() {
            // It held locks alone.
            if client.batch_execute("ROLLBACK").await.is_err() {
                *kept = None;
            }
            return Ok(answers);
        }
        if let Err(error) = writes.commit(client, &self.sql).await {
            let failure = match error.code() {
                Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE) => {
                    Failure::Again(explain(&error))
                }
                Some(code) if is_refusal(code) => Failure::Refused(explain(&error)),
                // The server or the way to it has broken off, perhaps behind the commit.
                _ => Failure::Unknown,
            };
            *kept = None;
            return Err(failure);
        }
        self.waiters.tell(client, &self.sql, &landed).await;
        Ok(answers)
    }
}

/// Whether the server has refused a statement, and so rolls back: a constraint, a full disk, a missing right. A server that
/// shuts down (class 57) may have committed first.
fn is_refusal(code: &SqlState) -> bool {
    !code.code().starts_with("57") && !code.code().starts_with("08") && !code.code().starts_with("XX")
}
