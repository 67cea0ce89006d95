//! Answers that have left and are yet to be marked. Those of a few milliseconds are marked together, in one write of
//! the ledger: a write for each would stand in the way of the calls that come meanwhile.

use crate::busy::Working;
use crate::delivery::Delivery;
use crate::hall::Hall;
use crate::local_tasks;
use semel_gate::clock::Clock;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long marks are gathered, unless somebody waits for one. What is not marked when a process is killed counts as
/// undelivered, so it must not be much longer than a client takes to call again.
const GATHERED_FOR: Duration = Duration::from_millis(5);

/// A ledger that cannot be written is locked by somebody, mostly, who lets go of it after a while.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(1);
const TRIES_MAX: u32 = 60;

#[derive(Debug, Default)]
pub struct Marks(Mutex<Vec<Due>>);

#[derive(Debug)]
struct Due {
    delivery: Delivery,
    /// Keeps the process from ending before it was tried.
    working: Option<Working>,
}

impl Marks {
    /// Has an answer marked by and by. Within a runtime.
    pub fn add(hall: &Arc<Hall>, delivery: Delivery) {
        let due = Due { delivery, working: Some(hall.busy.begin()) };
        let mut waiting = hall.marks.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(due);
        if waiting.len() == 1 {
            drop(local_tasks::spawn_part(gather(Arc::clone(hall)), &Handle::current()));
        }
    }

    fn take(&self) -> Vec<Due> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn gather(hall: Arc<Hall>) {
    if let Ok(gate) = &hall.gate {
        let _in_time = tokio::time::timeout(GATHERED_FOR, gate.pending_deliveries.wanted()).await;
    }
    let mut due = hall.marks.take();
    for _ in 0..TRIES_MAX {
        let marked = together(due.iter().map(|due| due.delivery.try_mark())).await;
        let mut marked = marked.into_iter();
        due.retain(|_| !marked.next().unwrap_or_default());
        if due.is_empty() {
            return;
        }
        due.iter_mut().for_each(|due| due.working = None);
        hall.clock.sleep(TRIED_AGAIN_AFTER).await;
    }
    // Whoever comes next need not wait for them.
    due.iter().for_each(|due| due.delivery.has_left());
}

/// All at once, so that they meet in the ledger. Each is ready after one or two turns, hence nothing is kept of who was
/// woken.
async fn together(futures: impl Iterator<Item = impl Future<Output = bool>>) -> Vec<bool> {
    let mut futures: Vec<Pin<Box<_>>> = futures.map(Box::pin).collect();
    let mut answers: Vec<Option<bool>> = vec![None; futures.len()];
    poll_fn(|context| {
        for (future, answer) in futures.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(context) {
                *answer = Some(ready);
            }
        }
        answers.iter().copied().collect::<Option<Vec<bool>>>().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}
