//! Which runs' fences stand before a sending.

use crate::call::GateCall;
use crate::{Error, Gate};
use semel_core::class::Class;
use semel_core::digest::Digest;
use semel_core::intent::{Intent, run_key};
use semel_core::time::At;
use semel_ledger::RecordSnapshot;
use semel_ledger::store::Revision;

/// The fences of some runs, as they were found.
#[derive(Debug, Default)]
pub(crate) struct RunFences {
    /// Which a claim must find as they are.
    pub(crate) cells: Vec<(Digest, Revision)>,
    pub(crate) shut: bool,
    /// The newest of them.
    pub(crate) memory_boundary: Option<At>,
}

impl Gate {
    /// The fence of its run.
    pub(crate) async fn fence(&self, intent: &Intent) -> Result<RunFences, Error> {
        self.fences(intent.run_key.as_slice()).await
    }

    /// The same of all runs that sending an effect again is a matter of: its caller's, the one that it began in, and
    /// those that have tried it. What anybody may ask for at any time is its caller's matter alone.
    pub(crate) async fn fences_of_resend(
        &self,
        call: &GateCall<'_>,
        snapshot: &RecordSnapshot,
    ) -> Result<RunFences, Error> {
        let mut runs: Vec<Digest> = call.intent.run_key.into_iter().collect();
        if let (Class::Act | Class::Consequential, Some(stored)) = (call.rule.class, &snapshot.newest) {
            let tried = stored.effect.attempts.iter().filter_map(|attempt| attempt.run.as_ref());
            let (secret, tenant) = (self.ledger.secret(), &stored.effect.facts.tenant);
            runs.extend(
                stored.index.run.into_iter().chain(tried.map(|run| run_key(secret, tenant, &run.id))),
            );
        }
        runs.sort_unstable();
        runs.dedup();
        self.fences(&runs).await
    }

    async fn fences(&self, runs: &[Digest]) -> Result<RunFences, Error> {
        let mut found = RunFences::default();
        for run in runs {
            let (key, revision, fence) = self.ledger.fence(*run).await?;
            found.cells.push((key, revision));
            if let Some(fence) = fence {
                found.shut |= fence.cancelled;
                found.memory_boundary = found.memory_boundary.max(fence.memory_boundary);
            }
        }
        Ok(found)
    }
}
