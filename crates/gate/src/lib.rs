//! Acts: one path, [`Gate::pass`]; waiting, lapsing, probing, cancelling.
//!
//! The gate refuses to know protocols and SQL. Doors hand it an intent, a rule and an [`upstream::Upstream`]; it hands
//! back an answer.
//!
//! It is async and brings no runtime. `semel run` polls its one future on its own thread, over parts that block; a
//! server drives it on a runtime of its own. A blocking gate beside an async one would be two paths through claiming
//! and settling, and the tests would cover the other one. A runtime in every process would be paid for by every
//! guarded command. So the gate names no runtime's types, and waiting for a twin is polling by the clock.
mod attempt;
mod begin;
pub mod clock;
pub mod confirm;
pub mod counts;
mod error;
mod fences;
mod led;
mod look;
mod lookalike;
pub mod observe;
mod owed;
mod pass;
mod reply;
mod steady;
pub mod undo;
pub mod upstream;
mod would;

pub use begin::{Begun, Settled, Settlement, Taken};
pub use error::Error;
pub use pass::unrecorded;
pub use reply::{GivenReply, Passed};

use clock::Clock;
use counts::Counts;
use observe::{Observer, Told};
use owed::Debts;
use semel_core::policy::Mode;
use semel_ledger::counts::Day;
use semel_ledger::entropy::Entropy;
use semel_ledger::holders::Holders;
use semel_ledger::store::Store;
use semel_ledger::{Found, Ledger, failpoint};
use std::sync::Arc;
use std::time::Duration;
use steady::Steady;

/// The engine: a ledger, a clock, and the one path between them.
#[derive(Debug)]
pub struct Gate<S, H, E, C> {
    pub ledger: Ledger<S, H, E>,
    pub clock: C,
    pub mode: Mode,
    pub counts: Arc<Counts>,
    /// Whoever else is told what happens.
    pub observer: Option<Arc<dyn Observer>>,
    debts: Debts,
    steady: Steady,
}

impl<S: Store, H: Holders, E: Entropy, C: Clock> Gate<S, H, E, C> {
    pub fn new(ledger: Ledger<S, H, E>, clock: C, mode: Mode) -> Self {
        let (counts, debts) = (Arc::<Counts>::default(), Debts::default());
        let witness: Arc<Counts> = Arc::clone(&counts);
        let ledger = ledger.witnessed_by(witness);
        let steady = Steady::from(clock.now(), clock.elapsed());
        Gate { ledger, clock, mode, counts, observer: None, debts, steady }
    }

    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        Gate { observer: Some(observer), ..self }
    }

    /// Adds what was counted since the last time to the ledger's own counts.
    pub async fn write_counts(&self) -> Result<(), Error> {
        Ok(self.counts.write(&self.ledger, Day::of(self.clock.now())).await?)
    }

    /// Whether a probe's "no" may count that does so after `quiet`: not as long as the clock has jumped (rule 2).
    pub fn may_count_no(&self, quiet: Duration) -> bool {
        self.steady.has_been_for(quiet, self.clock.now(), self.clock.elapsed())
    }

    pub(crate) fn tell(&self, told: &Told<'_>) {
        self.counts.tell(told);
        if let Some(observer) = &self.observer {
            observer.tell(told);
        }
    }

    /// Marks an answer as having reached its caller.
    pub async fn delivered(&self, delivery: &Found) -> Result<(), Error> {
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
