//! Answers that have left and are yet to be marked. Those of a few milliseconds are marked together, in one write of the
//! ledger: a write for each would stand in the way of the calls that come meanwhile.

use crate::busy::Working;
use crate::delivery::Delivery;
use crate::errands;
use crate::hall::Hall;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long marks are gathered, unless somebody waits for one. What is not marked when a process is killed counts as
/// undelivered, so it must not be much longer than a client takes to call again.
const GATHERED_FOR: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
pub struct Marks(Mutex<Vec<Due>>);

#[derive(Debug)]
struct Due {
    delivery: Delivery,
    /// Keeps the process from ending before.
    _working: Working,
}

impl Marks {
    /// Has an answer marked by and by. Within a runtime.
    pub fn add(hall: &Arc<Hall>, delivery: Delivery) {
        let due = Due { delivery, _working: hall.busy.begin() };
        let mut waiting = hall.marks.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(due);
        if waiting.len() == 1 {
            drop(errands::beside(gather(Arc::clone(hall)), &Handle::current()));
        }
    }

    fn take(&self) -> Vec<Due> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn gather(hall: Arc<Hall>) {
    let _in_time = tokio::time::timeout(GATHERED_FOR, hall.leaving.somebody_waits()).await;
    let due = hall.marks.take();
    together(due.iter().map(|due| due.delivery.marked())).await;
}

/// All at once, so that they meet in the ledger. Each is ready after one or two turns, hence nothing is kept of who was
/// woken.
async fn together(futures: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut pending: Vec<Pin<Box<_>>> = futures.map(Box::pin).collect();
    poll_fn(|context| {
        pending.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if pending.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
