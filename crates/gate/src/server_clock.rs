//! Whether this host's clock is still close to that of its ledger's server. It was when the ledger was opened; clocks are set
//! later too, and drift.

use crate::Gate;
use crate::clock_jump::origin;
use semel_core::time::At;
use semel_ledger::Error;
use semel_ledger::clock_skew::{Comparison, compare};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// As often as hosts tell each other that they are there. Clocks drift by less than a second in an hour.
const COMPARE_EVERY: Duration = Duration::from_secs(10);

/// A clock that moves by more beside the monotonic one was set, and is compared at once.
const STEP: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct ServerClock(Mutex<Compared>);

#[derive(Debug)]
struct Compared {
    result: Comparison,
    /// On the monotonic clock.
    at: Duration,
    /// The wall clock when the monotonic one began, as it was then.
    origin: i128,
}

impl ServerClock {
    pub(crate) fn compared_at(now: At, elapsed: Duration) -> ServerClock {
        ServerClock(Mutex::new(Compared {
            result: Comparison::Close,
            at: elapsed,
            origin: origin(now, elapsed),
        }))
    }

    /// The last comparison, unless it is time for another.
    fn known(&self, now: At, elapsed: Duration) -> Option<Comparison> {
        let compared = self.lock();
        let was_set = origin(now, elapsed).abs_diff(compared.origin) > STEP.as_micros();
        let is_old = elapsed.saturating_sub(compared.at) >= COMPARE_EVERY;
        let stands = compared.result == Comparison::SameClock || !was_set && !is_old;
        stands.then(|| compared.result.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Compared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    /// Refuses a host whose clock is not that of the others: its claims would lapse too late for them, and a probe's "no"
    /// would count too early for it.
    pub async fn check_clock(&self) -> Result<(), Error> {
        let result = match self.server_clock.known(self.clock.now(), self.clock.elapsed()) {
            Some(known) => known,
            None => Box::pin(self.compare_clocks()).await,
        };
        match result {
            Comparison::SameClock | Comparison::Close => Ok(()),
            Comparison::Apart(what) => {
                Err(Error::Engine { ledger: self.ledger.store().engine().to_owned(), what })
            }
        }
    }

    async fn compare_clocks(&self) -> Comparison {
        let at = self.clock.elapsed();
        let origin = origin(self.clock.now(), at);
        let result = compare(self.ledger.store(), || self.clock.now()).await;
        *self.server_clock.lock() = Compared { result: result.clone(), at, origin };
        result
    }
}
