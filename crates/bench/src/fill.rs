//! Fills a ledger in minutes instead of hours: one effect is made by the gate, the others are its copies under keys and
//! with arguments of their own, committed through the store like everything else, many at once. The journal is left
//! short: it is only ever appended to, and no call reads it.

use super::house::{House, KeySource};
use super::measure::now;
use semel_core::effect::Effect;
use semel_core::ids::{EffectId, Nonce};
use semel_core::intent::Intent;
use semel_ledger::checksum;
use semel_ledger::record::StoredEffect;
use semel_ledger::store::{Against, Commit, Committed, Durability, Index, Part, Put, ReplyChange, Revision};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::runtime::Runtime;
use xtask::project::Result;

/// Commits on their way: as many as two batches of a server hold.
const COMMITS: usize = 256;

/// Rows of one commit: no more than a store takes.
const ROWS: u64 = 3;

#[derive(Debug)]
pub struct Filled {
    copies: Arc<Copies>,
    effects: u64,
}

#[derive(Debug)]
struct Copies {
    house: Arc<House>,
    first: StoredEffect,
    reply: Vec<u8>,
}

impl Filled {
    /// The series of caller keys that its effects answer to, from 0 on.
    pub const SERIES: &str = "filled";

    /// A new ledger with its first effect.
    pub fn found(address: &str, here: &Path, runtime: &Runtime) -> Result<Filled> {
        let house = Arc::new(House::at(address, here)?);
        let intent = house.intent(KeySource::Key, Self::SERIES, 0);
        let passed = runtime.block_on(house.fresh(&intent));
        runtime.block_on(house.gate.delivered(&passed.delivery.expect("a success can be delivered")))?;
        let found = runtime.block_on(house.gate.ledger.find(intent.key))?;
        let (Some(first), Some(reply)) = (found.newest, found.reply) else {
            return Err("the first effect was not recorded".into());
        };
        let first = StoredEffect::clone(&first);
        Ok(Filled { copies: Arc::new(Copies { house, first, reply }), effects: 1 })
    }

    pub fn house(&self) -> &Arc<House> {
        &self.copies.house
    }

    pub fn effects(&self) -> u64 {
        self.effects
    }

    /// Adds copies until there are so many effects.
    pub fn fill(&mut self, runtime: &Runtime, effects: u64) -> Result<()> {
        let (started, next) = (now(), Arc::new(AtomicU64::new(self.effects)));
        let filler = || {
            let (copies, next) = (Arc::clone(&self.copies), Arc::clone(&next));
            runtime.spawn(async move {
                loop {
                    let from = next.fetch_add(ROWS, Ordering::Relaxed);
                    if from >= effects {
                        return Result::Ok(());
                    }
                    copies.commit(from..effects.min(from + ROWS)).await?;
                }
            })
        };
        let fillers: Vec<_> = (0..COMMITS).map(|_| filler()).collect();
        fillers.into_iter().try_for_each(|filler| runtime.block_on(filler)?)?;
        self.effects = self.effects.max(effects);
        eprintln!("bench size: {effects} effects, filled in {:.0?}", started.elapsed());
        Ok(())
    }
}

impl Copies {
    /// They need not be on the disk: a ledger that is lost here is filled again.
    async fn commit(&self, numbers: Range<u64>) -> Result<()> {
        let ledger = &self.house.gate.ledger;
        let puts = numbers.map(|n| self.put(n)).collect();
        let commit =
            Commit { durability: Durability::Lazy, ..Commit::of(Nonce(ledger.entropy().bits()), puts) };
        match ledger.store().commit(Arc::new(commit)).await? {
            Committed::Done => Ok(()),
            other => Err(format!("a copy was not written: {other:?}").into()),
        }
    }

    fn put(&self, n: u64) -> Put {
        let Intent { key, family, alike, marks, .. } = self.house.intent(KeySource::Key, Filled::SERIES, n);
        let StoredEffect { effect, index, .. } = self.first.clone();
        let id = EffectId(effect.id.0 + u128::from(n));
        let effect = Effect { id, marks, ..effect };
        let index = Index { effect: id.0, family, alike: alike.key(), ..index };
        let (body, ordinal) = (StoredEffect::first(key, index.clone(), effect).body(key), 1_u32);
        let reply = checksum::seal(&[&key.0, &ordinal.to_be_bytes()], self.reply.clone());
        let (expected, index, reply) = (Revision::ABSENT, Box::new(index), ReplyChange::Set(reply));
        let (against, changed) = (Against::Newest, Part::Fixed);
        Put::Record { key, ordinal, expected, against, index, body, changed, reply }
    }
}
