//! The fence of a run: set by `cancel` alone, checked by every claim in its own commit.

use crate::holders::Liveness;
use crate::ledger::{CellUpdate, Ledger};
use crate::record::StoredEffect;
use crate::small_records::{Fence, Visits, visits_key};
use crate::store::{By, Cursor, Durability, JournalLine, PAGE_ROWS_MAX, Revision};
use crate::{Error, journal};
use semel_core::digest::Digest;
use semel_core::effect::{Attempt, Effect, LastSend, SEND_WITHIN, State, Verdict};
use semel_core::ids::EffectId;
use semel_core::intent::run_key;
use semel_core::time::At;
use semel_core::undo::UndoCall;
use std::sync::Arc;

/// The effects of a cancelled run, and those that may still happen.
#[derive(Debug, Clone)]
pub struct CancelReport {
    pub applied: Vec<StoredEffect>,
    /// Sent, and not answered yet.
    pub in_flight: Vec<StoredEffect>,
    pub in_doubt: Vec<StoredEffect>,
    /// Calls that the fence kept from starting, as (action, subject).
    pub prevented: Vec<(String, String)>,
    /// Records that cannot be read. Any of them may have an attempt of this run.
    pub damaged: Vec<EffectId>,
    /// Only this promises that nothing more will be sent.
    pub drained: bool,
}

impl CancelReport {
    /// Adds an effect of the run. Whether it may still be sent.
    async fn add(
        &mut self,
        ledger: &Ledger,
        key: Digest,
        stored: StoredEffect,
        now: At,
    ) -> Result<bool, Error> {
        let stored = match stored.effect.is_open() {
            true => ledger.observe(key, now).await?.newest.map_or(stored, Arc::unwrap_or_clone),
            false => stored,
        };
        let may_send = ledger.may_send(&stored.effect, now).await?;
        match stored.effect.state {
            State::Applied(_) => {
                let effect = ledger.with_undone(stored.effect).await?;
                self.applied.push(StoredEffect { effect, ..stored });
            }
            State::InFlight { .. } => self.in_flight.push(stored),
            State::InDoubt(_) => self.in_doubt.push(stored),
            State::NotApplied(_) => {}
        }
        Ok(may_send)
    }

    /// The effects that can be taken back, and by which call. Each undo is an effect of its own.
    pub fn undoable(&self) -> impl Iterator<Item = (&StoredEffect, &UndoCall)> {
        self.applied.iter().filter_map(|stored| Some((stored, stored.effect.undoable()?)))
    }
}

impl Ledger {
    /// Sets or lifts the fence of a run, then lists what there is: in this order, so that no claim slips between.
    pub async fn cancel(
        &self,
        tenant: &str,
        run: &str,
        lift: bool,
        reason: Option<String>,
        now: At,
    ) -> Result<CancelReport, Error> {
        let run_key = run_key(&self.secret, tenant, run);
        let fence = self.set_fence(run_key, run, !lift, reason, now).await?;
        let mut answer = CancelReport {
            applied: Vec::new(),
            in_flight: Vec::new(),
            in_doubt: Vec::new(),
            prevented: self.prevented_in(run_key).await?,
            damaged: Vec::new(),
            drained: true,
        };
        let (_, visits) = self.cell::<Visits>(visits_key(&self.secret, run_key)).await?;
        let visits = visits.unwrap_or_default();
        let mut may_send = visits.more;
        for id in visits.effects {
            match self.by_id(id).await {
                Ok((_, stored)) if stored.effect.is_damaged() => answer.damaged.push(id),
                Ok((key, stored)) => may_send |= answer.add(self, key, stored, now).await?,
                // Retention has dropped it.
                Err(Error::NoSuchEffect(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let mut after = None;
        loop {
            let page = self.listing(By::Run(run_key), after, PAGE_ROWS_MAX).await?;
            answer.damaged.extend(page.damaged);
            for (key, stored) in page.items {
                may_send |= answer.add(self, key, stored, now).await?;
            }
            match page.next {
                None => break,
                next => after = next,
            }
        }
        // A claim that a failover lost cannot be listed; its sender gets the same time.
        let (_, epoch) = self.epoch().await?;
        let lost = epoch.is_some_and(|e| !e.accepted && now <= e.since.plus(SEND_WITHIN + SEND_WITHIN));
        // Somebody may have lifted it meanwhile, and set it again.
        let (_, standing, _) = self.fence(run_key).await?;
        let may_send = may_send || !answer.in_flight.is_empty() || !answer.damaged.is_empty();
        answer.drained = !lift && !lost && !may_send && standing == fence;
        Ok(answer)
    }

    /// An attempt without an answer may still be carried out while its sender can send, also after its effect has settled.
    async fn may_send(&self, effect: &Effect, now: At) -> Result<bool, Error> {
        let unsure = |attempt: &&Attempt| {
            let answered =
                matches!(attempt.verdict, Verdict::Applied | Verdict::NotApplied | Verdict::Reported);
            let gone = match attempt.last_send {
                // Wall clocks jump; a sender counts its own time. Its whole time again is the margin.
                LastSend::By(last) => now > last.plus(SEND_WITHIN),
                LastSend::WhileAlive => false,
            };
            !answered && !gone && attempt.gone_at.is_none()
        };
        let holders = self.liveness(effect.attempts.iter().filter(unsure).map(|a| a.owner)).await?;
        Ok(holders.into_iter().any(|holder| holder != Liveness::Dead))
    }

    /// Returns which fence of the run it is that stands now.
    async fn set_fence(
        &self,
        run_key: Digest,
        run: &str,
        cancelled: bool,
        reason: Option<String>,
        now: At,
    ) -> Result<Revision, Error> {
        let key = self.fence_key(run_key);
        let first_line = self.newest_line().await?.map_or(Cursor(0), |(cursor, _)| cursor);
        self.update_cell(key, Durability::Durable, |fence: Option<Fence>| {
            if fence.as_ref().is_some_and(|fence| fence.cancelled == cancelled) {
                return Ok(CellUpdate::Keep(()));
            }
            let memory_boundary = fence.and_then(|fence| fence.memory_boundary);
            let kind = if cancelled { "run_cancelled" } else { "run_lifted" };
            let mut why = serde_json::json!({"run": run});
            if let Some(reason) = &reason {
                why["reason"] = reason.as_str().into();
            }
            let lines = vec![journal::note(kind, None, Some(run_key), why, now)];
            let (run, reason) = (run.to_owned(), reason.clone());
            let value = Fence { run, cancelled, at: now, reason, journal_from: first_line, memory_boundary };
            Ok(CellUpdate::Put { value, lines, result: () })
        })
        .await?;
        Ok(self.fence(run_key).await?.1)
    }

    /// The fence that stands before a run now.
    pub async fn standing_fence(&self, tenant: &str, run: &str) -> Result<Option<Fence>, Error> {
        let (_, _, fence) = self.fence(run_key(&self.secret, tenant, run)).await?;
        Ok(fence.filter(|fence| fence.cancelled))
    }

    /// The calls that the present fence has prevented.
    async fn prevented_in(&self, run_key: Digest) -> Result<Vec<(String, String)>, Error> {
        let (_, _, fence) = self.fence(run_key).await?;
        let Some(fence) = fence.filter(|fence| fence.cancelled) else { return Ok(Vec::new()) };
        let mut prevented = Vec::new();
        let mut after = Some(fence.journal_from);
        loop {
            let page = self.journal(after, crate::store::JOURNAL_PAGE_MAX).await?;
            let ours = |line: &JournalLine| line.run == Some(run_key) && line.kind == "prevented";
            for (_, line) in page.items.iter().filter(|(_, line)| ours(line)) {
                let data: serde_json::Value = serde_json::from_str(&line.data).unwrap_or_default();
                let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
                prevented.push((text("action"), text("subject")));
            }
            match page.next {
                None => return Ok(prevented),
                next => after = next,
            }
        }
    }
}
