//! The fence of a run: set by `cancel` alone, checked by every claim in its own commit.

use crate::cells::{Epoch, Fence};
use crate::entropy::Entropy;
use crate::holders::Holders;
use crate::ledger::{Ledger, RACES_MAX};
use crate::record::Known;
use crate::store::{By, EPOCH_CELL, PAGE_ROWS_MAX, Store};
use crate::{Error, journal};
use semel_core::effect::{LastSend, SEND_WITHIN, State, Verdict};
use semel_core::intent::run_key;
use semel_core::time::At;

/// What a cancelled run has done, and what of it may still happen.
#[derive(Debug, Clone)]
pub struct Cancelled {
    pub applied: Vec<Known>,
    /// Sent, and not answered yet.
    pub in_flight: Vec<Known>,
    pub in_doubt: Vec<Known>,
    /// Calls that the fence kept from starting, as (action, subject).
    pub prevented: Vec<(String, String)>,
    /// Only this promises that nothing more will be sent.
    pub drained: bool,
}

impl<S: Store, H: Holders, E: Entropy> Ledger<S, H, E> {
    /// Sets or lifts the fence of a run, then lists what there is: in this order, so that no claim slips between.
    pub async fn cancel(
        &self,
        tenant: &str,
        run: &str,
        lift: bool,
        reason: Option<String>,
        now: At,
    ) -> Result<Cancelled, Error> {
        let run_key = run_key(&self.secret, tenant, run);
        self.set_fence(run_key, run, !lift, reason, now).await?;
        let mut answer = Cancelled {
            applied: Vec::new(),
            in_flight: Vec::new(),
            in_doubt: Vec::new(),
            prevented: self.prevented_in(run_key).await?,
            drained: true,
        };
        for (by, foreign) in [(By::Run(run_key), false), (By::Open, true)] {
            let mut after = None;
            loop {
                let page = self.list(by, after, PAGE_ROWS_MAX).await?;
                // An effect that began in another run may have an attempt of this one.
                let ours = |known: &Known| {
                    known.index.run != Some(run_key)
                        && known.effect.facts.tenant == tenant
                        && known.effect.attempts.iter().any(|a| a.run.as_ref().is_some_and(|r| r.id == run))
                };
                for (key, known) in page.items.into_iter().filter(|(_, known)| !foreign || ours(known)) {
                    let known = match known.effect.is_open() {
                        true => self.observe(key, now).await?.newest.unwrap_or(known),
                        false => known,
                    };
                    match known.effect.state {
                        State::Applied(_) => answer.applied.push(known),
                        State::InFlight { .. } => answer.in_flight.push(known),
                        State::InDoubt(_) => answer.in_doubt.push(known),
                        State::NotApplied(_) => {}
                    }
                }
                match page.next {
                    None => break,
                    next => after = next,
                }
            }
        }
        // A doubt whose sender is not proven gone may still be carried out.
        let may_send = |known: &Known| {
            known.effect.attempts.iter().any(|attempt| {
                attempt.verdict == Verdict::Unproven
                    && attempt.gone_at.is_none()
                    // Wall clocks jump; a sender counts its own time. Its whole time again is the margin.
                    && !matches!(attempt.last_send, LastSend::By(last) if now > last.plus(SEND_WITHIN))
            })
        };
        // A claim that a failover lost cannot be listed; its sender gets the same time.
        let (_, epoch) = self.epoch().await?;
        let lost = epoch.is_some_and(|e| !e.accepted && now <= e.since.plus(SEND_WITHIN + SEND_WITHIN));
        answer.drained = !lift && !lost && answer.in_flight.is_empty() && !answer.in_doubt.iter().any(may_send);
        Ok(answer)
    }

    async fn set_fence(
        &self,
        run_key: semel_core::digest::Digest,
        run: &str,
        cancelled: bool,
        reason: Option<String>,
        now: At,
    ) -> Result<(), Error> {
        for _ in 0..RACES_MAX {
            let (key, revision, fence) = self.fence(run_key).await?;
            if fence.is_some_and(|fence| fence.cancelled == cancelled) {
                return Ok(());
            }
            let kind = if cancelled { "run_cancelled" } else { "run_lifted" };
            let line = journal::note(kind, None, Some(run_key), serde_json::json!({"run": run}), now);
            let fence = Fence { run: run.to_owned(), cancelled, at: now, reason: reason.clone() };
            if self.put_cell(key, revision, &fence, vec![line]).await? {
                return Ok(());
            }
        }
        Err(Error::NotWritten { what: format!("the fence of run {run} does not come to rest") })
    }

    async fn prevented_in(&self, run_key: semel_core::digest::Digest) -> Result<Vec<(String, String)>, Error> {
        let mut prevented = Vec::new();
        let mut after = None;
        loop {
            let page = self.journal(after, crate::store::JOURNAL_PAGE_MAX).await?;
            for (_, line) in page.items.iter().filter(|(_, l)| l.run == Some(run_key) && l.kind == "prevented") {
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

    /// Starts a new epoch: the store may have forgotten claims made before now.
    pub async fn bump_epoch(&self, reason: &str, now: At) -> Result<Epoch, Error> {
        self.change_epoch("epoch_bumped", now, |epoch| Epoch::after(epoch.as_ref(), reason, now)).await
    }

    /// Ends the quarantine: somebody vouches that nothing older will be retried.
    pub async fn accept_epoch(&self, now: At) -> Result<Epoch, Error> {
        self.change_epoch("epoch_accepted", now, |epoch| match epoch {
            Some(epoch) => Epoch { accepted: true, ..epoch },
            None => Epoch { number: 1, since: now, reason: "first".into(), accepted: true },
        })
        .await
    }

    async fn change_epoch(
        &self,
        kind: &str,
        now: At,
        change: impl Fn(Option<Epoch>) -> Epoch,
    ) -> Result<Epoch, Error> {
        for _ in 0..RACES_MAX {
            let (revision, epoch) = self.epoch().await?;
            let next = change(epoch);
            let data = serde_json::json!({"number": next.number, "reason": next.reason});
            let line = journal::note(kind, None, None, data, now);
            if self.put_cell(EPOCH_CELL, revision, &next, vec![line]).await? {
                return Ok(next);
            }
        }
        Err(Error::NotWritten { what: "the epoch does not come to rest".into() })
    }
}
