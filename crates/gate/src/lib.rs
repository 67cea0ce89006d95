//! Acts: one path, [`Gate::pass`]; waiting, lapsing, probing, cancelling.
//!
//! The gate refuses to know protocols and SQL. Doors hand it an intent, a rule and an [`upstream::Upstream`]; it hands
//! back an answer.
//!
//! It is async and brings no runtime. `semel run` polls its one future on its own thread, over parts that block; a
//! server drives it on a runtime of its own. A blocking gate beside an async one would be two paths through claiming
//! and settling, and the tests would cover the other one. A runtime in every process would be paid for by every
//! guarded command. So the gate names no runtime's types, and waiting for a twin is polling by the clock.
pub mod agent_ruling;
mod attempt;
mod begin;
mod call;
mod caller_key;
pub mod clock;
mod clock_jump;
pub mod confirm;
pub mod counts;
mod dry_run;
mod error;
pub mod events;
mod fences;
pub mod look;
mod lookalike;
mod pass;
pub mod pending_delivery;
mod pending_settlement;
mod probe;
mod reply;
mod server_clock;
mod settle;
mod step;
mod survey;
pub mod undo;
pub mod upstream;

pub use attempt::SEND_MARGIN;
pub use begin::{BeginAnswer, ClaimHandle, ClaimHolder, HandedTo, SettleAnswer, Settlement};
pub use dry_run::dry_run_of_read;
pub use error::Error;
pub use pass::unrecorded;
pub use reply::{GivenReply, Passed};

use clock::Clock;
use clock_jump::ClockJumps;
use counts::Counts;
use events::{GateEvent, Observer};
use pending_delivery::PendingDeliveries;
use pending_settlement::PendingSettlements;
use semel_core::effect::Effect;
use semel_core::policy::Mode;
use semel_ledger::counts::Day;
use semel_ledger::{Ledger, RecordSnapshot, failpoint};
use server_clock::ServerClock;
use std::sync::Arc;
use std::time::Duration;

/// The engine: a ledger, a clock, and the one path between them.
#[derive(Debug)]
pub struct Gate {
    pub ledger: Ledger,
    pub clock: Arc<dyn Clock>,
    pub mode: Mode,
    pub counts: Arc<Counts>,
    pub observer: Option<Arc<dyn Observer>>,
    pub pending_deliveries: PendingDeliveries,
    pending_settlements: PendingSettlements,
    clock_jumps: ClockJumps,
    server_clock: ServerClock,
}

impl Gate {
    pub fn new(ledger: Ledger, clock: impl Clock, mode: Mode) -> Self {
        let counts = Arc::<Counts>::default();
        let observer: Arc<Counts> = Arc::clone(&counts);
        let ledger = ledger.observed_by(observer);
        Gate {
            ledger,
            mode,
            counts,
            observer: None,
            pending_deliveries: PendingDeliveries::default(),
            pending_settlements: PendingSettlements::default(),
            clock_jumps: ClockJumps::watch_from(clock.now(), clock.elapsed()),
            server_clock: ServerClock::compared_at(clock.now(), clock.elapsed()),
            clock: Arc::new(clock),
        }
    }

    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        Gate { observer: Some(observer), ..self }
    }

    /// Whether what it has recorded may be lost in a crash of the ledger's server.
    pub fn is_best_effort(&self) -> bool {
        !self.ledger.store().is_durable()
    }

    /// Adds what was counted since the last time to the ledger's own counts.
    pub async fn write_counts(&self) -> Result<(), Error> {
        Ok(self.counts.write(&self.ledger, Day::of(self.clock.now())).await?)
    }

    /// Whether a probe's "no" may count that does so after `quiet`: not as long as the clock has jumped (rule 2), or is
    /// not that of the others.
    pub async fn may_count_no(&self, effect: &Effect, quiet: Duration) -> bool {
        self.clock_jumps.none_for(quiet, self.clock.now(), self.clock.elapsed())
            && effect.has_been_quiet(quiet, self.clock.now(), self.clock.uptime())
            && self.check_clock().await.is_ok()
    }

    pub(crate) fn emit(&self, event: &GateEvent<'_>) {
        self.counts.observe(event);
        if let Some(observer) = &self.observer {
            observer.observe(event);
        }
    }

    /// Marks an answer as having reached its caller.
    pub async fn delivered(&self, delivery: &RecordSnapshot) -> Result<(), Error> {
        self.point("gate.before_deliver")?;
        self.ledger.delivered(delivery, self.clock.now()).await?;
        Ok(self.point("gate.after_deliver")?)
    }

    /// Where a crash test asked for it, fails as the ledger would.
    fn point(&self, name: &'static str) -> Result<(), semel_ledger::Error> {
        failpoint::hit(name)
            .map_err(|injected| semel_ledger::Error::NotWritten { what: injected.to_string() })
    }
}
