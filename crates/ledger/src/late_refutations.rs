//! Successes that were disproved after their record had gone on. An older effect takes no more events, and must not
//! answer as a success any more.

use crate::ledger::{Ledger, RecordSnapshot};
use crate::rulings::is_unconfirmed;
use crate::store::{Durability, Revision};
use crate::{Error, journal};
use semel_core::digest::Digest;
use semel_core::effect::{Effect, State};
use semel_core::ids::EffectId;
use semel_core::lifecycle::{self, Event};
use semel_core::time::At;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct LateRefutation {
    what: String,
    at: At,
}

impl Ledger {
    /// Records that a success is not true which is no longer the newest effect of its record. `false`: it is none.
    pub(crate) async fn disprove(&self, seen: &RecordSnapshot, what: String, now: At) -> Result<bool, Error> {
        let Some(seen_effect) = seen.effect() else { return Ok(false) };
        let stored = self.occurrence(seen.key, seen_effect.occurrence.number).await?;
        let Some(stored) = stored.filter(|stored| stored.effect.id == seen_effect.id) else {
            return Ok(false);
        };
        if !is_unconfirmed(&stored.effect) {
            return Ok(false);
        }
        let data = serde_json::json!({"what": what});
        let line = journal::note("refuted", Some(&stored.effect), stored.index.run, data, now);
        let key = self.disproved_key(stored.effect.id);
        self.put_cell(
            key,
            Revision::ABSENT,
            &LateRefutation { what, at: now },
            vec![line],
            Durability::Durable,
        )
        .await
    }

    /// An effect with what became known of it after its record had gone on: that it was undone, or disproved.
    pub async fn with_later_facts(&self, effect: Effect) -> Result<Effect, Error> {
        let effect = self.with_undone(effect).await?;
        if !matches!(effect.state, State::Applied(_)) {
            return Ok(effect);
        }
        let (_, disproved) = self.cell::<LateRefutation>(self.disproved_key(effect.id)).await?;
        let Some(LateRefutation { what, at }) = disproved else { return Ok(effect) };
        Ok(lifecycle::next(&effect, &Event::Refuted { what, at })?.effect)
    }

    fn disproved_key(&self, effect: EffectId) -> Digest {
        self.secret().mac("disproved", &[&effect.0.to_be_bytes()])
    }
}
