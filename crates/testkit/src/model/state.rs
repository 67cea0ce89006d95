//! Everything that can differ between two moments: the ledger, the workers, the world, time, and what an
//! all-seeing observer remembers.

use super::bounds::Bounds;
use super::record::{ModelLedger, ModelNonce, Nonces, Record};
use super::worker::ModelWorker;

/// More claims than any bound asks for; it sizes the arrays.
pub const ATTEMPTS_MAX: usize = 4;

/// The two gate processes. More of them show nothing new about a single intent key: one sends and one
/// resolves, and a third would stand where one of these can stand after its crash.
pub const WORKERS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModelWorld {
    /// How often the world changed. One time too many is as bad as ten, so it stops at two.
    pub effects: u8,
    /// Which claims changed it.
    pub effects_of: Nonces,
    /// Whether a probe can see the effect yet.
    pub visible: bool,
    /// Requests that may still arrive, per claim.
    pub in_transit: [u8; ATTEMPTS_MAX],
    /// Idempotency keys that the upstream remembers, each named by the claim that minted it.
    pub keys: Nonces,
}

/// The age of the upstream's memory of our idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyLife {
    Young,
    /// Nearer to its end than the margin: nothing new may rely upon it.
    Closing,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModelTime {
    /// Claims whose holder is proven dead, has itself said that it stopped, or is past its last moment for
    /// sending.
    pub ended: Nonces,
    /// The quiet time has elapsed since every claim ended.
    pub quiet: bool,
    pub key_life: KeyLife,
}

/// What the properties need to know of the past. No rule reads it, but for `claims`, which mints nonces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct History {
    /// Claims made so far.
    pub claims: u8,
    /// Claims that no commit has closed.
    pub open: Nonces,
    pub highest_number: u8,
    pub numbers_rose: bool,
    pub success_replied: bool,
    /// A caller was told that none of the first so many claims had an effect.
    pub denied: u8,
    pub pruned: bool,
    /// The effects at the moment when a cancel reported that it had drained.
    pub drained_at: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModelState {
    pub ledger: ModelLedger,
    pub workers: [ModelWorker; WORKERS],
    pub world: ModelWorld,
    pub time: ModelTime,
    pub history: History,
    pub deliveries_left: u8,
    pub crashes_left: u8,
    pub failovers_left: u8,
}

impl ModelState {
    pub(super) fn initial(bounds: Bounds) -> Self {
        Self {
            ledger: ModelLedger {
                record: Record::Absent,
                of_older_epoch: false,
                epoch: 0,
                before_claim: None,
                fenced: false,
            },
            workers: [ModelWorker::Idle; WORKERS],
            world: ModelWorld {
                effects: 0,
                effects_of: Nonces::default(),
                visible: false,
                in_transit: [0; ATTEMPTS_MAX],
                keys: Nonces::default(),
            },
            time: ModelTime { ended: Nonces::default(), quiet: true, key_life: KeyLife::Young },
            history: History {
                claims: 0,
                open: Nonces::default(),
                highest_number: 0,
                numbers_rose: true,
                success_replied: false,
                denied: 0,
                pruned: false,
                drained_at: None,
            },
            deliveries_left: bounds.deliveries,
            crashes_left: bounds.crashes,
            failovers_left: bounds.failovers,
        }
    }

    pub(super) fn nonces(&self) -> impl Iterator<Item = ModelNonce> + use<> {
        (0..self.history.claims).map(ModelNonce)
    }

    pub(super) fn nothing_can_arrive(&self) -> bool {
        self.world.in_transit.iter().all(|&requests| requests == 0)
            && !self.workers.iter().any(|worker| matches!(worker, ModelWorker::Checked { .. }))
    }

    pub(super) fn every_claim_ended(&self) -> bool {
        self.nonces().all(|nonce| self.time.ended.contains(nonce))
    }

    pub(super) fn probe_sees_everything(&self) -> bool {
        self.world.visible || self.world.effects == 0
    }
}
