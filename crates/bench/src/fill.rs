//! Fills a ledger in minutes instead of hours: one effect is made by the gate, the others are its copies under keys and
//! with arguments of their own, committed through the store like everything else, many at once. The journal is left
//! short: it is only ever appended to, and no call reads it.

use super::house::{House, KeySource};
use super::measure::now;
use semel_core::effect::Effect;
use semel_core::ids::{EffectId, Nonce};
use semel_core::intent::Intent;
use semel_gate::Passed;
use semel_ledger::checksum;
use semel_ledger::ledger::KeptReply;
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

/// The calls of a ledger, by what they have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// Nothing: each has a key of its own.
    Keyed,
    /// The outline: posts to one channel, by their arguments.
    OneOutline,
    /// All: the same command again and again, which may be repeated.
    OneRecord,
}

impl Series {
    pub fn intent(self, house: &House, n: u64) -> Intent {
        match self {
            Series::Keyed => house.intent(KeySource::Key, Filled::SERIES, n),
            Series::OneOutline => house.post(n),
            Series::OneRecord => house.command(),
        }
    }

    /// Passes a call that must run.
    pub async fn pass(self, house: &House, intent: &Intent) -> Passed {
        match self {
            Series::Keyed | Series::OneOutline => house.fresh(intent).await,
            Series::OneRecord => house.repeat(intent).await,
        }
    }

    /// Effects of one record follow one another.
    fn commits_at_once(self) -> (usize, u64) {
        if self == Series::OneRecord { (1, 1) } else { (COMMITS, ROWS) }
    }
}

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
    series: Series,
}

impl Filled {
    /// The series of caller keys that its effects answer to, from 0 on.
    pub const SERIES: &str = "filled";

    /// A new ledger with its first effect.
    pub fn found(address: &str, here: &Path, runtime: &Runtime) -> Result<Filled> {
        Filled::begin(address, here, runtime, Series::Keyed)
    }

    /// The same of a series.
    pub fn begin(address: &str, here: &Path, runtime: &Runtime, series: Series) -> Result<Filled> {
        let house = Arc::new(House::at(address, here)?);
        let intent = series.intent(&house, 0);
        let passed = runtime.block_on(series.pass(&house, &intent));
        runtime.block_on(house.gate.delivered(&passed.delivery.expect("a success can be delivered")))?;
        let found = runtime.block_on(house.gate.ledger.find(intent.key))?;
        let (Some(first), Some(KeptReply::Whole(reply))) = (found.newest, found.reply) else {
            return Err("the first effect was not recorded".into());
        };
        let first = StoredEffect::clone(&first);
        Ok(Filled { copies: Arc::new(Copies { house, first, reply, series }), effects: 1 })
    }

    pub fn house(&self) -> &Arc<House> {
        &self.copies.house
    }

    pub fn effects(&self) -> u64 {
        self.effects
    }

    /// Adds copies until there are so many effects.
    pub fn fill(&mut self, runtime: &Runtime, effects: u64) -> Result<()> {
        let (started, (commits, rows)) = (now(), self.copies.series.commits_at_once());
        let last = runtime.block_on(self.copies.last_occurrence())?;
        let next =
            Arc::new(AtomicU64::new(self.effects.max(last.map_or(0, |(ordinal, _)| u64::from(ordinal)))));
        let filler = || {
            let (copies, next) = (Arc::clone(&self.copies), Arc::clone(&next));
            runtime.spawn(async move {
                loop {
                    let from = next.fetch_add(rows, Ordering::Relaxed);
                    if from >= effects {
                        return Result::Ok(());
                    }
                    copies.commit(from..effects.min(from + rows), last).await?;
                }
            })
        };
        let fillers: Vec<_> = (0..commits).map(|_| filler()).collect();
        fillers.into_iter().try_for_each(|filler| runtime.block_on(filler)?)?;
        self.effects = self.effects.max(effects);
        eprintln!("bench size: {effects} effects, filled in {:.0?}", started.elapsed());
        Ok(())
    }
}

impl Copies {
    /// They need not be on the disk: a ledger that is lost here is filled again.
    async fn commit(&self, numbers: Range<u64>, last: Option<(u32, Revision)>) -> Result<()> {
        let ledger = &self.house.gate.ledger;
        let puts = numbers.map(|n| self.put(n, last)).collect();
        let commit =
            Commit { durability: Durability::Lazy, ..Commit::of(Nonce(ledger.entropy().bits()), puts) };
        match ledger.store().commit(Arc::new(commit)).await? {
            Committed::Done => Ok(()),
            other => Err(format!("a copy was not written: {other:?}").into()),
        }
    }

    /// Of one record the newest effect, which the next one follows.
    async fn last_occurrence(&self) -> Result<Option<(u32, Revision)>> {
        if self.series != Series::OneRecord {
            return Ok(None);
        }
        let found = self.house.gate.ledger.find(self.series.intent(&self.house, 0).key).await?;
        let newest = found.newest.ok_or("the first effect was not recorded")?;
        Ok(Some((newest.effect.occurrence.number, found.revision)))
    }

    fn put(&self, n: u64, last: Option<(u32, Revision)>) -> Put {
        let Intent { key, family, alike, marks, .. } = self.series.intent(&self.house, n);
        let StoredEffect { effect, index, .. } = self.first.clone();
        let id = EffectId(effect.id.0 + u128::from(n));
        let mut effect = Effect { id, marks, ..effect };
        let (mut ordinal, mut expected) = (1, Revision::ABSENT);
        if let Some((last, revision)) = last {
            let further = n - u64::from(last);
            ordinal = last + 1 + further as u32;
            expected = Revision(revision.0 + further);
            effect.occurrence.number = ordinal;
        }
        let index = Index { effect: id.0, family, alike: alike.key(), ..index };
        let body = StoredEffect::first(key, index.clone(), effect).body(key);
        let reply = checksum::seal(&[&key.0, &ordinal.to_be_bytes()], self.reply.clone());
        let (index, reply) = (Box::new(index), ReplyChange::Set(reply));
        let (against, changed) = (Against::Newest, Part::Fixed);
        Put::Record { key, ordinal, expected, against, index, body, changed, reply }
    }
}
