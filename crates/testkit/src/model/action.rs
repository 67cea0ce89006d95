//! What can happen next. Whether it may is decided here; what it does is in `ledger`, `gate` and `world`.

use super::Lifecycle;
use super::record::{ModelNonce, Record};
use super::state::{KeyLife, ModelState, WORKERS};
use super::variants::{UpstreamVariant, Variant};
use super::worker::{ModelAnswer, ModelWorker};

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
pub enum ModelAction {
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
    Apply(ModelNonce),
    Refuse(ModelNonce),
    Lose(ModelNonce),
    ShowToProbes,
    // Time passes.
    PassLastMoment(ModelNonce),
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
    pub(super) fn possible(&self, state: &ModelState, actions: &mut Vec<ModelAction>) {
        for worker in 0..WORKERS {
            self.possible_for_worker(state, worker, actions);
        }
        self.possible_for_world(state, actions);
        self.possible_for_time(state, actions);
        self.possible_for_ledger(state, actions);
    }

    fn possible_for_worker(&self, state: &ModelState, index: WorkerIndex, actions: &mut Vec<ModelAction>) {
        let worker = state.workers[index];
        if state.crashes_left > 0 && worker != ModelWorker::Idle {
            actions.push(ModelAction::Crash(index));
        }
        match worker {
            ModelWorker::Idle => {
                if state.deliveries_left > 0 {
                    actions.push(ModelAction::Receive(index));
                }
                if self.may_ask(state) {
                    actions.push(ModelAction::Ask(index));
                }
                if self.may_resend(state) {
                    actions.push(ModelAction::Resend(index));
                }
            }
            ModelWorker::Admitted { .. } => {
                if self.variant == Variant::SendBeforeClaim
                    && self.may_claim(state)
                    && self.claims_remain(state)
                {
                    actions.push(ModelAction::SendUnclaimed(index));
                } else if !self.may_claim(state) || self.claims_remain(state) {
                    actions.push(ModelAction::Decide(index));
                }
            }
            ModelWorker::SentUnclaimed { .. } => actions.push(ModelAction::ClaimWhatWasSent(index)),
            ModelWorker::Claimed { .. } => actions.push(ModelAction::Check(index)),
            ModelWorker::Checked { .. } => {
                actions.extend([ModelAction::Send(index), ModelAction::FailToSend(index)])
            }
            ModelWorker::Waiting { claim } => {
                actions.push(ModelAction::Abort(index));
                if self.variant == Variant::TransparentResend
                    && state.world.in_transit[claim.nonce.index()] < 2
                {
                    actions.push(ModelAction::SendAgainUnasked(index));
                }
            }
            ModelWorker::Answered { answer, .. } => {
                actions.push(ModelAction::Settle(index));
                if self.variant == Variant::ReplyBeforeSettle
                    && answer == ModelAnswer::Success
                    && !state.history.success_replied
                {
                    actions.push(ModelAction::ReplyEarly(index));
                }
            }
            ModelWorker::Replying { .. } => actions.push(ModelAction::Reply(index)),
            ModelWorker::Probed { .. } => actions.push(ModelAction::Conclude(index)),
        }
    }

    fn possible_for_world(&self, state: &ModelState, actions: &mut Vec<ModelAction>) {
        for nonce in state.nonces().filter(|nonce| state.world.in_transit[nonce.index()] > 0) {
            actions.extend([ModelAction::Apply(nonce), ModelAction::Lose(nonce)]);
            // An upstream that remembers the key repeats its success.
            if !state.world.keys.contains(self.downstream_key(nonce)) {
                actions.push(ModelAction::Refuse(nonce));
            }
        }
        if self.upstream == UpstreamVariant::Probed && !state.probe_sees_everything() {
            actions.push(ModelAction::ShowToProbes);
        }
    }

    fn possible_for_time(&self, state: &ModelState, actions: &mut Vec<ModelAction>) {
        for nonce in state.nonces().filter(|&nonce| !state.time.ended.contains(nonce)) {
            actions.push(ModelAction::PassLastMoment(nonce));
        }
        // That this waits for stray requests and for the probe's view *is* the assumption about `quiet`: it
        // is configured longer than a pause after the last check, a request's travel and the view's lag.
        if !state.time.quiet
            && state.every_claim_ended()
            && state.nothing_can_arrive()
            && state.probe_sees_everything()
        {
            actions.push(ModelAction::FallQuiet);
        }
        if self.upstream == UpstreamVariant::Keyed && state.history.claims > 0 {
            // The margin is likewise longer than a pause after the last check and a request's travel.
            let may_age = match state.time.key_life {
                KeyLife::Young => true,
                KeyLife::Closing => state.nothing_can_arrive(),
                KeyLife::Over => false,
            };
            if may_age {
                actions.push(ModelAction::AgeKey);
            }
        }
    }

    fn possible_for_ledger(&self, state: &ModelState, actions: &mut Vec<ModelAction>) {
        match state.ledger.record {
            Record::InFlight { claim, .. } => {
                actions.push(ModelAction::Lapse(LapseCause::Deadline));
                if !state.workers.iter().any(|worker| worker.nonce() == Some(claim.nonce)) {
                    actions.push(ModelAction::Lapse(LapseCause::HolderDead));
                }
            }
            Record::Applied { reply_kept: true, .. } => actions.push(ModelAction::Prune),
            Record::InDoubt { .. } if self.variant == Variant::PruneInDoubt => {
                actions.push(ModelAction::Prune)
            }
            Record::Absent | Record::InDoubt { .. } | Record::Applied { .. } | Record::NotApplied { .. } => {}
        }
        if state.failovers_left > 0 && state.ledger.before_claim.is_some() {
            actions.push(ModelAction::FailOver);
        }
        if !state.ledger.fenced {
            actions.push(ModelAction::Cancel);
        } else if state.history.drained_at.is_none()
            && state.time.quiet
            && !matches!(state.ledger.record, Record::InFlight { .. })
        {
            actions.push(ModelAction::ReportDrained);
        }
    }
}
