//! The network and the upstream: what becomes of a request.

use super::Lifecycle;
use super::record::{ModelNonce, Nonces};
use super::state::{KeyLife, ModelState};
use super::variants::{UpstreamVariant, Variant};
use super::worker::{ModelAnswer, ModelWorker};

impl Lifecycle {
    /// The idempotency key that a claim sends: the effect's own, named after its first claim.
    pub(super) fn downstream_key(&self, nonce: ModelNonce) -> ModelNonce {
        match self.variant {
            Variant::DownstreamKeyPerAttempt => nonce,
            _ => ModelNonce(0),
        }
    }

    pub(super) fn apply(&self, state: &mut ModelState, nonce: ModelNonce) {
        state.world.in_transit[nonce.index()] -= 1;
        let key = self.downstream_key(nonce);
        if !state.world.keys.contains(key) {
            state.world.effects = (state.world.effects + 1).min(2);
            state.world.effects_of.insert(nonce);
            // Only a probe can lag behind the truth, so where nobody probes there is nothing to wait for.
            state.world.visible |= self.upstream != UpstreamVariant::Probed;
            if self.upstream == UpstreamVariant::Keyed {
                state.world.keys.insert(key);
            }
        }
        answer(state, nonce, ModelAnswer::Success);
    }

    pub(super) fn refuse(state: &mut ModelState, nonce: ModelNonce) {
        state.world.in_transit[nonce.index()] -= 1;
        answer(state, nonce, ModelAnswer::Refused);
    }

    pub(super) fn lose(state: &mut ModelState, nonce: ModelNonce) {
        state.world.in_transit[nonce.index()] -= 1;
    }

    pub(super) fn age_key(state: &mut ModelState) {
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
fn answer(state: &mut ModelState, nonce: ModelNonce, answer: ModelAnswer) {
    for worker in &mut state.workers {
        if let ModelWorker::Waiting { claim } = *worker
            && claim.nonce == nonce
        {
            *worker = ModelWorker::Answered { claim, answer };
        }
    }
}
