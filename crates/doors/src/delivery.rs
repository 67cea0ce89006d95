//! An answer about an effect: once it has left, it counts as delivered.

use crate::delivery_batch::{BatchedAnswer, UnmarkedAnswer};
use crate::http::server::on_sent::OnSent;
use crate::local_tasks;
use crate::remote_gate::Undelivered;
use crate::remote_gate::delivery::RemoteMark;
use crate::services::Services;
use axum::response::Response;
use futures_util::future::join_all;
use semel_gate::clock::Clock;
use semel_ledger::RecordSnapshot;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long answers are gathered, unless a call waits for a mark. An answer that is not marked when its process is
/// killed counts as undelivered, so it must not be much longer than a client takes to call again.
const GATHERED_FOR: Duration = Duration::from_millis(5);

/// A ledger that cannot be written is mostly locked by another process, which lets go of it after a while.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(1);
const TRIES_MAX: u32 = 60;

/// The mark of one answer, however many callers have the answer on its way.
#[derive(Debug, Clone)]
pub struct Delivery {
    services: Arc<Services>,
    mark: DeliveryMark,
}

#[derive(Debug, Clone)]
enum DeliveryMark {
    Ledger(Arc<UnmarkedAnswer>),
    Remote(Arc<RemoteMark>),
}

impl Delivery {
    /// Of an answer that a server on another machine gave.
    pub fn of_remote(services: &Arc<Services>, undelivered: Undelivered, late_from: Duration) -> Delivery {
        let mark = RemoteMark::of(services, undelivered, late_from);
        Delivery { services: Arc::clone(services), mark: DeliveryMark::Remote(Arc::new(mark)) }
    }

    /// `None`: there is nothing to mark, or it was marked before.
    pub fn of(
        services: &Arc<Services>,
        found: Option<RecordSnapshot>,
        late_from: Option<Duration>,
    ) -> Option<Delivery> {
        let unmarked =
            |found: &RecordSnapshot| found.effect().is_some_and(|effect| effect.delivered_at.is_none());
        let found = found.filter(unmarked)?;
        let pending = services.begin_delivery(found.key);
        let answer = Arc::new(UnmarkedAnswer::new(found, pending, late_from));
        Some(Delivery { services: Arc::clone(services), mark: DeliveryMark::Ledger(answer) })
    }

    /// Has it marked once the response has left.
    pub fn of_response(self, response: &mut Response) {
        response.extensions_mut().insert(OnSent::new(|| self.mark()));
    }

    /// It has left just now, and is marked by and by, unless it was late. Within a runtime.
    pub fn mark(self) {
        let Delivery { services, mark } = self;
        let answer = match mark {
            DeliveryMark::Ledger(answer) => answer,
            DeliveryMark::Remote(mark) => return mark.set(services),
        };
        if answer.late_from.is_some_and(|late| services.clock.elapsed() > late) {
            return answer.release();
        }
        let in_flight = Some(services.in_flight.begin());
        if services.delivery_batch.push(BatchedAnswer { answer, in_flight }) {
            drop(local_tasks::spawn_part(mark_batch(services), &Handle::current()));
        }
    }

    /// Nobody takes the answer any more: the next call need not wait for its mark.
    pub fn release(&self) {
        match &self.mark {
            DeliveryMark::Ledger(answer) => answer.release(),
            DeliveryMark::Remote(mark) => mark.release(),
        }
    }
}

async fn mark_batch(services: Arc<Services>) {
    if let Ok(gate) = &services.gate {
        let _in_time = tokio::time::timeout(GATHERED_FOR, gate.pending_deliveries.wanted()).await;
    }
    let mut batch = services.delivery_batch.take();
    for _ in 0..TRIES_MAX {
        // All at once, so that they meet in the ledger.
        let marked = join_all(batch.iter().map(|batched| mark(&services, &batched.answer))).await;
        let mut marked = marked.into_iter();
        batch.retain(|_| !marked.next().unwrap_or_default());
        if batch.is_empty() {
            return;
        }
        batch.iter_mut().for_each(|batched| batched.in_flight = None);
        services.clock.sleep(TRIED_AGAIN_AFTER).await;
    }
    batch.iter().for_each(|batched| batched.answer.release());
}

/// `false`: the ledger could not be written. Until it can, the next call is answered from the record, which is safe.
async fn mark(services: &Services, answer: &UnmarkedAnswer) -> bool {
    let marked = match &services.gate {
        Ok(gate) => gate.delivered(&answer.found).await.is_ok(),
        Err(_) => true,
    };
    if marked {
        answer.release();
    }
    marked
}
