//! The steps of a gate worker between two commits.

use super::Lifecycle;
use super::action::WorkerIndex;
use super::record::{Claim, Doubt, Nonce, Record};
use super::state::{KeyLife, State};
use super::variants::{Upstream, Variant};
use super::worker::{Answer, Reply, Worker};

impl Lifecycle {
    pub(super) fn receive(&self, state: &mut State, index: WorkerIndex) {
        state.deliveries_left -= 1;
        let saw_fence = self.variant == Variant::CancelCheckOutsideTransaction && state.ledger.fenced;
        state.workers[index] = Worker::Admitted { saw_fence };
    }

    /// One commit: reads the record and the fence, and either claims or answers.
    pub(super) fn decide(&self, state: &mut State, index: WorkerIndex) {
        let Worker::Admitted { saw_fence } = state.workers[index] else {
            unreachable!("only an admitted request is decided upon")
        };
        let fenced = match self.variant {
            Variant::CancelCheckOutsideTransaction => saw_fence,
            _ => state.ledger.fenced,
        };
        state.workers[index] = match state.ledger.record {
            _ if self.may_claim(state) && !fenced => {
                let nonce = next_nonce(state);
                Worker::Claimed { claim: self.claim(state, nonce) }
            }
            Record::Absent | Record::NotApplied { .. } if state.ledger.of_older_epoch => {
                Self::doubt_older_epoch(state);
                Worker::Idle
            }
            // The run is cancelled: the answer says what was prevented, and what is known of the past.
            Record::Absent => Worker::Replying { reply: Reply::NotApplied { covers: 0 } },
            Record::NotApplied { newest, .. } => {
                let covers = newest.map_or(0, Claim::covers);
                Worker::Replying { reply: Reply::NotApplied { covers } }
            }
            Record::Applied { .. } => Worker::Replying { reply: Reply::Success { replayed: true } },
            // Wait, or in doubt: an answer that asserts nothing.
            Record::InFlight { .. } | Record::InDoubt { .. } => Worker::Idle,
        };
    }

    /// The last look at the deadline. What it stops was provably never sent.
    pub(super) fn check(&self, state: &mut State, index: WorkerIndex) {
        let Worker::Claimed { claim } = state.workers[index] else {
            unreachable!("only a claimed attempt is checked")
        };
        let key_too_old = self.upstream == Upstream::Keyed
            && state.time.key_life != KeyLife::Young
            && !self.relies_on_lapsed_key();
        state.workers[index] = if state.time.ended.contains(claim.nonce) || key_too_old {
            Worker::Answered { claim, answer: Answer::NeverSent }
        } else {
            Worker::Checked { claim }
        };
    }

    pub(super) fn send(state: &mut State, index: WorkerIndex) {
        let Worker::Checked { claim } = state.workers[index] else {
            unreachable!("only a checked attempt is sent")
        };
        state.world.in_transit[claim.nonce.index()] += 1;
        state.workers[index] = Worker::Waiting { claim };
    }

    pub(super) fn fail_to_send(state: &mut State, index: WorkerIndex) {
        let Worker::Checked { claim } = state.workers[index] else {
            unreachable!("only a checked attempt is sent")
        };
        state.workers[index] = Worker::Answered { claim, answer: Answer::NeverSent };
    }

    /// The worker stops waiting. It says so in the ledger, and what it sent stays sent.
    pub(super) fn abort(&self, state: &mut State, index: WorkerIndex) {
        let Worker::Waiting { claim } = state.workers[index] else {
            unreachable!("only a waiting worker stops waiting")
        };
        if matches!(state.ledger.record, Record::InFlight { claim: open, .. } if open == claim) {
            self.lapse(state);
        }
        state.time.ended.insert(claim.nonce);
        state.workers[index] = Worker::Idle;
    }

    pub(super) fn settle_and_prepare_reply(&self, state: &mut State, index: WorkerIndex) {
        let Worker::Answered { claim, answer } = state.workers[index] else {
            unreachable!("only an answered attempt is settled")
        };
        self.settle(state, claim, answer);
        state.time.ended.insert(claim.nonce);
        // The caller hears what the ledger says now, not what this attempt believes.
        state.workers[index] = match state.ledger.record {
            Record::Applied { .. } => {
                Worker::Replying { reply: Reply::Success { replayed: answer != Answer::Success } }
            }
            Record::NotApplied { newest, .. } if newest == Some(claim) => {
                Worker::Replying { reply: Reply::NotApplied { covers: claim.covers() } }
            }
            _ => Worker::Idle,
        };
    }

    pub(super) fn reply(state: &mut State, index: WorkerIndex) {
        let Worker::Replying { reply } = state.workers[index] else {
            unreachable!("only a prepared reply goes out")
        };
        match reply {
            Reply::Success { .. } => state.history.success_replied = true,
            Reply::NotApplied { covers } => state.history.denied = state.history.denied.max(covers),
        }
        state.workers[index] = Worker::Idle;
    }

    /// Whether a probe would be worth asking: there is a doubt, and the answer would count.
    pub(super) fn may_ask(&self, state: &State) -> bool {
        self.upstream == Upstream::Probed
            && matches!(state.ledger.record, Record::InDoubt { .. })
            && (state.world.visible || self.no_counts(state))
    }

    /// Rule 5: a "no" counts only if no claim can send any more and the quiet time has passed since.
    fn no_counts(&self, state: &State) -> bool {
        match self.variant {
            Variant::NaiveProbe => state.nothing_can_arrive() && state.probe_sees_everything(),
            Variant::StaleProbe => state.every_claim_ended(),
            _ => state.time.quiet,
        }
    }

    pub(super) fn ask(state: &mut State, index: WorkerIndex) {
        let Record::InDoubt { newest } = state.ledger.record else { unreachable!("only a doubt is probed") };
        let doubt = Doubt { newest, epoch: state.ledger.epoch };
        state.workers[index] = Worker::Probed { doubt, found: state.world.visible };
    }

    pub(super) fn conclude(&self, state: &mut State, index: WorkerIndex) {
        let Worker::Probed { doubt, found } = state.workers[index] else {
            unreachable!("only an asked question is concluded")
        };
        self.record_probe(state, doubt, found);
        state.workers[index] = Worker::Idle;
    }

    pub(super) fn resend(&self, state: &mut State, index: WorkerIndex) {
        let nonce = next_nonce(state);
        state.workers[index] = Worker::Claimed { claim: self.claim(state, nonce) };
    }

    /// The process dies, its lock with it, and another takes its place.
    pub(super) fn crash(state: &mut State, index: WorkerIndex) {
        state.crashes_left -= 1;
        if let Some(nonce) = state.workers[index].nonce() {
            state.time.ended.insert(nonce);
        }
        state.workers[index] = Worker::Idle;
    }

    pub(super) fn send_unclaimed(state: &mut State, index: WorkerIndex) {
        let nonce = next_nonce(state);
        state.time.quiet = false;
        state.world.in_transit[nonce.index()] += 1;
        state.workers[index] = Worker::SentUnclaimed { nonce };
    }

    pub(super) fn claim_what_was_sent(&self, state: &mut State, index: WorkerIndex) {
        let Worker::SentUnclaimed { nonce } = state.workers[index] else {
            unreachable!("only what was sent unclaimed is claimed afterwards")
        };
        state.workers[index] = if self.may_claim(state) && !state.ledger.fenced {
            Worker::Waiting { claim: self.claim(state, nonce) }
        } else {
            Worker::Idle
        };
    }

    pub(super) fn send_again_unasked(state: &mut State, index: WorkerIndex) {
        let Worker::Waiting { claim } = state.workers[index] else {
            unreachable!("only a waiting worker has a connection to lose")
        };
        state.world.in_transit[claim.nonce.index()] += 1;
    }
}

fn next_nonce(state: &mut State) -> Nonce {
    let nonce = Nonce(state.history.claims);
    state.history.claims += 1;
    nonce
}

impl Claim {
    /// How many claims a "not applied" of this one speaks for: itself and all before it.
    fn covers(self) -> u8 {
        self.nonce.0 + 1
    }
}
