//! Both links between an effect and its undo.
//!
//! An undo names its effect from its claim on. The way back is written once the undo is applied; until then, and on
//! effects that take no more marks, it is found by the undo's intent key, which follows from the effect.

use crate::Error;
use crate::ledger::{ChangeResult, Ledger, RACES_MAX, RecordChange, RecordSnapshot, has_undo_call};
use crate::record::StoredEffect;
use crate::store::{By, PAGE_ROWS_MAX};
use semel_core::digest::Digest;
use semel_core::effect::{Effect, State};
use semel_core::ids::EffectId;
use semel_core::intent::undo_key;
use semel_core::lifecycle::Event;
use semel_core::time::At;
use semel_core::undo::Undone;
use std::sync::Arc;

impl Ledger {
    /// An effect that knows whether it was undone, whatever was written down of that.
    pub async fn with_undone(&self, mut effect: Effect) -> Result<Effect, Error> {
        effect.undone = self.undone(&effect).await?;
        Ok(effect)
    }

    /// The undo of this effect.
    pub async fn undone(&self, effect: &Effect) -> Result<Option<Undone>, Error> {
        if !has_undo_call(effect) {
            return Ok(effect.undone);
        }
        if let Some(undone) = effect.undone
            && self.still_stands(undone).await?
        {
            return Ok(Some(undone));
        }
        let undo = self.find(undo_key(&self.secret, &effect.facts.tenant, effect.id)).await?;
        Ok(undo.effect().and_then(|undo| taken_back(undo, effect.id)))
    }

    /// Whether an undo of it may have done something.
    pub(crate) async fn undo_has_begun(&self, effect: &Effect) -> Result<bool, Error> {
        let undo = self.find(undo_key(&self.secret, &effect.facts.tenant, effect.id)).await?;
        let may_have_done = undo.effect().is_some_and(|undo| !matches!(undo.state, State::NotApplied(_)));
        Ok(may_have_done || self.undone(effect).await?.is_some())
    }

    /// Whether an undo that was written down has not been disproved since, or ruled not to have happened.
    async fn still_stands(&self, undone: Undone) -> Result<bool, Error> {
        match self.by_id(undone.by).await {
            Ok((_, undo)) => Ok(matches!(undo.effect.state, State::Applied(_))),
            // Retention has dropped it.
            Err(Error::NoSuchEffect(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Writes both links of every undo: under another secret, undos cannot be found by their keys.
    pub async fn link_undos(&self) -> Result<(), Error> {
        let mut after = None;
        loop {
            let page = self.list(By::All, after, PAGE_ROWS_MAX).await?;
            for (_, undo) in &page.items {
                let Some(undoes) = &undo.effect.facts.undoes else { continue };
                let Some(undone) = taken_back(&undo.effect, undoes.effect) else { continue };
                let (key, stored) = match self.by_id(undoes.effect).await {
                    // Retention has dropped it.
                    Err(Error::NoSuchEffect(_)) => continue,
                    found => found?,
                };
                self.mark_undone(key, &stored.effect, undone).await?;
            }
            match page.next {
                None => return Ok(()),
                next => after = next,
            }
        }
    }

    async fn mark_undone(&self, key: Digest, seen: &Effect, undone: Undone) -> Result<(), Error> {
        let event = Event::Undone(undone);
        for _ in 0..RACES_MAX {
            let snapshot = self.at(key, seen.occurrence.number).await?;
            let is_due =
                |effect: &Effect| effect.id == seen.id && effect.undone.is_none() && has_undo_call(effect);
            if !snapshot.effect().is_some_and(is_due) {
                return Ok(());
            }
            let change = RecordChange::of_any(&event, undone.at);
            if let ChangeResult::Done(_) = self.write(&snapshot, change).await? {
                return Ok(());
            }
        }
        Err(Error::NotWritten { what: format!("record {key} kept changing") })
    }

    /// Writes down that the newest effect of a record was undone, if it was and that is missing.
    pub(crate) async fn linked(&self, mut snapshot: RecordSnapshot) -> Result<RecordSnapshot, Error> {
        for _ in 0..RACES_MAX {
            let Some(effect) = snapshot.effect() else { return Ok(snapshot) };
            let (written, undone) = (effect.undone, self.undone(effect).await?);
            let undone = match (written, undone) {
                (None, Some(undone)) => undone,
                (written, undone) if written == undone => return Ok(snapshot),
                // The mark was withdrawn; the undo's own record says so.
                (_, undone) => {
                    if let Some(stored) = &mut snapshot.newest {
                        Arc::make_mut(stored).effect.undone = undone;
                    }
                    return Ok(snapshot);
                }
            };
            let number = effect.occurrence.number;
            let event = Event::Undone(undone);
            match Box::pin(self.write(&snapshot, RecordChange::of_any(&event, undone.at))).await {
                Ok(ChangeResult::Done(changed)) => return Ok(changed.snapshot),
                Ok(ChangeResult::Moved) => snapshot = self.at(snapshot.key, number).await?,
                // It holds for the caller all the same.
                Err(Error::NotWritten { .. }) => {
                    if let Some(stored) = &mut snapshot.newest {
                        Arc::make_mut(stored).effect.undone = Some(undone);
                    }
                    return Ok(snapshot);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(snapshot)
    }

    /// An effect by its id, as it is now: lapsed if its holder is gone, undone if it was.
    pub async fn now_of(&self, id: EffectId, now: At) -> Result<StoredEffect, Error> {
        let (key, stored) = self.by_id(id).await?;
        let newest = self.observe(key, now).await?.newest.filter(|newest| newest.effect.id == id);
        match newest {
            Some(newest) => Ok(Arc::unwrap_or_clone(newest)),
            None => Ok(StoredEffect { effect: self.with_undone(stored.effect).await?, ..stored }),
        }
    }
}

fn taken_back(undo: &Effect, id: EffectId) -> Option<Undone> {
    let of_it = undo.facts.undoes.as_ref().is_some_and(|undoes| undoes.effect == id);
    match &undo.state {
        State::Applied(applied) if of_it => Some(Undone { by: undo.id, at: applied.at }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::OsEntropy;
    use crate::holders::FileHolders;
    use crate::memory::{InjectedFault, MemoryStore, Sleeper};
    use crate::record::tests::row;
    use crate::store::{Against, Commit, Committed, Index, Nonce, Part, Put, ReplyChange, Revision, Store};
    use semel_core::answer::EffectWord;
    use semel_core::digest::Secret;
    use semel_core::effect::{Applied, Evidence, Facts, Reply};
    use semel_core::ids::Reason;
    use semel_core::undo::{Undo, UndoCall, Undoes};
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    struct NoTime;

    impl Sleeper for NoTime {
        fn sleep(&self, _span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async {})
        }
    }

    fn now<F: Future>(future: F) -> F::Output {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("memory keeps nobody waiting"),
        }
    }

    fn put(store: &MemoryStore, id: u8, change: impl FnOnce(&mut Effect)) {
        let (mut effect, row) = row();
        effect.id = EffectId(id.into());
        effect.state = State::Applied(Applied {
            at: At(2),
            evidence: Evidence::Reported,
            by: None,
            word: EffectWord::Created,
            reply: Reply::Unknown,
            ruling: None,
        });
        change(&mut effect);
        let (key, index) =
            (Digest([id; 32]), Index { effect: id.into(), open: false, owner: None, ..row.index });
        let stored = StoredEffect::first(key, index.clone(), effect);
        let (body, reply, against) = (stored.body(key), ReplyChange::Drop, Against::Newest);
        let (expected, changed, index) = (Revision::ABSENT, Part::Fixed, Box::new(index));
        let put = Put::Record { key, ordinal: 1, expected, against, index, body, changed, reply };
        let commit = Commit::of(Nonce(id.into()), vec![put]);
        assert_eq!(now(store.commit(Arc::new(commit))).expect("it is written"), Committed::Done);
    }

    /// Effects 1 and 2, which effects 11 and 12 took back. Effect 13 took back one that retention has dropped.
    #[test]
    fn a_link_that_cannot_be_written_is_an_error_and_the_next_try_writes_it() {
        let store = Arc::new(MemoryStore::new(Arc::new(NoTime)));
        for id in [1, 2] {
            let call = UndoCall::Command { argv: vec!["refund".into()], cwd: "/w".into() };
            put(&store, id, |effect| effect.undo = Some(Undo::By(call)));
        }
        for id in 11..=13 {
            put(&store, id, |effect| {
                let reason = Reason::parse("wrong order").expect("a reason");
                let undoes = Undoes { effect: EffectId(u128::from(id - 10)), by: "ann".into(), reason };
                effect.facts = Arc::new(Facts { undoes: Some(undoes), ..Facts::clone(&effect.facts) });
            });
        }
        let directory = tempfile::tempdir().expect("a directory");
        let holders = FileHolders::in_directory(directory.path().join("owners"));
        let shared: Arc<dyn Store> = Arc::clone(&store) as Arc<dyn Store>;
        let ledger = Ledger::new(shared, Arc::new(holders), OsEntropy, Secret::new([7; 32]));
        let linked = |id| now(ledger.by_id(EffectId(id))).expect("readable").1.effect.undone.map(|u| u.by);
        // The commit of the first link uses up the first fault, and the second effect cannot be read then.
        store.inject(InjectedFault::LandsUnanswered);
        store.inject(InjectedFault::NotRead);
        assert!(matches!(now(ledger.link_undos()), Err(Error::NotRead { .. })));
        assert_eq!((linked(1), linked(2)), (Some(EffectId(11)), None));
        now(ledger.link_undos()).expect("it can be read again");
        assert_eq!((linked(1), linked(2)), (Some(EffectId(11)), Some(EffectId(12))));
    }
}
