//! The memory boundary of a run: the instant after which its agent may have forgotten what it did. It stands in the cell of
//! the run's fence, which each claim reads and requires.

use crate::ledger::{CellUpdate, Ledger};
use crate::small_records::Fence;
use crate::store::{Cursor, Durability, Latest};
use crate::{Error, journal};
use semel_core::intent::run_key;
use semel_core::time::At;

/// Why an agent may have forgotten. A word of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgottenBy {
    /// Its conversation was shortened.
    Compaction,
    /// It goes on with an earlier conversation.
    Resumption,
    /// Another process, or another connection, goes on with a named run.
    NewProcess,
}

impl ForgottenBy {
    fn word(self) -> &'static str {
        match self {
            ForgottenBy::Compaction => "compaction",
            ForgottenBy::Resumption => "resumption",
            ForgottenBy::NewProcess => "new process",
        }
    }
}

impl Ledger {
    /// Puts on record that the agent of a run may have forgotten what it did up to now. A run that did nothing has nothing
    /// to forget.
    pub async fn mark_memory_boundary(
        &self,
        tenant: &str,
        run: &str,
        by: ForgottenBy,
        now: At,
    ) -> Result<(), Error> {
        let run_key = run_key(&self.secret, tenant, run);
        if self.store.latest(Latest::Run(run_key), None, 1).await?.items.is_empty() {
            return Ok(());
        }
        self.update_cell(self.fence_key(run_key), Durability::Durable, |fence: Option<Fence>| {
            let fence = fence.unwrap_or_else(|| Fence {
                run: run.to_owned(),
                cancelled: false,
                at: now,
                reason: None,
                journal_from: Cursor(0),
                memory_boundary: None,
            });
            let why = serde_json::json!({"run": run, "by": by.word()});
            let lines = vec![journal::note("memory_boundary", None, Some(run_key), why, now)];
            let value = Fence { memory_boundary: fence.memory_boundary.max(Some(now)), ..fence };
            Ok(CellUpdate::Put { value, lines, result: () })
        })
        .await
    }
}
