//! Both links between an effect and its undo.
//!
//! An undo names its effect from its claim on. The way back is written once the undo is applied; until then, and on
//! effects that take no more marks, it is found by the undo's intent key, which follows from the effect.

use crate::Error;
use crate::entropy::Entropy;
use crate::holders::Holders;
use crate::ledger::{Change, Found, Ledger, RACES_MAX, Written};
use crate::record::Known;
use crate::store::{By, PAGE_ROWS_MAX, Store};
use semel_core::effect::{Effect, State};
use semel_core::ids::EffectId;
use semel_core::intent::undo_key;
use semel_core::lifecycle::Event;
use semel_core::time::At;
use semel_core::undo::{Undo, Undone};
use std::sync::Arc;

impl<S: Store, H: Holders, E: Entropy> Ledger<S, H, E> {
    /// An effect that knows whether it was undone, whatever was written down of that.
    pub(crate) async fn with_undone(&self, mut effect: Effect) -> Result<Effect, Error> {
        effect.undone = self.undone(&effect).await?;
        Ok(effect)
    }

    /// What took this effect back.
    pub async fn undone(&self, effect: &Effect) -> Result<Option<Undone>, Error> {
        if effect.undone.is_some() || !may_be_undone(effect) {
            return Ok(effect.undone);
        }
        let undo = self.find(undo_key(&self.secret, &effect.facts.tenant, effect.id)).await?;
        if let Some(undone) = undo.effect().and_then(|undo| taken_back(undo, effect.id)) {
            return Ok(Some(undone));
        }
        // After an epoch the secret may be another one, and then the key leads nowhere.
        if undo.effect().is_some() || self.epoch().await?.1.is_none() {
            return Ok(None);
        }
        self.undone_before_the_epoch(effect.id).await
    }

    async fn undone_before_the_epoch(&self, id: EffectId) -> Result<Option<Undone>, Error> {
        let mut after = None;
        loop {
            let page = self.list(By::All, after, PAGE_ROWS_MAX).await?;
            if let Some(undone) = page.items.iter().find_map(|(_, known)| taken_back(&known.effect, id)) {
                return Ok(Some(undone));
            }
            match page.next {
                None => return Ok(None),
                next => after = next,
            }
        }
    }

    /// Writes down that the newest effect of a record was undone, if it was and that is missing.
    pub(crate) async fn linked(&self, mut found: Found) -> Result<Found, Error> {
        for _ in 0..RACES_MAX {
            let Some(effect) = found.effect().filter(|effect| effect.undone.is_none()) else {
                return Ok(found);
            };
            let Some(undone) = self.undone(effect).await? else { return Ok(found) };
            match Box::pin(self.write(&found, Change::to(&Event::Undone(undone), undone.at))).await {
                Ok(Written::Done(changed)) => return Ok(changed.found),
                Ok(Written::Moved) => found = self.find(found.key).await?,
                // It holds for the caller all the same.
                Err(Error::NotWritten { .. }) => {
                    if let Some(known) = &mut found.newest {
                        Arc::make_mut(known).effect.undone = Some(undone);
                    }
                    return Ok(found);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// An effect by its id, as it is now: lapsed if its holder is gone, undone if it was.
    pub async fn now_of(&self, id: EffectId, now: At) -> Result<Known, Error> {
        let (key, known) = self.by_id(id).await?;
        let newest = self.observe(key, now).await?.newest.filter(|newest| newest.effect.id == id);
        match newest {
            Some(newest) => Ok(Arc::unwrap_or_clone(newest)),
            None => Ok(Known { effect: self.as_known_since(known.effect).await?, ..known }),
        }
    }
}

/// Only these are looked up: most effects have no undo.
pub(crate) fn may_be_undone(effect: &Effect) -> bool {
    matches!((&effect.state, &effect.undo), (State::Applied(_), Some(Undo::By(_))))
}

fn taken_back(undo: &Effect, id: EffectId) -> Option<Undone> {
    let of_it = undo.facts.undoes.as_ref().is_some_and(|undoes| undoes.effect == id);
    match &undo.state {
        State::Applied(applied) if of_it => Some(Undone { by: undo.id, at: applied.at }),
        _ => None,
    }
}
