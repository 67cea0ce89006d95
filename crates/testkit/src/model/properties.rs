//! What must always hold, and what must be reachable so that holding means something.

use stateright::Property;

use super::Lifecycle;
use super::record::{Disproof, ModelEvidence, Record};
use super::state::{KeyLife, ModelState};
use super::variants::UpstreamVariant;
use super::worker::{ModelAnswer, ModelReply, ModelWorker};

pub const I1_AT_MOST_ONCE: &str = "I1 the effect happens at most once";
pub const I2_SUCCESS_IS_TRUE: &str = "I2 a success reply means that the effect happened";
pub const I3_APPLIED_IS_TRUE: &str = "I3 an applied record means that the effect happened";
pub const I4_EFFECT_IS_KNOWN: &str = "I4 an effect is never recorded as absent or not applied";
pub const I5_DRAINED_IS_FINAL: &str = "I5 after a drained cancel nothing more happens";
pub const I6_SUCCESS_IS_DURABLE: &str = "I6 a success reply means that the record says applied";
pub const I7_DENIAL_IS_TRUE: &str = "I7 a not-applied reply means that its attempts never have an effect";
pub const I8_ATTEMPTS_ARE_ORDERED: &str = "I8 attempt numbers rise and at most one attempt is open";
pub const I9_PRUNED_IS_KNOWN: &str = "I9 a pruned fact never becomes absent";

type ModelCondition = fn(&Lifecycle, &ModelState) -> bool;

/// The invariants, for every kind of upstream.
pub const INVARIANTS: [(&str, ModelCondition); 9] = [
    // For a keyed upstream too, without a word about its key's life: past that the gate does not re-send.
    (I1_AT_MOST_ONCE, |_, state| state.world.effects <= 1),
    (I2_SUCCESS_IS_TRUE, |_, state| !state.history.success_replied || state.world.effects > 0),
    (I3_APPLIED_IS_TRUE, |_, state| !is_applied(state) || state.world.effects > 0),
    // In flight and in doubt are honest about an effect. So is a record of an older epoch, whatever it says:
    // nobody acts upon it before it has been put in doubt.
    (I4_EFFECT_IS_KNOWN, |_, state| {
        let denies = matches!(state.ledger.record, Record::Absent | Record::NotApplied { .. });
        state.world.effects == 0 || !denies || state.ledger.of_older_epoch
    }),
    (I5_DRAINED_IS_FINAL, |_, state| {
        state.history.drained_at.is_none_or(|effects| effects == state.world.effects)
    }),
    (I6_SUCCESS_IS_DURABLE, |_, state| !state.history.success_replied || is_applied(state)),
    (I7_DENIAL_IS_TRUE, |_, state| !state.world.effects_of.any_of_first(state.history.denied)),
    (I8_ATTEMPTS_ARE_ORDERED, |_, state| state.history.numbers_rose && state.history.open.len() <= 1),
    (I9_PRUNED_IS_KNOWN, |_, state| !state.history.pruned || state.ledger.record != Record::Absent),
];

const REACHABLE: [(&str, ModelCondition); 10] = [
    ("a success is reported", |_, state| has_evidence(state, ModelEvidence::Reported)),
    ("an effect is in doubt and happened", |_, state| is_in_doubt(state) && state.world.effects == 1),
    ("an effect is in doubt and never happened", |_, state| {
        is_in_doubt(state) && state.world.effects == 0 && state.time.quiet
    }),
    ("a refusal is recorded", |_, state| has_disproof(state, Disproof::Refused)),
    ("a request is proven unsent", |_, state| has_disproof(state, Disproof::NeverSent)),
    ("a success is replayed", |_, state| {
        state.workers.contains(&ModelWorker::Replying { reply: ModelReply::Success { replayed: true } })
    }),
    ("a late success serves as evidence", |_, state| has_evidence(state, ModelEvidence::LateAnswer)),
    ("a pruned effect answers a retry", |_, state| {
        state.history.pruned
            && state
                .workers
                .contains(&ModelWorker::Replying { reply: ModelReply::Success { replayed: true } })
    }),
    ("an effect happens whose claim a failover lost", |_, state| {
        state.ledger.of_older_epoch && state.ledger.record == Record::Absent && state.world.effects == 1
    }),
    ("a cancel drains after an effect", |_, state| state.history.drained_at == Some(1)),
];

const REACHABLE_PROBED: [(&str, ModelCondition); 3] = [
    ("a probe resolves a doubt with yes", |_, state| has_evidence(state, ModelEvidence::Probe)),
    ("a probe resolves a doubt with no", |_, state| has_disproof(state, Disproof::Probe)),
    ("an effect happens after a probe said no", |_, state| {
        let disproved =
            matches!(state.ledger.before_claim, Some(Record::NotApplied { disproof: Disproof::Probe, .. }));
        disproved && state.world.effects == 1
    }),
];

const REACHABLE_KEYED: [(&str, ModelCondition); 2] = [
    ("a re-send hears of the effect of an earlier attempt", |_, state| {
        state.workers.iter().any(|worker| match *worker {
            ModelWorker::Answered { claim, answer: ModelAnswer::Success } => {
                !state.world.effects_of.contains(claim.nonce)
            }
            _ => false,
        })
    }),
    ("a doubt outlives the key", |_, state| is_in_doubt(state) && state.time.key_life == KeyLife::Over),
];

pub(super) fn all(model: &Lifecycle) -> Vec<Property<Lifecycle>> {
    let of_upstream: &[(&'static str, ModelCondition)] = match model.upstream {
        UpstreamVariant::Opaque => &[],
        UpstreamVariant::Probed => &REACHABLE_PROBED,
        UpstreamVariant::Keyed => &REACHABLE_KEYED,
    };
    let always = INVARIANTS.into_iter().map(|(name, condition)| Property::always(name, condition));
    let sometimes = REACHABLE.iter().chain(of_upstream);
    always.chain(sometimes.map(|&(name, condition)| Property::sometimes(name, condition))).collect()
}

fn is_applied(state: &ModelState) -> bool {
    matches!(state.ledger.record, Record::Applied { .. })
}

fn is_in_doubt(state: &ModelState) -> bool {
    matches!(state.ledger.record, Record::InDoubt { .. })
}

fn has_evidence(state: &ModelState, expected: ModelEvidence) -> bool {
    matches!(state.ledger.record, Record::Applied { evidence, .. } if evidence == expected)
}

fn has_disproof(state: &ModelState, expected: Disproof) -> bool {
    matches!(state.ledger.record, Record::NotApplied { disproof, .. } if disproof == expected)
}
