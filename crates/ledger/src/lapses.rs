//! Lapses that nobody has read yet: noticed and written down, so that those who wait for doubts hear of them.

use crate::Error;
use crate::holders::Liveness;
use crate::ledger::{ChangeResult, Ledger, RACES_MAX, RecordChange};
use crate::record::StoredEffect;
use crate::store::{By, PAGE_ROWS_MAX};
use semel_core::digest::Digest;
use semel_core::effect::Attempt;
use semel_core::ids::Nonce;
use semel_core::lifecycle::{Event, Lapse};
use semel_core::time::At;

impl Ledger {
    /// Looks at everything in flight, of all holders. Returns how much of it had lapsed.
    pub async fn notice_lapses(&self, now: At) -> Result<usize, Error> {
        let (mut lapsed, mut after) = (0, None);
        loop {
            // One that cannot be read lapses for nobody: its callers are refused anyway.
            let page = self.listing(By::Open, after, PAGE_ROWS_MAX).await?;
            let in_flight = |(key, stored): (Digest, StoredEffect)| {
                let attempt = stored.effect.open_attempt().filter(|_| !stored.newer)?;
                Some((key, attempt.owner, attempt.deadline))
            };
            let in_flight: Vec<_> = page.items.into_iter().filter_map(in_flight).collect();
            let holders = self.liveness(in_flight.iter().map(|(_, owner, _)| *owner)).await?;
            for ((key, _, deadline), holder) in in_flight.into_iter().zip(holders) {
                if now >= deadline || holder != Liveness::Alive {
                    self.observe(key, now).await?;
                    lapsed += 1;
                }
            }
            match page.next {
                None => return Ok(lapsed),
                next => after = next,
            }
        }
    }

    /// Attempts of this process are in doubt from now on: it is about to end, and callers need not find out
    /// by its death. An answer that still comes counts. Those that nobody holds were never sent. Returns how many are
    /// in doubt.
    pub async fn lapse_own(&self, now: At) -> Result<usize, Error> {
        let me = self.holders().me()?;
        let (mut lapsed, mut after) = (0, None);
        loop {
            let page = self.listing(By::Owner(me), after, PAGE_ROWS_MAX).await?;
            let end_of = |mine: &Attempt| {
                let lapsed = || Event::Lapsed { why: Lapse::HolderDied, at: now };
                (mine.owner == me).then(|| self.end_of_unheld(mine, now).unwrap_or_else(lapsed))
            };
            for (key, _) in page.items {
                lapsed += usize::from(self.end_open(key, now, end_of).await?);
            }
            match page.next {
                None => return Ok(lapsed),
                next => after = next,
            }
        }
    }

    /// The upstream of this attempt is silent for too long: only its holder knows. `false`: it is not open any more.
    pub async fn lapse_silent(&self, key: Digest, nonce: Nonce, now: At) -> Result<bool, Error> {
        let lapsed = Event::Lapsed { why: Lapse::DeadlinePassed, at: now };
        self.end_open(key, now, |attempt| (attempt.nonce == nonce).then(|| lapsed.clone())).await
    }

    /// Ends the attempt that is open with what `event_of` says of it. `true`: in a lapse.
    async fn end_open(
        &self,
        key: Digest,
        now: At,
        event_of: impl Fn(&Attempt) -> Option<Event>,
    ) -> Result<bool, Error> {
        for _ in 0..RACES_MAX {
            let snapshot = self.find(key).await?;
            let open = snapshot.effect().and_then(|effect| effect.open_attempt());
            // Its answer came just now.
            let Some(event) = open.and_then(&event_of) else { return Ok(false) };
            if let ChangeResult::Done(_) = self.write(&snapshot, RecordChange::to(&event, now)).await? {
                return Ok(matches!(event, Event::Lapsed { .. }));
            }
        }
        Err(Error::NotWritten { what: format!("record {key} kept changing; nothing was written") })
    }
}
