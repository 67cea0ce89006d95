//! Retention: drops replies, never the fact of an open effect, of one that a caller's key stands for, or of a success that
//! reached nobody.
//!
//! Without its fact a repeat is another effect, so no fact goes before the longest window that any process has told the
//! ledger: one ledger serves several projects, whose policies cannot see each other. One wrong clock must not prune for
//! all, so retention's own time advances by a few days in a run and stops before a clock far past the journal.

use crate::Error;
use crate::entropy::nonce;
use crate::ledger::Ledger;
use crate::record::{StoredEffect, decode};
use crate::small_records::{RetentionProgress, pruned_key};
use crate::store::{By, Commit, Cursor, Durability, PAGE_ROWS_MAX, Put};
use semel_core::effect::{Reply, State};
use semel_core::policy::Retention;
use semel_core::time::{At, Uptime};
use std::time::Duration;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneReport {
    pub replies_dropped: u64,
    pub facts_dropped: u64,
}

/// Retention runs by itself this often: replies are kept for weeks, so a day's delay is nothing.
const PRUNE_EVERY: Duration = Duration::from_secs(24 * 3600);

/// No ledger in use is silent for so long. Of an idle one nobody can tell whether its clock is right.
const CLOCK_AHEAD_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// How far it goes at once: some days, so that a machine that was off for weeks catches up in weeks.
const STEP_MAX: Duration = Duration::from_secs(4 * 24 * 3600);

impl Ledger {
    /// The instant of the newest line, if the clock is so far past it that it may be wrong. Pruning by it could drop
    /// facts inside their window.
    pub async fn far_behind(&self, now: At) -> Result<Option<At>, Error> {
        let newest = self.newest_line().await?.map(|(_, line)| line.at);
        Ok(newest.filter(|newest| now.since(*newest) > CLOCK_AHEAD_MAX))
    }

    /// Prunes if it is time to, if nobody else is at it, and if the clock can be trusted.
    pub async fn prune_if_due(
        &self,
        retention: Retention,
        now: At,
        uptime: Option<Uptime>,
    ) -> Result<Option<PruneReport>, Error> {
        let key = pruned_key(&self.secret);
        let (revision, last) = self.cell::<RetentionProgress>(key).await?;
        let windows =
            (retention.windows.as_micros() as u64).max(last.as_ref().map_or(0, |last| last.windows));
        let Some(last) = last else {
            // A record that retention has never looked at waits for the next time.
            let first = RetentionProgress { at: now, clock: Some(now), windows };
            self.put_cell(key, revision, &first, Vec::new(), Durability::Durable).await?;
            return Ok(None);
        };
        let clock = last.clock.unwrap_or(last.at);
        if now < clock.plus(PRUNE_EVERY) && now >= clock {
            if windows > last.windows {
                // Before another policy on this ledger prunes by its own.
                self.put_cell(
                    key,
                    revision,
                    &RetentionProgress { windows, ..last },
                    Vec::new(),
                    Durability::Durable,
                )
                .await?;
            }
            return Ok(None);
        }
        if self.far_behind(now).await?.is_some() {
            return Ok(None);
        }
        // One process with a wrong clock must not forget for all: retention advances by days, not by leaps.
        let at = now.min(last.at.plus(STEP_MAX));
        if !self
            .put_cell(
                key,
                revision,
                &RetentionProgress { at, clock: Some(now), windows },
                Vec::new(),
                Durability::Durable,
            )
            .await?
        {
            return Ok(None);
        }
        self.prune(retention, at, uptime).await.map(Some)
    }

    pub async fn prune(
        &self,
        retention: Retention,
        now: At,
        uptime: Option<Uptime>,
    ) -> Result<PruneReport, Error> {
        self.prune_or_count(retention, now, uptime, true).await
    }

    /// How much `prune` would drop. Nothing is dropped.
    pub async fn count_prunable(
        &self,
        retention: Retention,
        now: At,
        uptime: Option<Uptime>,
    ) -> Result<PruneReport, Error> {
        self.prune_or_count(retention, now, uptime, false).await
    }

    async fn prune_or_count(
        &self,
        retention: Retention,
        now: At,
        uptime: Option<Uptime>,
        drops: bool,
    ) -> Result<PruneReport, Error> {
        let mut report = PruneReport::default();
        let (_, pruned) = self.cell::<RetentionProgress>(pruned_key(&self.secret)).await?;
        // Other policies on this ledger may have promised more.
        let promised = Duration::from_micros(pruned.map_or(0, |pruned| pruned.windows));
        let before = |span: Duration| At(now.0.saturating_sub(span.as_micros() as u64));
        let facts_kept = retention.facts.max(retention.windows).max(promised);
        let (replies_before, facts_before) = (before(retention.replies), before(facts_kept));
        let mut after: Option<Cursor> = None;
        loop {
            let page = self
                .store
                .scan(By::ChangedBefore(replies_before.max(facts_before)), after, PAGE_ROWS_MAX)
                .await?;
            for row in page.items {
                let (key, revision, ordinal) = (row.key, row.revision, row.ordinal);
                let stored = decode(row);
                if stored.newer || stored.effect.is_open() {
                    continue;
                }
                let changed_at = stored.effect.changed_at();
                // Where clocks disagree, the smaller age counts: it is younger than its last claim.
                let claimed = stored.effect.newest_attempt().and_then(|newest| newest.uptime);
                let up = uptime.zip(claimed).and_then(|(now, claimed)| now.since(claimed));
                let is_past = |horizon: At, kept| changed_at < horizon && up.is_none_or(|up| up >= kept);
                let reply_is_past = is_past(replies_before, retention.replies);
                // An undelivered success never expires: that it happened is still owed to somebody.
                let owed =
                    matches!(stored.effect.state, State::Applied(_)) && stored.effect.delivered_at.is_none();
                if is_past(facts_before, facts_kept) && !owed && !stored.effect.facts.caller_key {
                    let forget = Put::Forget { key, ordinal, expected: revision };
                    if !drops || self.prune_commit(vec![forget]).await? {
                        report.facts_dropped += 1;
                    }
                } else if reply_is_past
                    && reply_of(&stored) == Some(Reply::Kept)
                    // The record still says that a reply was kept; that it is gone is seen by its absence.
                    && self.store.reply(key, ordinal).await?.is_some()
                    && (!drops || self.prune_commit(vec![Put::DropReply { key, ordinal }]).await?)
                {
                    report.replies_dropped += 1;
                }
            }
            match page.next {
                None => break,
                next => after = next,
            }
        }
        if drops {
            self.prune_cells(now).await?;
        }
        Ok(report)
    }

    pub(crate) async fn prune_commit(&self, puts: Vec<Put>) -> Result<bool, Error> {
        let commit = Commit { durability: Durability::Lazy, ..Commit::of(nonce(self.entropy()), puts) };
        Ok(self.commit(commit).await?.is_ok())
    }
}

fn reply_of(stored: &StoredEffect) -> Option<Reply> {
    match &stored.effect.state {
        State::Applied(applied) => Some(applied.reply),
        State::NotApplied(not_applied) => Some(not_applied.reply),
        State::InFlight { .. } | State::InDoubt(_) => None,
    }
}
