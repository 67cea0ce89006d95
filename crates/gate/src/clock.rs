//! Time, as the gate is given it.

use async_trait::async_trait;
use semel_core::time::{At, Uptime};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;
use std::task::{Poll, Wake};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Wall time: for the ledger, and for people.
    fn now(&self) -> At;

    /// Monotonic time since some fixed moment of this process: for deadlines that must not jump.
    fn elapsed(&self) -> Duration;

    /// The machine's own clock, where it has one.
    fn uptime(&self) -> Option<Uptime>;

    async fn sleep(&self, span: Duration);
}

/// The clocks of the machine. Sleeping blocks the thread: for programs that do one thing, without a runtime.
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one home of the monotonic clock")]
    pub fn start() -> Self {
        SystemClock { started: Instant::now() }
    }
}

#[async_trait]
#[allow(clippy::disallowed_methods, reason = "the one home of the machine's clocks")]
impl Clock for SystemClock {
    fn now(&self) -> At {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        At(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    #[cfg(target_os = "linux")]
    fn uptime(&self) -> Option<Uptime> {
        static BOOT: OnceLock<Option<u32>> = OnceLock::new();
        let boot = BOOT.get_or_init(|| {
            // A random UUID of this boot; its first group tells boots apart.
            let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
            u32::from_str_radix(id.get(..8)?, 16).ok()
        });
        let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let micros = u64::try_from(up.tv_sec).ok()? * 1_000_000 + u64::try_from(up.tv_nsec).ok()? / 1_000;
        boot.map(|boot| Uptime { boot, micros })
    }

    #[cfg(not(target_os = "linux"))]
    fn uptime(&self) -> Option<Uptime> {
        None
    }

    async fn sleep(&self, span: Duration) {
        let ends = self.elapsed() + span;
        poll_fn(|context| {
            let left = ends.saturating_sub(self.elapsed());
            if left.is_zero() {
                return Poll::Ready(());
            }
            // Its thread may wait for something else beside it: that wakes the thread, or is looked at again soon.
            std::thread::park_timeout(left.min(POLL_AGAIN));
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

/// Drives a future on this thread, as a command-line program does. No runtime is started: nearly every wait blocks inside
/// its own poll, and an engine that works on a thread of its own wakes this one.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park_timeout(POLL_AGAIN);
    }
}

/// A wake that got lost costs no more than this.
const POLL_AGAIN: Duration = Duration::from_millis(10);

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The answer, unless the end comes first.
pub(crate) async fn within<T>(answer: impl Future<Output = T>, end: impl Future<Output = ()>) -> Option<T> {
    let (mut answer, mut end) = (pin!(answer), pin!(end));
    poll_fn(|context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(Some(answer));
        }
        end.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// The answer. The other work goes on until it comes.
pub async fn beside<T>(answer: impl Future<Output = T>, work: impl Future<Output = ()>) -> T {
    let work = async {
        work.await;
        std::future::pending().await
    };
    within(answer, work).await.expect("the work has no end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_another_thread_comes_before_the_end_of_a_sleep() {
        let (clock, answered) = (SystemClock::start(), Arc::new(std::sync::OnceLock::new()));
        let answers = Arc::clone(&answered);
        let answer = poll_fn(|context| match answered.get() {
            Some(answer) => Poll::Ready(*answer),
            None => {
                let (answers, waker) = (Arc::clone(&answers), context.waker().clone());
                std::thread::spawn(move || {
                    let _said_before = answers.set(7);
                    waker.wake();
                });
                Poll::Pending
            }
        });
        let day = Duration::from_secs(86_400);
        assert_eq!(block_on(within(answer, clock.sleep(day))), Some(7));
    }
}
