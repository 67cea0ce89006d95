//! What every door opens into: the gate, the policy, and who is still at work.

use crate::ask::Means;
use crate::ask::following::Following;
use crate::busy::Busy;
use crate::llm::Lives;
use crate::marks::Marks;
use crate::runtime::{RuntimeClock, ServedGate};
use semel_core::digest::{Digest, Secret};
use semel_core::policy::{Mode, Policy};
use semel_gate::counts;
use semel_gate::pending_delivery::PendingDelivery;
use std::sync::Arc;

/// Shared by all doors of one process.
#[derive(Debug)]
pub struct Hall {
    /// Without a ledger effects are refused, and reads pass (rule 16).
    pub gate: Result<ServedGate, String>,
    pub policy: Policy,
    pub clock: RuntimeClock,
    pub busy: Busy,
    pub(crate) marks: Marks,
    /// What probes, confirms and undos reach.
    pub means: Arc<Means>,
    /// Successes whose truth is being asked for.
    pub following: Following,
    /// Answers of models that are coming.
    pub lives: Arc<Lives>,
}

impl Hall {
    pub fn new(gate: Result<ServedGate, String>, policy: Policy, clock: RuntimeClock) -> Hall {
        Hall {
            gate,
            policy,
            clock,
            busy: Busy::default(),
            marks: Marks::default(),
            means: Arc::default(),
            following: Following::default(),
            lives: Arc::default(),
        }
    }

    #[must_use]
    pub fn with_means(self, means: Means) -> Hall {
        Hall { means: Arc::new(means), ..self }
    }

    /// The ledger's secret, if there is a ledger.
    pub fn secret(&self) -> Option<&Secret> {
        self.gate.as_ref().ok().map(|gate| gate.ledger.secret())
    }

    /// An answer of this record is on its way out, as long as the value lives.
    pub fn begin_delivery(&self, record: Digest) -> Option<PendingDelivery> {
        self.gate.as_ref().ok().map(|gate| gate.pending_deliveries.begin(record))
    }

    /// A call that passes without asking the gate is counted all the same.
    pub fn passed_through(&self, tenant: &str, door: counts::DoorKind) {
        if let Ok(gate) = &self.gate {
            gate.counts.passed_through(tenant, door);
        }
    }

    /// Decisions go to the journal alone, and nobody sees a difference.
    pub fn observes(&self) -> bool {
        self.policy.mode == Mode::Observe
    }
}
