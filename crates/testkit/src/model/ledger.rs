//! The commits: who may claim, what a settlement does to the record, and how the store fails.

use super::Lifecycle;
use super::record::{Disproof, ModelClaim, ModelDoubt, ModelEvidence, ModelNonce, Record};
use super::state::{KeyLife, ModelState};
use super::variants::{UpstreamVariant, Variant};
use super::worker::ModelAnswer;

impl Lifecycle {
    pub(super) fn claims_remain(&self, state: &ModelState) -> bool {
        state.history.claims < self.bounds.attempts
    }

    /// Whether the record, taken at its word, lets a caller start an attempt. The fence is another matter.
    pub(super) fn may_claim(&self, state: &ModelState) -> bool {
        match state.ledger.record {
            Record::Absent => !state.ledger.of_older_epoch,
            Record::NotApplied { .. } => {
                !state.ledger.of_older_epoch || self.variant == Variant::EpochGuardsAbsenceOnly
            }
            Record::InFlight { .. } => self.variant == Variant::LeaseReexecute,
            Record::InDoubt { .. } | Record::Applied { .. } => false,
        }
    }

    /// Whether the resolver may start another attempt from doubt.
    pub(super) fn may_resend(&self, state: &ModelState) -> bool {
        let key_is_good = state.time.key_life == KeyLife::Young || self.relies_on_lapsed_key();
        let run_allows = !state.ledger.fenced || self.variant == Variant::ResolverIgnoresCancel;
        self.upstream == UpstreamVariant::Keyed
            && matches!(state.ledger.record, Record::InDoubt { .. })
            && self.claims_remain(state)
            && key_is_good
            && run_allows
    }

    pub(super) fn relies_on_lapsed_key(&self) -> bool {
        self.variant == Variant::DownstreamKeyLifeLapsed
    }

    /// Commits a claim. The caller has looked at the record in this same commit: that is what a
    /// compare-and-swap on its revision comes to.
    pub(super) fn claim(&self, state: &mut ModelState, nonce: ModelNonce) -> ModelClaim {
        let before = state.ledger.record;
        let (newest, earlier_unproven) = match before {
            Record::Absent => (None, false),
            Record::NotApplied { newest, .. } => (newest, false),
            // A doubt without a known claim is a doubt about a lost one.
            Record::InDoubt { newest } => (newest, true),
            Record::InFlight { claim, .. } => (Some(claim), true),
            Record::Applied { .. } => unreachable!("an applied effect is never claimed"),
        };
        let number = number_of(newest) + 1;
        let claim = ModelClaim { number, nonce };
        commit(state, Record::InFlight { claim, earlier_unproven });
        state.ledger.before_claim = Some(before);
        state.time.quiet = false;
        if !earlier_unproven {
            // Nothing earlier can have used the key, so its life begins with this attempt.
            state.time.key_life = KeyLife::Young;
        }
        state.history.open.insert(nonce);
        state.history.numbers_rose &= number > state.history.highest_number;
        state.history.highest_number = state.history.highest_number.max(number);
        claim
    }

    /// Records an attempt's answer. A claim that is not the open one can only add evidence of success.
    pub(super) fn settle(&self, state: &mut ModelState, claim: ModelClaim, answer: ModelAnswer) {
        let is_open = matches!(state.ledger.record, Record::InFlight { claim: open, .. } if open == claim);
        let overwrites = is_open || self.variant == Variant::SettleWithoutCompareAndSwap;
        let earlier_unproven = matches!(state.ledger.record, Record::InFlight { earlier_unproven: true, .. });
        let settled = match answer {
            ModelAnswer::Success if is_open => {
                Record::Applied { evidence: ModelEvidence::Reported, reply_kept: true }
            }
            ModelAnswer::Success => match state.ledger.record {
                Record::Applied { .. } => return,
                _ => Record::Applied { evidence: ModelEvidence::LateAnswer, reply_kept: true },
            },
            _ if !overwrites => return,
            ModelAnswer::Refused
                if earlier_unproven && self.variant != Variant::FailureIgnoresPriorAttempt =>
            {
                Record::InDoubt { newest: Some(claim) }
            }
            ModelAnswer::NeverSent
                if earlier_unproven && self.variant != Variant::ReleaseIgnoresPriorAttempt =>
            {
                Record::InDoubt { newest: Some(claim) }
            }
            ModelAnswer::Refused => Record::NotApplied { newest: Some(claim), disproof: Disproof::Refused },
            ModelAnswer::NeverSent => {
                Record::NotApplied { newest: Some(claim), disproof: Disproof::NeverSent }
            }
        };
        close_and_commit(state, settled);
    }

    /// Puts an unanswered attempt in doubt. A clock may do no more than this.
    pub(super) fn lapse(&self, state: &mut ModelState) {
        let Record::InFlight { claim, .. } = state.ledger.record else {
            unreachable!("only what is in flight lapses")
        };
        let lapsed = if self.variant == Variant::TimeoutRelease {
            Record::NotApplied { newest: Some(claim), disproof: Disproof::Timeout }
        } else {
            Record::InDoubt { newest: Some(claim) }
        };
        close_and_commit(state, lapsed);
    }

    pub(super) fn record_probe(&self, state: &mut ModelState, asked: ModelDoubt, found: bool) {
        let epoch = match self.variant {
            Variant::ProbeOutlivesEpoch => asked.epoch,
            _ => state.ledger.epoch,
        };
        match (found, state.ledger.record) {
            (true, Record::Applied { .. }) => {}
            (true, _) => {
                close_and_commit(state, Record::Applied { evidence: ModelEvidence::Probe, reply_kept: false })
            }
            // The doubt that was asked about must still be the doubt that is there.
            (false, Record::InDoubt { newest }) if asked == (ModelDoubt { newest, epoch }) => {
                close_and_commit(state, Record::NotApplied { newest, disproof: Disproof::Probe });
            }
            (false, _) => {}
        }
    }

    /// Writes down that a record of an older epoch may lack a claim.
    pub(super) fn doubt_older_epoch(state: &mut ModelState) {
        let newest = match state.ledger.record {
            Record::NotApplied { newest, .. } => newest,
            _ => None,
        };
        close_and_commit(state, Record::InDoubt { newest });
    }

    pub(super) fn prune(&self, state: &mut ModelState) {
        state.history.pruned = true;
        match state.ledger.record {
            Record::Applied { evidence, .. } if self.variant != Variant::PruneToAbsent => {
                commit(state, Record::Applied { evidence, reply_kept: false });
            }
            _ => commit(state, Record::Absent),
        }
    }

    pub(super) fn fail_over(&self, state: &mut ModelState) {
        let survivor =
            state.ledger.before_claim.take().expect("a failover is modelled only where it loses a claim");
        state.failovers_left -= 1;
        state.ledger.record = survivor;
        if self.variant != Variant::FailoverLosesClaim {
            state.ledger.of_older_epoch = true;
            state.ledger.epoch += 1;
        }
        // Numbers are promised to rise within an epoch; across epochs the nonce tells claims apart.
        state.history.open = Default::default();
        state.history.highest_number = match survivor {
            Record::InDoubt { newest } | Record::NotApplied { newest, .. } => number_of(newest),
            Record::InFlight { claim, .. } => claim.number,
            Record::Absent | Record::Applied { .. } => 0,
        };
    }
}

fn number_of(newest: Option<ModelClaim>) -> u8 {
    newest.map_or(0, |claim| claim.number)
}

fn commit(state: &mut ModelState, record: Record) {
    state.ledger.record = record;
    state.ledger.of_older_epoch = false;
    state.ledger.before_claim = None;
}

/// Commits a record in which no attempt is open.
fn close_and_commit(state: &mut ModelState, record: Record) {
    if let Record::InFlight { claim, .. } = state.ledger.record {
        state.history.open.remove(claim.nonce);
    }
    commit(state, record);
}
