//! Time that stands still until somebody moves it.

use async_trait::async_trait;
use semel_core::time::{At, Uptime};
use semel_gate::clock::Clock;
use semel_ledger::memory::Sleeper;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The wall clock starts here: some morning in 2026.
const MORNING: u64 = 1_780_000_000_000_000;

/// One machine's two clocks. The monotonic one only advances; the wall clock also jumps.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<Mutex<ManualTime>>);

#[derive(Debug, Default)]
struct ManualTime {
    elapsed: Duration,
    jumped_micros: i64,
    boots: u32,
    sleeping: BTreeMap<(Duration, u64), Waker>,
    next: u64,
}

impl ManualClock {
    pub fn advance_to(&self, elapsed: Duration) {
        let woken: Vec<Waker> = {
            let mut time = self.time();
            time.elapsed = time.elapsed.max(elapsed);
            let now = time.elapsed;
            let later = time.sleeping.split_off(&(now + Duration::from_nanos(1), 0));
            std::mem::replace(&mut time.sleeping, later).into_values().collect()
        };
        woken.into_iter().for_each(Waker::wake);
    }

    pub fn jump(&self, micros: i64) {
        self.time().jumped_micros += micros;
    }

    /// The machine starts anew: what was known of its uptime says nothing any more.
    pub fn reboot(&self) {
        self.time().boots += 1;
    }

    /// When the next sleeper wakes.
    pub fn next_alarm(&self) -> Option<Duration> {
        self.time().sleeping.keys().next().map(|(at, _)| *at)
    }

    pub fn nap(&self, span: Duration) -> Nap {
        let until = self.time().elapsed + span;
        Nap { clock: self.clone(), until, id: None }
    }

    fn time(&self) -> MutexGuard<'_, ManualTime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> At {
        let time = self.time();
        let moved = i64::try_from(time.elapsed.as_micros()).unwrap_or(i64::MAX) + time.jumped_micros;
        At(MORNING.saturating_add_signed(moved))
    }

    fn elapsed(&self) -> Duration {
        self.time().elapsed
    }

    fn uptime(&self) -> Option<Uptime> {
        let time = self.time();
        Some(Uptime { boot: time.boots, micros: time.elapsed.as_micros() as u64 })
    }

    async fn sleep(&self, span: Duration) {
        self.nap(span).await;
    }
}

impl Sleeper for ManualClock {
    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.nap(span))
    }
}

/// Ends when the monotonic clock has come far enough.
#[derive(Debug)]
pub struct Nap {
    clock: ManualClock,
    until: Duration,
    id: Option<u64>,
}

impl Future for Nap {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut time = clock.time();
        if time.elapsed >= self.until {
            return Poll::Ready(());
        }
        let id = *self.id.get_or_insert_with(|| {
            time.next += 1;
            time.next
        });
        time.sleeping.insert((self.until, id), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Nap {
    fn drop(&mut self) {
        // Nobody waits for a sleeper that is gone.
        if let Some(id) = self.id {
            self.clock.time().sleeping.remove(&(self.until, id));
        }
    }
}
