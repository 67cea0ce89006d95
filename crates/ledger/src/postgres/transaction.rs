//! One transaction: lock and read, examine in memory, write and commit. Two round trips.

use super::connect::explain;
use super::lineage;
use super::needs::Needs;
use super::schema::{FORMAT, too_new};
use super::statements::Sql;
use super::write::Writes;
use crate::Error;
use crate::precondition::{Finding, examine};
use crate::server_io::OTHER_LEDGER;
use crate::store::{Commit, Committed, Durability};
use semel_core::digest::Secret;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::error::{Severity, SqlState};

/// A server that is silent for so long is taken for gone. Locks are waited for within it.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Each statement sees what was committed before it began, whatever a role or database has for its default.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

pub(super) type Answer = Result<Committed, Error>;

/// Why a batch has no outcome.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nothing was written, and nothing will be: there is no server, it does not answer, or a newer semel has it.
    Unreachable(String),
    /// Nothing was written, for a reason that may pass at once.
    Again(String),
    /// Nothing was written, because the server has refused what one of the commits needs, or all of them together.
    Refused(String),
    /// The connection broke while the server may have been committing.
    Unknown,
}

/// Lands those that may land. On a failure the connection must be dropped: a transaction may be open on it.
pub(super) async fn transact(
    client: &mut Client,
    (sql, secret): (&Sql, &Secret),
    needs: &Needs,
    commits: &[Arc<Commit>],
) -> Result<Vec<Answer>, Failure> {
    let silent = || format!("the server has not answered for {} s", ANSWER_WITHIN.as_secs());
    let durable = commits.iter().any(|commit| commit.durability == Durability::Durable);
    let reading = async {
        tokio::try_join!(biased; client.batch_execute(BEGIN), needs.fetch(client, (sql, secret), durable))
    };
    let mut state = match timeout(ANSWER_WITHIN, reading).await {
        Ok(Ok(((), state))) => state,
        // Fewer locks may be had where many are not.
        Ok(Err(error)) if has_rolled_back(&error) => return Err(Failure::Refused(explain(&error))),
        Ok(Err(error)) => return Err(Failure::Again(explain(&error))),
        Err(_) => return Err(Failure::Unreachable(silent())),
    };
    if !state.is_same_ledger {
        return Err(Failure::Unreachable(OTHER_LEDGER.to_owned()));
    }
    if state.format > FORMAT {
        return Err(Failure::Unreachable(too_new(state.format)));
    }
    if !state.is_same_history {
        let beginning = async {
            client.batch_execute("ROLLBACK").await?;
            lineage::begin_epoch(client, sql).await
        };
        return Err(match timeout(ANSWER_WITHIN, beginning).await {
            Ok(Ok(())) => Failure::Again("the database has another history now".to_owned()),
            Ok(Err(error)) => Failure::Again(explain(&error)),
            Err(_) => Failure::Unreachable(silent()),
        });
    }
    let mut writes = Writes::from_id(state.first_id);
    let mut answers = Vec::with_capacity(commits.len());
    for commit in commits {
        let Ok(finding) = examine(&mut state, commit);
        answers.push(match finding {
            Finding::Clear(heads) => {
                writes.add(commit, heads);
                Ok(Committed::Done)
            }
            Finding::Landed => {
                writes.flush();
                Ok(Committed::Done)
            }
            Finding::Conflict(conflict) => Ok(Committed::Conflict(conflict)),
            Finding::Absurd(what) => Err(Error::NotWritten { what }),
        });
    }
    match timeout(ANSWER_WITHIN, writes.commit(client, sql)).await {
        Ok(Ok(())) => Ok(answers),
        Ok(Err(error)) if has_rolled_back(&error) => Err(Failure::Refused(explain(&error))),
        Ok(Err(_)) | Err(_) => Err(Failure::Unknown),
    }
}

/// Whether the server says that a statement failed, and so has not committed. When it ends the session (`FATAL`), was
/// told to stop (class 57), or does not know itself (40003), it may have committed first.
fn has_rolled_back(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|said| {
        said.parsed_severity() == Some(Severity::Error)
            && *said.code() != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
            && !["08", "57", "58", "XX"].contains(&&said.code().code()[..2])
    })
}
