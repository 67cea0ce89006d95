//! Retention: drops replies, never the fact of an open effect or of an explicit key.

use crate::Error;
use crate::cells::{Pruned, pruned_key};
use crate::entropy::{Entropy, nonce};
use crate::holders::Holders;
use crate::ledger::Ledger;
use crate::record::{Known, decode};
use crate::store::{By, Commit, Committed, Cursor, Durability, PAGE_ROWS_MAX, Put, Require, Store};
use semel_core::effect::{Reply, State};
use semel_core::time::At;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub replies: Duration,
    pub facts: Duration,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneReport {
    pub replies_dropped: u64,
    pub facts_dropped: u64,
}

/// Retention runs by itself this often: replies are kept for weeks, so a day's delay is nothing.
const PRUNE_EVERY: Duration = Duration::from_secs(24 * 3600);

impl<S: Store, H: Holders, E: Entropy> Ledger<S, H, E> {
    /// Prunes if it is time to, and if nobody else is at it.
    pub async fn prune_if_due(&self, retention: Retention, now: At) -> Result<Option<PruneReport>, Error> {
        let key = pruned_key(&self.secret);
        let (revision, last) = self.cell::<Pruned>(key).await?;
        if last.as_ref().is_some_and(|last| now < last.at.plus(PRUNE_EVERY) && now >= last.at) {
            return Ok(None);
        }
        if !self.put_cell(key, revision, &Pruned { at: now }, Vec::new()).await? {
            return Ok(None);
        }
        // One process with a wrong clock must not forget for all: retention advances by days, not by leaps, and what
        // it has never looked at waits for the next time.
        let Some(last) = last else { return Ok(None) };
        self.prune(retention, now.min(last.at.plus(PRUNE_EVERY * 2))).await.map(Some)
    }

    pub async fn prune(&self, retention: Retention, now: At) -> Result<PruneReport, Error> {
        let mut report = PruneReport::default();
        let before = |span: Duration| At(now.0.saturating_sub(span.as_micros() as u64));
        let (replies_before, facts_before) = (before(retention.replies), before(retention.facts));
        let mut after: Option<Cursor> = None;
        loop {
            let page = self
                .store
                .scan(By::ChangedBefore(replies_before.max(facts_before)), after, PAGE_ROWS_MAX)
                .await?;
            for row in page.items {
                let (key, revision, ordinal) = (row.key, row.revision, row.ordinal);
                let known = decode(row)?;
                // An undelivered success never expires: its answer is still owed to somebody.
                let owed =
                    matches!(known.effect.state, State::Applied(_)) && known.effect.delivered_at.is_none();
                if known.newer || known.effect.is_open() || owed {
                    continue;
                }
                let changed_at = known.effect.changed_at();
                if changed_at < facts_before && !known.effect.facts.caller_key {
                    let forget = Put::Forget { key, ordinal, expected: revision };
                    if self.prune_commit(vec![forget]).await? {
                        report.facts_dropped += 1;
                    }
                } else if changed_at < replies_before && reply_of(&known) == Some(Reply::Kept) {
                    // The record still says that a reply was kept; that it is gone is seen by its absence.
                    if self.prune_commit(vec![Put::DropReply { key, ordinal }]).await? {
                        report.replies_dropped += 1;
                    }
                }
            }
            match page.next {
                None => return Ok(report),
                next => after = next,
            }
        }
    }

    async fn prune_commit(&self, puts: Vec<Put>) -> Result<bool, Error> {
        let commit = Commit {
            nonce: nonce(&self.entropy),
            puts,
            require: Require::default(),
            journal: Vec::new(),
            durability: Durability::Lazy,
        };
        Ok(matches!(self.store.commit(commit).await?, Committed::Done))
    }
}

fn reply_of(known: &Known) -> Option<Reply> {
    match &known.effect.state {
        State::Applied(applied) => Some(applied.reply),
        State::NotApplied(not_applied) => Some(not_applied.reply),
        State::InFlight { .. } | State::InDoubt(_) => None,
    }
}
