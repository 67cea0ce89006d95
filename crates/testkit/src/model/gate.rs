//! The steps of a gate worker between two commits.

use super::Lifecycle;
use super::action::WorkerIndex;
use super::record::{ModelClaim, ModelDoubt, ModelNonce, Record};
use super::state::{KeyLife, ModelState};
use super::variants::{UpstreamVariant, Variant};
use super::worker::{ModelAnswer, ModelReply, ModelWorker};

impl Lifecycle {
    pub(super) fn receive(&self, state: &mut ModelState, index: WorkerIndex) {
        state.deliveries_left -= 1;
        let saw_fence = self.variant == Variant::CancelCheckOutsideTransaction && state.ledger.fenced;
        state.workers[index] = ModelWorker::Admitted { saw_fence };
    }

    /// One commit: reads the record and the fence, and either claims or answers.
    pub(super) fn decide(&self, state: &mut ModelState, index: WorkerIndex) {
        let ModelWorker::Admitted { saw_fence } = state.workers[index] else {
            unreachable!("only an admitted request is decided upon")
        };
        let fenced = match self.variant {
            Variant::CancelCheckOutsideTransaction => saw_fence,
            _ => state.ledger.fenced,
        };
        state.workers[index] = match state.ledger.record {
            _ if self.may_claim(state) && !fenced => {
                let nonce = next_nonce(state);
                ModelWorker::Claimed { claim: self.claim(state, nonce) }
            }
            Record::Absent | Record::NotApplied { .. } if state.ledger.of_older_epoch => {
                Self::doubt_older_epoch(state);
                ModelWorker::Idle
            }
            // The run is cancelled: the answer says what was prevented, and what is known of the past.
            Record::Absent => ModelWorker::Replying { reply: ModelReply::NotApplied { covers: 0 } },
            Record::NotApplied { newest, .. } => {
                let covers = newest.map_or(0, ModelClaim::covers);
                ModelWorker::Replying { reply: ModelReply::NotApplied { covers } }
            }
            Record::Applied { .. } => ModelWorker::Replying { reply: ModelReply::Success { replayed: true } },
            // Wait, or in doubt: an answer that asserts nothing.
            Record::InFlight { .. } | Record::InDoubt { .. } => ModelWorker::Idle,
        };
    }

    /// The last look at the deadline. What it stops was provably never sent.
    pub(super) fn check(&self, state: &mut ModelState, index: WorkerIndex) {
        let ModelWorker::Claimed { claim } = state.workers[index] else {
            unreachable!("only a claimed attempt is checked")
        };
        let key_too_old = self.upstream == UpstreamVariant::Keyed
            && state.time.key_life != KeyLife::Young
            && !self.relies_on_lapsed_key();
        state.workers[index] = if state.time.ended.contains(claim.nonce) || key_too_old {
            ModelWorker::Answered { claim, answer: ModelAnswer::NeverSent }
        } else {
            ModelWorker::Checked { claim }
        };
    }

    pub(super) fn send(state: &mut ModelState, index: WorkerIndex) {
        let ModelWorker::Checked { claim } = state.workers[index] else {
            unreachable!("only a checked attempt is sent")
        };
        state.world.in_transit[claim.nonce.index()] += 1;
        state.workers[index] = ModelWorker::Waiting { claim };
    }

    pub(super) fn fail_to_send(state: &mut ModelState, index: WorkerIndex) {
        let ModelWorker::Checked { claim } = state.workers[index] else {
            unreachable!("only a checked attempt is sent")
        };
        state.workers[index] = ModelWorker::Answered { claim, answer: ModelAnswer::NeverSent };
    }

    /// The worker stops waiting. It says so in the ledger, and what it sent stays sent.
    pub(super) fn abort(&self, state: &mut ModelState, index: WorkerIndex) {
        let ModelWorker::Waiting { claim } = state.workers[index] else {
            unreachable!("only a waiting worker stops waiting")
        };
        if matches!(state.ledger.record, Record::InFlight { claim: open, .. } if open == claim) {
            self.lapse(state);
        }
        state.time.ended.insert(claim.nonce);
        state.workers[index] = ModelWorker::Idle;
    }

    pub(super) fn settle_and_prepare_reply(&self, state: &mut ModelState, index: WorkerIndex) {
        let ModelWorker::Answered { claim, answer } = state.workers[index] else {
            unreachable!("only an answered attempt is settled")
        };
        self.settle(state, claim, answer);
        state.time.ended.insert(claim.nonce);
        // The caller hears what the ledger says now, not what this attempt believes.
        state.workers[index] = match state.ledger.record {
            Record::Applied { .. } => ModelWorker::Replying {
                reply: ModelReply::Success { replayed: answer != ModelAnswer::Success },
            },
            Record::NotApplied { newest, .. } if newest == Some(claim) => {
                ModelWorker::Replying { reply: ModelReply::NotApplied { covers: claim.covers() } }
            }
            _ => ModelWorker::Idle,
        };
    }

    pub(super) fn reply(state: &mut ModelState, index: WorkerIndex) {
        let ModelWorker::Replying { reply } = state.workers[index] else {
            unreachable!("only a prepared reply goes out")
        };
        match reply {
            ModelReply::Success { .. } => state.history.success_replied = true,
            ModelReply::NotApplied { covers } => state.history.denied = state.history.denied.max(covers),
        }
        state.workers[index] = ModelWorker::Idle;
    }

    /// Whether a probe would be worth asking: there is a doubt, and the answer would count.
    pub(super) fn may_ask(&self, state: &ModelState) -> bool {
        self.upstream == UpstreamVariant::Probed
            && matches!(state.ledger.record, Record::InDoubt { .. })
            && (state.world.visible || self.no_counts(state))
    }

    /// Rule 5: a "no" counts only if no claim can send any more and the quiet time has passed since.
    fn no_counts(&self, state: &ModelState) -> bool {
        match self.variant {
            Variant::NaiveProbe => state.nothing_can_arrive() && state.probe_sees_everything(),
            Variant::StaleProbe => state.every_claim_ended(),
            _ => state.time.quiet,
        }
    }

    pub(super) fn ask(state: &mut ModelState, index: WorkerIndex) {
        let Record::InDoubt { newest } = state.ledger.record else { unreachable!("only a doubt is probed") };
        let doubt = ModelDoubt { newest, epoch: state.ledger.epoch };
        state.workers[index] = ModelWorker::Probed { doubt, found: state.world.visible };
    }

    pub(super) fn conclude(&self, state: &mut ModelState, index: WorkerIndex) {
        let ModelWorker::Probed { doubt, found } = state.workers[index] else {
            unreachable!("only an asked question is concluded")
        };
        self.record_probe(state, doubt, found);
        state.workers[index] = ModelWorker::Idle;
    }

    pub(super) fn resend(&self, state: &mut ModelState, index: WorkerIndex) {
        let nonce = next_nonce(state);
        state.workers[index] = ModelWorker::Claimed { claim: self.claim(state, nonce) };
    }

    /// The process dies, its lock with it, and another takes its place.
    pub(super) fn crash(state: &mut ModelState, index: WorkerIndex) {
        state.crashes_left -= 1;
        if let Some(nonce) = state.workers[index].nonce() {
            state.time.ended.insert(nonce);
        }
        state.workers[index] = ModelWorker::Idle;
    }

    pub(super) fn send_unclaimed(state: &mut ModelState, index: WorkerIndex) {
        let nonce = next_nonce(state);
        state.time.quiet = false;
        state.world.in_transit[nonce.index()] += 1;
        state.workers[index] = ModelWorker::SentUnclaimed { nonce };
    }

    pub(super) fn claim_what_was_sent(&self, state: &mut ModelState, index: WorkerIndex) {
        let ModelWorker::SentUnclaimed { nonce } = state.workers[index] else {
            unreachable!("only what was sent unclaimed is claimed afterwards")
        };
        state.workers[index] = if self.may_claim(state) && !state.ledger.fenced {
            ModelWorker::Waiting { claim: self.claim(state, nonce) }
        } else {
            ModelWorker::Idle
        };
    }

    pub(super) fn send_again_unasked(state: &mut ModelState, index: WorkerIndex) {
        let ModelWorker::Waiting { claim } = state.workers[index] else {
            unreachable!("only a waiting worker has a connection to lose")
        };
        state.world.in_transit[claim.nonce.index()] += 1;
    }
}

fn next_nonce(state: &mut ModelState) -> ModelNonce {
    let nonce = ModelNonce(state.history.claims);
    state.history.claims += 1;
    nonce
}

impl ModelClaim {
    /// How many claims a "not applied" of this one speaks for: itself and all before it.
    fn covers(self) -> u8 {
        self.nonce.0 + 1
    }
}
