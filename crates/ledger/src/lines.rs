//! Which processes have served one place, so that the next one learns what those before it left behind.

use crate::Error;
use crate::entropy::{Entropy, nonce};
use crate::holders::Holders;
use crate::ledger::Ledger;
use crate::record::{Known, decode};
use crate::store::{Commit, Committed, Durability, Latest, PAGE_ROWS_MAX, Put, Require, Store};
use semel_core::digest::Digest;
use semel_core::ids::OwnerId;
use semel_core::time::At;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Processes that are remembered of one place. One that is forgotten only leaves no news.
const KEPT_MAX: usize = 16;

/// How many effects of a kind are looked at for what was left behind: somebody waits for an answer meanwhile.
const LOOKED_AT_MAX: usize = PAGE_ROWS_MAX;

/// Many may come at once; whoever loses so often goes without news.
const RACES_MAX: usize = 8;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kept(Vec<OwnerId>);

/// The other processes that have served a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// Those that have ended, and of which nobody was told yet.
    pub gone: Vec<OwnerId>,
    pub living: Vec<OwnerId>,
}

impl<S: Store, H: Holders, E: Entropy> Ledger<S, H, E> {
    /// This process serves a place from now on. If the machine loses power, that may be forgotten.
    pub async fn serves(&self, place: Digest) -> Result<Others, Error> {
        let me = self.holders().me()?;
        let kept = self
            .changed_line(place, |kept| {
                if !kept.contains(&me) {
                    kept.push(me)
                }
            })
            .await?;
        let mut others = Others::default();
        for owner in kept.into_iter().filter(|owner| *owner != me) {
            match self.is_alive(owner)? {
                true => others.living.push(owner),
                false => others.gone.push(owner),
            }
        }
        Ok(others)
    }

    /// Somebody was told what these have left.
    pub async fn told_of(&self, place: Digest, gone: &[OwnerId]) -> Result<(), Error> {
        self.changed_line(place, |kept| kept.retain(|owner| !gone.contains(owner))).await.map(drop)
    }

    async fn changed_line(
        &self,
        place: Digest,
        change: impl Fn(&mut Vec<OwnerId>),
    ) -> Result<Vec<OwnerId>, Error> {
        for _ in 0..RACES_MAX {
            let (revision, kept) = self.cell::<Kept>(place).await?;
            let before = kept.unwrap_or_default();
            let mut now = before.clone();
            change(&mut now.0);
            now.0.drain(..now.0.len().saturating_sub(KEPT_MAX));
            if now == before {
                return Ok(now.0);
            }
            let body = serde_json::to_vec(&now).expect("a cell has only string keys");
            let commit = Commit {
                nonce: nonce(&self.entropy),
                puts: vec![Put::Cell { key: place, expected: revision, body }],
                require: Require::default(),
                journal: Vec::new(),
                durability: Durability::Lazy,
            };
            if matches!(self.store.commit(commit).await?, Committed::Done) {
                return Ok(now.0);
            }
        }
        Err(Error::NotWritten { what: "who serves a place does not come to rest".into() })
    }

    /// What these processes tried last and what changed within this time, newest first: of the newest effects of all,
    /// of the run, and of those that are open. What cannot be read is passed over.
    pub async fn left_by(
        &self,
        owners: &[OwnerId],
        run: Option<Digest>,
        within: Duration,
        now: At,
    ) -> Result<Vec<(Digest, Known)>, Error> {
        let mut left = BTreeMap::new();
        // Others that use the ledger meanwhile hide neither a doubt nor what a run has done.
        for among in [Latest::All, Latest::Open].into_iter().chain(run.map(Latest::Run)) {
            let page = self.store.latest(among, None, LOOKED_AT_MAX).await?;
            for (place, row) in page.items {
                let key = row.key;
                let Ok(known) = decode(row) else { continue };
                let theirs = known.effect.newest_attempt().is_some_and(|last| owners.contains(&last.owner));
                if theirs && now.since(known.effect.changed_at()) <= within {
                    left.insert(place, (key, known));
                }
            }
        }
        Ok(left.into_values().rev().collect())
    }
}
