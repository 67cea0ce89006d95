//! What can happen next. Whether it may is decided here; what it does is in `ledger`, `gate` and `world`.

use super::Lifecycle;
use super::record::{Nonce, Record};
use super::state::{KeyLife, State, WORKERS};
use super::variants::{Upstream, Variant};
use super::worker::{Answer, Worker};

/// An index into the workers.
pub type WorkerIndex = usize;

/// What entitles an observer to put an unanswered attempt in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LapseCause {
    /// Its deadline passed, by some clock. Clocks may be wrong, so this can happen at any time.
    Deadline,
    /// The lock that dies with its holder is free.
    HolderDead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    // A gate worker's own steps.
    Receive(WorkerIndex),
    Decide(WorkerIndex),
    Check(WorkerIndex),
    Send(WorkerIndex),
    FailToSend(WorkerIndex),
    Abort(WorkerIndex),
    Settle(WorkerIndex),
    Reply(WorkerIndex),
    Ask(WorkerIndex),
    Conclude(WorkerIndex),
    Resend(WorkerIndex),
    Crash(WorkerIndex),
    // What the network and the upstream do with a request.
    Apply(Nonce),
    Refuse(Nonce),
    Lose(Nonce),
    ShowToProbes,
    // Time passes.
    PassLastMoment(Nonce),
    FallQuiet,
    AgeKey,
    // Anyone's commits to the ledger, and its failures.
    Lapse(LapseCause),
    Prune,
    FailOver,
    Cancel,
    ReportDrained,
    // Steps that only a broken variant takes.
    SendUnclaimed(WorkerIndex),
    ClaimWhatWasSent(WorkerIndex),
    SendAgainUnasked(WorkerIndex),
    ReplyEarly(WorkerIndex),
}

impl Lifecycle {
    pub(super) fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        for worker in 0..WORKERS {
            self.possible_for_worker(state, worker, actions);
        }
        self.possible_for_world(state, actions);
        self.possible_for_time(state, actions);
        self.possible_for_ledger(state, actions);
    }

    fn possible_for_worker(&self, state: &State, index: WorkerIndex, actions: &mut Vec<Action>) {
        let worker = state.workers[index];
        if state.crashes_left > 0 && worker != Worker::Idle {
            actions.push(Action::Crash(index));
        }
        match worker {
            Worker::Idle => {
                if state.deliveries_left > 0 {
                    actions.push(Action::Receive(index));
                }
                if self.may_ask(state) {
                    actions.push(Action::Ask(index));
                }
                if self.may_resend(state) {
                    actions.push(Action::Resend(index));
                }
            }
            Worker::Admitted { .. } => {
                if self.variant == Variant::SendBeforeClaim
                    && self.may_claim(state)
                    && self.claims_remain(state)
                {
                    actions.push(Action::SendUnclaimed(index));
                } else if !self.may_claim(state) || self.claims_remain(state) {
                    actions.push(Action::Decide(index));
                }
            }
            Worker::SentUnclaimed { .. } => actions.push(Action::ClaimWhatWasSent(index)),
            Worker::Claimed { .. } => actions.push(Action::Check(index)),
            Worker::Checked { .. } => actions.extend([Action::Send(index), Action::FailToSend(index)]),
            Worker::Waiting { claim } => {
                actions.push(Action::Abort(index));
                if self.variant == Variant::TransparentResend
                    && state.world.in_transit[claim.nonce.index()] < 2
                {
                    actions.push(Action::SendAgainUnasked(index));
                }
            }
            Worker::Answered { answer, .. } => {
                actions.push(Action::Settle(index));
                if self.variant == Variant::ReplyBeforeSettle
                    && answer == Answer::Success
                    && !state.history.success_replied
                {
                    actions.push(Action::ReplyEarly(index));
                }
            }
            Worker::Replying { .. } => actions.push(Action::Reply(index)),
            Worker::Probed { .. } => actions.push(Action::Conclude(index)),
        }
    }

    fn possible_for_world(&self, state: &State, actions: &mut Vec<Action>) {
        for nonce in state.nonces().filter(|nonce| state.world.in_transit[nonce.index()] > 0) {
            actions.extend([Action::Apply(nonce), Action::Lose(nonce)]);
            // An upstream that remembers the key repeats its success.
            if !state.world.keys.contains(self.downstream_key(nonce)) {
                actions.push(Action::Refuse(nonce));
            }
        }
        if self.upstream == Upstream::Probed && !state.probe_sees_everything() {
            actions.push(Action::ShowToProbes);
        }
    }

    fn possible_for_time(&self, state: &State, actions: &mut Vec<Action>) {
        for nonce in state.nonces().filter(|&nonce| !state.time.ended.contains(nonce)) {
            actions.push(Action::PassLastMoment(nonce));
        }
        // That this waits for stray requests and for the probe's view *is* the assumption about `quiet`: it
        // is configured longer than a pause after the last check, a request's travel and the view's lag.
        if !state.time.quiet
            && state.every_claim_ended()
            && state.nothing_can_arrive()
            && state.probe_sees_everything()
        {
            actions.push(Action::FallQuiet);
        }
        if self.upstream == Upstream::Keyed && state.history.claims > 0 {
            // The margin is likewise longer than a pause after the last check and a request's travel.
            let may_age = match state.time.key_life {
                KeyLife::Young => true,
                KeyLife::Closing => state.nothing_can_arrive(),
                KeyLife::Over => false,
            };
            if may_age {
                actions.push(Action::AgeKey);
            }
        }
    }

    fn possible_for_ledger(&self, state: &State, actions: &mut Vec<Action>) {
        match state.ledger.record {
            Record::InFlight { claim, .. } => {
                actions.push(Action::Lapse(LapseCause::Deadline));
                if !state.workers.iter().any(|worker| worker.nonce() == Some(claim.nonce)) {
                    actions.push(Action::Lapse(LapseCause::HolderDead));
                }
            }
            Record::Applied { reply_kept: true, .. } => actions.push(Action::Prune),
            Record::InDoubt { .. } if self.variant == Variant::PruneInDoubt => actions.push(Action::Prune),
            Record::Absent | Record::InDoubt { .. } | Record::Applied { .. } | Record::NotApplied { .. } => {}
        }
        if state.failovers_left > 0 && state.ledger.before_claim.is_some() {
            actions.push(Action::FailOver);
        }
        if !state.ledger.fenced {
            actions.push(Action::Cancel);
        } else if state.history.drained_at.is_none()
            && state.time.quiet
            && !matches!(state.ledger.record, Record::InFlight { .. })
        {
            actions.push(Action::ReportDrained);
        }
    }
}
