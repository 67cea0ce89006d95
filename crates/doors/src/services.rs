//! The services that all doors of one process share: the gate, the policy, the clock, the calls in flight.

use crate::delivery_batch::DeliveryBatch;
use crate::in_flight::InFlight;
use crate::query::Backends;
use crate::query::active_confirms::ActiveConfirms;
use crate::remote_gate::RemoteGate;
use crate::runtime::RuntimeClock;
use semel_core::digest::{Digest, Secret};
use semel_core::policy::{Mode, Policy};
use semel_gate::Gate;
use semel_gate::counts;
use semel_gate::look::SILENCE_MAX;
use semel_gate::pending_delivery::PendingDelivery;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub struct Services {
    /// Without a ledger effects are refused, and reads pass (rule 16).
    pub gate: Result<Gate, String>,
    pub policy: Policy,
    /// Instead of a gate of this process: the ledger is behind a server on another machine.
    pub remote: Option<RemoteGate>,
    pub clock: RuntimeClock,
    pub in_flight: InFlight,
    pub(crate) delivery_batch: DeliveryBatch,
    /// Backends of probes and confirms.
    pub backends: Arc<Backends>,
    pub active_confirms: ActiveConfirms,
    /// How long an upstream may be silent where its rule has no timeout.
    pub silence_max: Duration,
}

impl Services {
    pub fn new(gate: Result<Gate, String>, policy: Policy, clock: RuntimeClock) -> Services {
        Services {
            gate,
            policy,
            remote: None,
            clock,
            in_flight: InFlight::default(),
            delivery_batch: DeliveryBatch::default(),
            backends: Arc::default(),
            active_confirms: ActiveConfirms::default(),
            silence_max: SILENCE_MAX,
        }
    }

    #[must_use]
    pub fn with_backends(self, backends: Backends) -> Services {
        Services { backends: Arc::new(backends), ..self }
    }

    #[must_use]
    pub fn with_remote(self, remote: RemoteGate) -> Services {
        Services { remote: Some(remote), ..self }
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
