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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Revision;
    use semel_core::digest::{Digest, Secret};
    use semel_core::ids::{EffectId, Nonce, OwnerId};
    use semel_core::intent::{Ask, AskedBy};
    use semel_core::json::Json;
    use semel_core::lifecycle::NewAttempt;
    use semel_core::policy::{ActionFacts, Policy};
    use semel_core::time::At;

    fn row() -> (Effect, Row) {
        let rule = Policy::default().rule_for(&ActionFacts::new("fn:charge", &Json::Null));
        let ask = Ask {
            tenant: "t",
            principal: "p",
            authority: "",
            action: "fn:charge",
            arguments: &Json::Null,
            run: None,
            key: None,
            again: None,
            asked_by: AskedBy::Agent,
            call_id: None,
            live_connection: false,
            serialize_by: None,
            replay_refusals: false,
        };
        let intent = Intent::of(&ask, &rule, &Secret::new([7; 32])).expect("no key is required");
        let occurrence = semel_core::effect::Occurrence { number: 1, reason: None, earlier: Vec::new() };
        let new = NewAttempt {
            nonce: Nonce(1),
            owner: OwnerId(1),
            at: At(1_000),
            deadline: At(2_000),
            last_send: semel_core::effect::LastSend::By(At(1_500)),
            call_id: None,
            run: None,
            epoch: 0,
            facts: intent.facts(&rule),
            marks: intent.marks.clone(),
        };
        let effect = Effect::claimed(intent.seed(EffectId(7), occurrence, &rule), &new);
        let index = index_of_first(&intent, &effect);
        let (body, key) = (encode(&effect), Digest([1; 32]));
        (effect, Row { key, ordinal: 1, revision: Revision(1), index, body, reply: None })
    }

    fn changed(change: impl FnOnce(&mut Value)) -> Result<Known, Error> {
        let (_, mut row) = row();
        let mut body: Value = serde_json::from_slice(&row.body).expect("a body is JSON");
        change(&mut body);
        row.body = serde_json::to_vec(&body).expect("JSON is written");
        decode(row)
    }

    fn is_newer(known: &Known) -> bool {
        let doubt =
            matches!(&known.effect.state, State::InDoubt(doubt) if doubt.why == Doubt::WrittenByNewer);
        known.newer && doubt
    }

    #[test]
    fn a_record_reads_back() {
        let (effect, row) = row();
        let known = decode(row).expect("it reads back");
        assert_eq!((known.effect, known.newer), (effect, false));
    }

    #[test]
    fn fields_that_only_a_newer_semel_knows_are_passed_over() {
        let known = changed(|body| body["colour"] = "blue".into()).expect("it reads");
        assert!(!known.newer);
        let known = changed(|body| body["attempts"][0]["colour"] = "blue".into()).expect("it reads");
        assert!(!known.newer);
    }

    #[test]
    fn a_state_that_only_a_newer_semel_knows_reads_as_in_doubt() {
        let known =
            changed(|body| body["state"] = serde_json::json!({"is": "undone", "by": 7})).expect("it reads");
        assert!(is_newer(&known));
        assert_eq!(known.effect.attempts.len(), 1);
    }

    #[test]
    fn a_verdict_that_only_a_newer_semel_knows_reads_as_in_doubt() {
        let known = changed(|body| body["attempts"][0]["verdict"] = "undone".into()).expect("it reads");
        assert!(is_newer(&known));
        assert!(known.effect.attempts.is_empty());
    }

    #[test]
    fn what_is_no_record_is_damaged_and_not_in_doubt() {
        let (_, mut row) = row();
        row.body.truncate(20);
        assert!(matches!(decode(row), Err(Error::NotRead { .. })));
    }
}
