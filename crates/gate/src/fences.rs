//! Which runs' fences stand before a sending.

use crate::call::GateCall;
use crate::{Error, Gate};
use semel_core::class::Class;
use semel_core::digest::Digest;
use semel_core::intent::{Intent, run_key};
use semel_ledger::RecordSnapshot;
use semel_ledger::store::Revision;

impl Gate {
    /// The cell of its run's fence, and whether that is shut.
    pub(crate) async fn fence(&self, intent: &Intent) -> Result<(Vec<(Digest, Revision)>, bool), Error> {
        self.fences(intent.run_key.as_slice()).await
    }

    /// The same of all runs that sending an effect again is a matter of: its caller's, the one that it began in, and
    /// those that have tried it. What anybody may ask for at any time is its caller's matter alone.
    pub(crate) async fn fences_of_resend(
        &self,
        call: &GateCall<'_>,
        snapshot: &RecordSnapshot,
    ) -> Result<(Vec<(Digest, Revision)>, bool), Error> {
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

    async fn fences(&self, runs: &[Digest]) -> Result<(Vec<(Digest, Revision)>, bool), Error> {
        let (mut cells, mut shut) = (Vec::with_capacity(runs.len()), false);
        for run in runs {
            let (key, revision, fence) = self.ledger.fence(*run).await?;
            cells.push((key, revision));
            shut |= fence.is_some_and(|fence| fence.cancelled);
        }
        Ok((cells, shut))
    }
}
