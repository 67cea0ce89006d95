//! A second opinion on the lifecycle: its rules, written again without a line of semel's own code, and
//! checked in every order in which things can happen.
//!
//! # What is modelled
//!
//! One intent key, and everything that can go wrong around it.
//!
//! - **The ledger** commits a claim, a settlement, a lapse or a probe's answer in one step, which is what a
//!   compare-and-swap on a record's revision comes to. Each claim has a number and a nonce. A failover
//!   loses the newest claim and bumps the epoch. Pruning drops replies. A cancelled run sets a fence that
//!   the claim's own commit reads.
//! - **Two workers** take requests, claim, look at the deadline, send, wait, settle and reply, or ask a
//!   probe, or re-send. Each can die at any step. Each can also pause at any step, for as long as it likes:
//!   in a model that tries every order a pause is a step not taken yet, so a sender that lapsed long ago
//!   can still send.
//! - **The world** counts effects. A request travels until it arrives, late or never, and the upstream
//!   applies or refuses it. The answer reaches its sender if that one still listens.
//! - **The client** delivers the same request several times. Its giving up is invisible to the gate, as
//!   rule 12 wants, so it needs no step.
//! - **Time** has no numbers. A deadline may pass at any moment, because a clock may be wrong and may only
//!   ever cause doubt. What must not be wrong are two durations, and the model assumes of them just this:
//!   `quiet` outlasts a pause between the last look at the deadline and the first byte, a request's travel,
//!   and the lag of a probe; the margin before the end of an upstream key's life outlasts the first two.
//!
//! # What must hold
//!
//! [`INVARIANTS`], for each [`UpstreamVariant`]. The other properties are examples that must be reachable, so that
//! an invariant is not true for want of anything happening.
//!
//! Each [`Variant`] but the first breaks one rule, and the invariants must notice. The last two of them are
//! not folklore: they came up while the model was written.
//!
//! | variant | upstream | broken |
//! |---|---|---|
//! | `LeaseReexecute` | opaque | I1, I8 |
//! | `TimeoutRelease` | opaque | I1, I4, I7 |
//! | `SendBeforeClaim` | opaque | I1, I4, I5 |
//! | `FailoverLosesClaim` | opaque | I1, I4 |
//! | `PruneToAbsent` | opaque | I1, I6, I9 |
//! | `PruneInDoubt` | opaque | I1, I4, I9 |
//! | `TransparentResend` | opaque | I1, I5 |
//! | `CancelCheckOutsideTransaction` | opaque | I5 |
//! | `ReplyBeforeSettle` | opaque | I6 |
//! | `NaiveProbe` | probed | I1, I4, I7 |
//! | `StaleProbe` | probed | I1, I4, I7 |
//! | `SettleWithoutCompareAndSwap` | probed | I1, I6 |
//! | | keyed | I4, I6 |
//! | `DownstreamKeyPerAttempt` | keyed | I1 |
//! | `DownstreamKeyLifeLapsed` | keyed | I1 |
//! | `ReleaseIgnoresPriorAttempt` | keyed | I4, I7 |
//! | `FailureIgnoresPriorAttempt` | keyed | I4, I7 |
//! | `ResolverIgnoresCancel` | keyed | I5 |
//! | `EpochGuardsAbsenceOnly` | opaque | I1, I4 |
//! | `ProbeOutlivesEpoch` | probed | I4 |
//!
//! The tests hold this table to be true. It names no variant for I2 and I3, so the tests confront these two
//! with a lie directly.
//!
//! # Bounds
//!
//! [`Bounds::every_run`] and [`Bounds::deep`]. Within them the search is exhaustive; beyond them it says
//! nothing.
//!
//! # What is not covered
//!
//! More than one intent key, and so turns, lookalikes and rule 11; `again`, rulings, reopening, confirming
//! and refuting; interim results; undo. A commit whose outcome is unknown is not told apart from one whose
//! writer died or lived (rule 15 is assumed). A failover loses one claim, never a settlement, a fence or a
//! probe's answer: of those the store promises durability. The fence is never lifted. There is no liveness:
//! that a doubt ends is shown to be possible, not certain.

mod action;
mod bounds;
mod gate;
mod ledger;
mod properties;
mod record;
mod state;
mod variants;
mod worker;
mod world;

pub use action::{LapseCause, ModelAction, WorkerIndex};
pub use bounds::Bounds;
pub use properties::{
    I1_AT_MOST_ONCE, I2_SUCCESS_IS_TRUE, I3_APPLIED_IS_TRUE, I4_EFFECT_IS_KNOWN, I5_DRAINED_IS_FINAL,
    I6_SUCCESS_IS_DURABLE, I7_DENIAL_IS_TRUE, I8_ATTEMPTS_ARE_ORDERED, I9_PRUNED_IS_KNOWN, INVARIANTS,
};
pub use record::{Disproof, ModelClaim, ModelDoubt, ModelEvidence, ModelLedger, ModelNonce, Nonces, Record};
pub use state::{ATTEMPTS_MAX, History, KeyLife, ModelState, ModelTime, ModelWorld, WORKERS};
pub use variants::{UpstreamVariant, Variant};
pub use worker::{ModelAnswer, ModelReply, ModelWorker};

use stateright::{Model, Property};

/// The model: an upstream, the rules, and how far to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    pub upstream: UpstreamVariant,
    pub variant: Variant,
    pub bounds: Bounds,
}

impl Model for Lifecycle {
    type State = ModelState;
    type Action = ModelAction;

    fn init_states(&self) -> Vec<ModelState> {
        vec![ModelState::initial(self.bounds)]
    }

    fn actions(&self, state: &ModelState, actions: &mut Vec<ModelAction>) {
        self.possible(state, actions);
    }

    fn next_state(&self, last: &ModelState, action: ModelAction) -> Option<ModelState> {
        let mut state = *last;
        self.perform(&mut state, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(self)
    }
}

impl Lifecycle {
    fn perform(&self, state: &mut ModelState, action: ModelAction) {
        match action {
            ModelAction::Receive(worker) => self.receive(state, worker),
            ModelAction::Decide(worker) => self.decide(state, worker),
            ModelAction::Check(worker) => self.check(state, worker),
            ModelAction::Send(worker) => Self::send(state, worker),
            ModelAction::FailToSend(worker) => Self::fail_to_send(state, worker),
            ModelAction::Abort(worker) => self.abort(state, worker),
            ModelAction::Settle(worker) => self.settle_and_prepare_reply(state, worker),
            ModelAction::Reply(worker) => Self::reply(state, worker),
            ModelAction::Ask(worker) => Self::ask(state, worker),
            ModelAction::Conclude(worker) => self.conclude(state, worker),
            ModelAction::Resend(worker) => self.resend(state, worker),
            ModelAction::Crash(worker) => Self::crash(state, worker),
            ModelAction::Apply(nonce) => self.apply(state, nonce),
            ModelAction::Refuse(nonce) => Self::refuse(state, nonce),
            ModelAction::Lose(nonce) => Self::lose(state, nonce),
            ModelAction::ShowToProbes => state.world.visible = true,
            ModelAction::PassLastMoment(nonce) => state.time.ended.insert(nonce),
            ModelAction::FallQuiet => state.time.quiet = true,
            ModelAction::AgeKey => Self::age_key(state),
            ModelAction::Lapse(_) => self.lapse(state),
            ModelAction::Prune => self.prune(state),
            ModelAction::FailOver => self.fail_over(state),
            ModelAction::Cancel => state.ledger.fenced = true,
            ModelAction::ReportDrained => state.history.drained_at = Some(state.world.effects),
            ModelAction::SendUnclaimed(worker) => Self::send_unclaimed(state, worker),
            ModelAction::ClaimWhatWasSent(worker) => self.claim_what_was_sent(state, worker),
            ModelAction::SendAgainUnasked(worker) => Self::send_again_unasked(state, worker),
            ModelAction::ReplyEarly(_) => state.history.success_replied = true,
        }
    }
}
