//! An answer about an effect: once it has left, it counts as delivered.

use crate::hall::Hall;
use crate::http::server::departure::Departure;
use crate::leaving::Left;
use axum::response::Response;
use semel_gate::clock::Clock;
use semel_ledger::Found;
use std::sync::Arc;
use std::time::Duration;

/// What is marked once an answer has left.
#[derive(Debug)]
pub struct Delivery {
    hall: Arc<Hall>,
    found: Found,
    /// Whoever comes next waits until it is marked, or until it is known to be lost.
    left: Left,
    /// When the request came, on the monotonic clock.
    came: Duration,
    late_after: Duration,
}

impl Delivery {
    /// `None`: there is nothing to mark, or it was marked before.
    pub fn of(
        hall: &Arc<Hall>,
        found: Option<Found>,
        came: Duration,
        late_after: Duration,
    ) -> Option<Delivery> {
        let unmarked = |found: &Found| found.effect().is_some_and(|effect| effect.delivered_at.is_none());
        let found = found.filter(unmarked)?;
        let left = hall.leaving.begin(found.key);
        Some(Delivery { hall: Arc::clone(hall), found, left, came, late_after })
    }

    /// Has it marked once the response has left.
    pub fn of_response(self, response: &mut Response) {
        response.extensions_mut().insert(Departure::then(|| self.mark()));
    }

    /// Marks it, unless it was late: whoever had asked may have gone by then.
    pub fn mark(self) {
        let Delivery { hall, found, left, came, late_after } = self;
        if hall.clock.elapsed().saturating_sub(came) > late_after {
            return;
        }
        let working = hall.busy.begin();
        let marking = Arc::clone(&hall);
        tokio::spawn(async move {
            if let Ok(gate) = &marking.gate {
                // A missing mark means undelivered: the next call is answered from the record, which is safe.
                let _unmarked = gate.delivered(&found).await;
            }
            drop((left, working));
        });
    }
}
