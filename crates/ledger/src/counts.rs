//! Counts of calls, sends and savings, day by day, over all processes of a ledger.
//!
//! Counts are told, not promised: they are written lazily, and a machine that loses power may lose the last of them.

use crate::Error;
use crate::entropy::nonce;
use crate::ledger::{CellUpdate, Ledger, RACES_MAX};
use crate::store::{Commit, Committed, Durability, Put};
use semel_core::digest::Digest;
use semel_core::time::At;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Counts by name.
pub type Tally = BTreeMap<String, u64>;

/// A day in UTC, counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(pub u32);

impl Day {
    pub fn of(at: At) -> Day {
        const DAY_US: u64 = 86_400 * 1_000_000;
        Day(u32::try_from(at.0 / DAY_US).unwrap_or(u32::MAX))
    }
}

/// The key of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountKey<'a> {
    pub tenant: &'a str,
    /// `cli`, `mcp`, `http`, `llm` or `fn`.
    pub door: &'a str,
    pub day: Day,
}

/// Tenants and doors that were ever counted, so that all of it can be added up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CountedDoors(BTreeSet<(String, String)>);

impl Ledger {
    pub async fn add_counts(&self, under: CountKey<'_>, more: &Tally) -> Result<(), Error> {
        let key = self.counts_key(under);
        for _ in 0..RACES_MAX {
            let (revision, tally) = self.cell::<Tally>(key).await?;
            if tally.is_none() {
                self.list_counted(under).await?;
            }
            let mut tally = tally.unwrap_or_default();
            add(&mut tally, more);
            // In the same commit, so that days and totals never disagree.
            let total_key = self.total_key(under.door);
            let (total_revision, total) = self.cell::<Tally>(total_key).await?;
            let mut total = total.unwrap_or_default();
            add(&mut total, more);
            let puts = vec![Put::cell(key, revision, &tally), Put::cell(total_key, total_revision, &total)];
            let commit = Commit { durability: Durability::Lazy, ..Commit::of(nonce(self.entropy()), puts) };
            match self.store.commit(commit.into()).await? {
                // Nobody knows whether it landed; to add it again could count it twice, which is the worse mistake.
                Committed::Done | Committed::Unknown => return Ok(()),
                Committed::Conflict(_) => {}
            }
        }
        Err(Error::NotWritten { what: "the counts change all the time".into() })
    }

    pub async fn counts(&self, under: CountKey<'_>) -> Result<Tally, Error> {
        Ok(self.cell(self.counts_key(under)).await?.1.unwrap_or_default())
    }

    /// Of all tenants, since the ledger was founded. One read, however long ago that was.
    pub async fn total(&self, door: &str) -> Result<Tally, Error> {
        Ok(self.cell(self.total_key(door)).await?.1.unwrap_or_default())
    }

    /// Tenants with the doors that were counted for them.
    pub async fn counted(&self) -> Result<Vec<(String, String)>, Error> {
        let (_, counted) = self.cell::<CountedDoors>(self.counted_key()).await?;
        Ok(counted.unwrap_or_default().0.into_iter().collect())
    }

    async fn list_counted(&self, under: CountKey<'_>) -> Result<(), Error> {
        self.update_cell(self.counted_key(), Durability::Lazy, |counted: Option<CountedDoors>| {
            let mut value = counted.unwrap_or_default();
            let is_new = value.0.insert((under.tenant.to_owned(), under.door.to_owned()));
            let put = CellUpdate::Put { value, lines: Vec::new(), result: () };
            Ok(if is_new { put } else { CellUpdate::Keep(()) })
        })
        .await
    }

    fn counts_key(&self, under: CountKey<'_>) -> Digest {
        let parts = [under.tenant.as_bytes(), under.door.as_bytes(), &under.day.0.to_be_bytes()];
        self.secret().mac("counts", &parts)
    }

    fn total_key(&self, door: &str) -> Digest {
        self.secret().mac("counts_total", &[door.as_bytes()])
    }

    fn counted_key(&self) -> Digest {
        self.secret().mac("counted", &[])
    }
}

fn add(tally: &mut Tally, more: &Tally) {
    for (name, count) in more {
        let so_far = tally.entry(name.clone()).or_default();
        *so_far = so_far.saturating_add(*count);
    }
}
