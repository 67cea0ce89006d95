//! An effect as bytes, and back. What a newer semel wrote reads as in doubt and is never overwritten.

use crate::Error;
use crate::store::{Index, Row};
use semel_core::digest::Secret;
use semel_core::effect::{Doubt, Effect, InDoubt, State};
use semel_core::intent::{Intent, run_key};
use serde_json::Value;

/// An effect with what the store keeps around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub effect: Effect,
    pub index: Index,
    /// A newer semel wrote a state that this one does not know: it may be read, not changed.
    pub newer: bool,
}

pub fn encode(effect: &Effect) -> Vec<u8> {
    serde_json::to_vec(effect).expect("an effect has only string keys and finite numbers")
}

pub fn decode(row: Row) -> Result<Known, Error> {
    match serde_json::from_slice(&row.body) {
        Ok(effect) => Ok(Known { effect, index: row.index, newer: false }),
        Err(_) => {
            let effect = salvage(&row).ok_or_else(|| Error::NotRead {
                what: format!(
                    "the record of effect {} is damaged",
                    semel_core::ids::EffectId(row.index.effect)
                ),
            })?;
            Ok(Known { effect, index: row.index, newer: true })
        }
    }
}

/// Reads all but the state, and says in doubt instead of it.
fn salvage(row: &Row) -> Option<Effect> {
    let mut body: Value = serde_json::from_slice(&row.body).ok()?;
    let doubt = State::InDoubt(InDoubt { since: row.index.changed_at, why: Doubt::WrittenByNewer });
    let object = body.as_object_mut()?;
    object.insert("state".into(), serde_json::to_value(doubt).ok()?);
    serde_json::from_value(body.clone()).ok().or_else(|| {
        // The attempts too may hold what we do not know.
        body.as_object_mut()?.insert("attempts".into(), Value::Array(Vec::new()));
        serde_json::from_value(body).ok()
    })
}

/// The columns of an effect's row.
pub fn index_of_first(intent: &Intent, effect: &Effect) -> Index {
    let index = Index {
        effect: effect.id.0,
        run: intent.run_key,
        family: intent.family,
        neighbourhood: intent.neighbourhood,
        open: true,
        owner: None,
        opened_at: effect.opened_at,
        changed_at: effect.opened_at,
    };
    index_after(&index, effect)
}

pub fn index_after(index: &Index, effect: &Effect) -> Index {
    Index {
        effect: effect.id.0,
        open: effect.is_open(),
        owner: effect.open_attempt().map(|attempt| attempt.owner),
        opened_at: effect.opened_at,
        changed_at: effect.changed_at(),
        ..index.clone()
    }
}

/// The run an effect belongs to, as scans know it.
pub fn run_digest(secret: &Secret, effect: &Effect) -> Option<semel_core::digest::Digest> {
    effect.facts.run.as_ref().map(|run| run_key(secret, &effect.facts.tenant, &run.id))
}
