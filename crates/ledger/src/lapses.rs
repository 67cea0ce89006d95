//! Lapses that nobody has read yet: noticed and written down, so that those who wait for doubts hear of them.

use crate::Error;
use crate::holders::Liveness;
use crate::ledger::{ChangeResult, Ledger, RACES_MAX, RecordChange};
use crate::record::StoredEffect;
use crate::store::{By, PAGE_ROWS_MAX};
use semel_core::digest::Digest;
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
            for (key, _) in page.items {
                lapsed += usize::from(self.lapse_one(key, now).await?);
            }
            match page.next {
                None => return Ok(lapsed),
                next => after = next,
            }
        }
    }

    async fn lapse_one(&self, key: Digest, now: At) -> Result<bool, Error> {
        let me = self.holders().me()?;
        for _ in 0..RACES_MAX {
            let snapshot = self.find(key).await?;
            let open = snapshot.effect().and_then(|effect| effect.open_attempt());
            // Its answer came just now.
            let Some(mine) = open.filter(|attempt| attempt.owner == me) else { return Ok(false) };
            let lapsed = || Event::Lapsed { why: Lapse::HolderDied, at: now };
            let event = self.end_of_unheld(mine, now).unwrap_or_else(lapsed);
            if let ChangeResult::Done(_) = self.write(&snapshot, RecordChange::to(&event, now)).await? {
                return Ok(matches!(event, Event::Lapsed { .. }));
            }
        }
        Err(Error::NotWritten { what: format!("record {key} kept changing; nothing was written") })
    }
}
