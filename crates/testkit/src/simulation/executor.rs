//! One thread, and an order of polling that the seed decides.

use super::clock::ManualClock;
use super::random::SharedRandom;
use semel_gate::clock::Clock;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Tasks of one process die and pause together. [`OUTSIDE`] is everything that is no process of ours.
pub type Process = u32;
pub const OUTSIDE: Process = 0;

type Routine = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What running tasks ask of the executor.
#[derive(Clone, Default)]
pub struct Orders(Arc<Mutex<Vec<ExecutorOrder>>>);

enum ExecutorOrder {
    Start(Process, Routine),
    Kill(Process),
    Pause(Process, Duration),
}

impl Orders {
    pub fn start(&self, process: Process, job: impl Future<Output = ()> + Send + 'static) {
        self.push(ExecutorOrder::Start(process, Box::pin(job)));
    }

    /// Drops every task of the process where it stands.
    pub fn kill(&self, process: Process) {
        self.push(ExecutorOrder::Kill(process));
    }

    /// No task of the process is polled until then.
    pub fn pause(&self, process: Process, until: Duration) {
        self.push(ExecutorOrder::Pause(process, until));
    }

    fn push(&self, order: ExecutorOrder) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(order);
    }
}

impl std::fmt::Debug for Orders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Orders").finish_non_exhaustive()
    }
}

struct SimulatedTask {
    process: Process,
    job: Routine,
    woken: Arc<Woken>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// More polls than this mean that something spins without letting time pass.
const POLLS_MAX: usize = 2_000_000;

/// Runs until every task has ended. `Err` says how it got stuck.
pub fn run(orders: &Orders, clock: &ManualClock, random: &SharedRandom) -> Result<usize, String> {
    let mut tasks: BTreeMap<u64, SimulatedTask> = BTreeMap::new();
    let mut paused: BTreeMap<Process, Duration> = BTreeMap::new();
    let mut next_id = 0;
    for polls in 0..POLLS_MAX {
        let given = std::mem::take(&mut *orders.0.lock().unwrap_or_else(PoisonError::into_inner));
        for order in given {
            match order {
                ExecutorOrder::Start(process, job) => {
                    let woken = Arc::new(Woken(AtomicBool::new(true)));
                    tasks.insert(next_id, SimulatedTask { process, job, woken });
                    next_id += 1;
                }
                ExecutorOrder::Kill(process) => tasks.retain(|_, task| task.process != process),
                ExecutorOrder::Pause(process, until) => {
                    paused.insert(process, until);
                }
            }
        }
        let now = clock.elapsed();
        paused.retain(|_, until| *until > now);
        let ready: Vec<u64> = tasks
            .iter()
            .filter(|(_, task)| task.woken.0.load(Ordering::Relaxed) && !paused.contains_key(&task.process))
            .map(|(id, _)| *id)
            .collect();
        if ready.is_empty() {
            if tasks.is_empty() {
                return Ok(polls);
            }
            let alarm = clock.next_alarm();
            let Some(next) = alarm.into_iter().chain(paused.values().copied()).min() else {
                return Err(format!("{} tasks wait for nothing", tasks.len()));
            };
            clock.advance_to(next);
            continue;
        }
        let id = *random.pick(&ready);
        let task = tasks.get_mut(&id).expect("a ready task is there");
        task.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&task.woken));
        if let Poll::Ready(()) = task.job.as_mut().poll(&mut Context::from_waker(&waker)) {
            tasks.remove(&id);
        }
    }
    Err(format!("{} tasks do not come to rest", tasks.len()))
}

/// Lets others go first, once.
pub async fn step_aside() {
    let mut aside = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut aside, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
