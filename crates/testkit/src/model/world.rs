//! The network and the upstream: what becomes of a request.

use super::Lifecycle;
use super::record::{Nonce, Nonces};
use super::state::{KeyLife, State};
use super::variants::{Upstream, Variant};
use super::worker::{Answer, Worker};

impl Lifecycle {
    /// The idempotency key that a claim sends: the effect's own, named after its first claim.
    pub(super) fn downstream_key(&self, nonce: Nonce) -> Nonce {
        match self.variant {
            Variant::DownstreamKeyPerAttempt => nonce,
            _ => Nonce(0),
        }
    }

    pub(super) fn apply(&self, state: &mut State, nonce: Nonce) {
        state.world.in_transit[nonce.index()] -= 1;
        let key = self.downstream_key(nonce);
        if !state.world.keys.contains(key) {
            state.world.effects = (state.world.effects + 1).min(2);
            state.world.effects_of.insert(nonce);
            // Only a probe can lag behind the truth, so where nobody probes there is nothing to wait for.
            state.world.visible |= self.upstream != Upstream::Probed;
            if self.upstream == Upstream::Keyed {
                state.world.keys.insert(key);
            }
        }
        answer(state, nonce, Answer::Success);
    }

    pub(super) fn refuse(state: &mut State, nonce: Nonce) {
        state.world.in_transit[nonce.index()] -= 1;
        answer(state, nonce, Answer::Refused);
    }

    pub(super) fn lose(state: &mut State, nonce: Nonce) {
        state.world.in_transit[nonce.index()] -= 1;
    }

    pub(super) fn age_key(state: &mut State) {
        state.time.key_life = match state.time.key_life {
            KeyLife::Young => KeyLife::Closing,
            KeyLife::Closing | KeyLife::Over => {
                state.world.keys = Nonces::default();
                KeyLife::Over
            }
        };
    }
}

/// An answer reaches its sender if that one still listens. How long it travels is how long the sender takes
/// for its next step, so answers need no transit of their own.
fn answer(state: &mut State, nonce: Nonce, answer: Answer) {
    for worker in &mut state.workers {
        if let Worker::Waiting { claim } = *worker
            && claim.nonce == nonce
        {
            *worker = Worker::Answered { claim, answer };
        }
    }
}
