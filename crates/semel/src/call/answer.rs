//! The answers to code that calls tools itself.

use super::claim;
use schemars::JsonSchema;
use semel_core::answer::Code;
use semel_core::class::Tier;
use semel_core::ids::{AttemptNo, EffectId};
use semel_gate::ClaimHandle;
use serde::Serialize;

/// Send it now, then settle with the claim.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToRun {
    outcome: RunOutcome,
    /// Null for a read and in observe mode: nothing is recorded, and there is nothing to settle.
    claim: Option<String>,
    #[schemars(with = "Option<String>")]
    effect_id: Option<EffectId>,
    #[schemars(with = "Option<u32>")]
    attempt: Option<AttemptNo>,
    tier: Tier,
    /// Settled later than this, it is in doubt in between.
    deadline: Option<String>,
    /// For the upstream: the same for every attempt of this effect.
    idempotency_key: Option<String>,
    /// The same was done and delivered before; its class lets it run again.
    possible_repeat: bool,
    /// The ledger may lose its newest entries in a crash of its server, and this claim with them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    best_effort: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RunOutcome {
    Run,
}

impl ToRun {
    /// A claim that was won.
    pub fn with(taken: &ClaimHandle) -> ToRun {
        ToRun {
            outcome: RunOutcome::Run,
            claim: Some(claim::write(taken)),
            effect_id: Some(taken.effect),
            attempt: Some(taken.attempt),
            tier: taken.tier,
            deadline: Some(taken.deadline.to_string()),
            idempotency_key: Some(taken.idempotency_key.clone()),
            possible_repeat: taken.possible_repeat,
            best_effort: taken.best_effort,
        }
    }

    /// Nothing is recorded: a read, or observe mode.
    pub fn unrecorded(tier: Tier) -> ToRun {
        ToRun {
            outcome: RunOutcome::Run,
            claim: None,
            effect_id: None,
            attempt: None,
            tier,
            deadline: None,
            idempotency_key: None,
            possible_repeat: false,
            best_effort: false,
        }
    }
}

/// The status of an answer that is not ok: `spec/answer.md`.
pub fn status_of(code: Code) -> u16 {
    match code {
        Code::InFlight | Code::Lookalike | Code::Superseded | Code::CannotUndo => 409,
        Code::Drift => 422,
        Code::InDoubt => 423,
        Code::KeyRequired => 400,
        Code::Cancelled | Code::Refuted | Code::HeldForPerson => 403,
        // Here nothing stands behind that has a status of its own: the attempt that was waited for was refused.
        Code::UpstreamRefused => 424,
        Code::NotStarted => 502,
        Code::BudgetSpent | Code::LedgerUnavailable | Code::PolicyInvalid => 503,
    }
}
