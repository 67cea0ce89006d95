//! An answer about an effect: once it has left, it counts as delivered.

use crate::hall::Hall;
use crate::http::server::on_sent::OnSent;
use crate::marks::Marks;
use axum::response::Response;
use semel_gate::clock::Clock;
use semel_gate::pending_delivery::PendingDelivery;
use semel_ledger::RecordSnapshot;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is marked once an answer has reached somebody, however many have it on its way.
#[derive(Debug, Clone)]
pub struct Delivery(Arc<Due>);

#[derive(Debug)]
struct Due {
    hall: Arc<Hall>,
    /// Without its reply, which a mark does not need.
    found: RecordSnapshot,
    /// The next call waits for the mark as long as this is there.
    pending: Mutex<Option<PendingDelivery>>,
    late_from: Option<Duration>,
}

impl Delivery {
    /// `None`: there is nothing to mark, or it was marked before. `late_from`: the moment, on the monotonic clock, from
    /// which on whoever had asked may have gone, and is not taken to have got it.
    pub fn of(
        hall: &Arc<Hall>,
        found: Option<RecordSnapshot>,
        late_from: Option<Duration>,
    ) -> Option<Delivery> {
        let unmarked =
            |found: &RecordSnapshot| found.effect().is_some_and(|effect| effect.delivered_at.is_none());
        let found = found.filter(unmarked)?;
        let pending = Mutex::new(hall.begin_delivery(found.key));
        let hall = Arc::clone(hall);
        Some(Delivery(Arc::new(Due {
            hall,
            found: RecordSnapshot { reply: None, ..found },
            pending,
            late_from,
        })))
    }

    /// Has it marked once the response has left.
    pub fn of_response(self, response: &mut Response) {
        response.extensions_mut().insert(OnSent::new(|| self.mark()));
    }

    /// It has left just now, and is marked by and by, unless it was late. Within a runtime.
    pub fn mark(self) {
        let hall = Arc::clone(&self.0.hall);
        match self.0.late_from.is_some_and(|late| hall.clock.elapsed() > late) {
            true => self.has_left(),
            false => Marks::add(&hall, self),
        }
    }

    /// Marks it. `false`: the ledger could not be written. Until it can, the next call is answered from the record,
    /// which is safe.
    pub(crate) async fn try_mark(&self) -> bool {
        let Due { hall, found, .. } = &*self.0;
        let marked = match &hall.gate {
            Ok(gate) => gate.delivered(found).await.is_ok(),
            Err(_) => true,
        };
        if marked {
            self.has_left();
        }
        marked
    }

    /// It is marked, or nobody takes it any more: whoever comes next need not wait for it.
    pub fn has_left(&self) {
        drop(self.0.pending.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
