//! The clocks of a program that serves many calls at once, on a runtime.

use async_trait::async_trait;
use semel_core::time::{At, Uptime};
use semel_gate::clock::{Clock, SystemClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The machine's clocks, with a sleep that leaves the thread to others.
#[derive(Debug, Clone)]
pub struct RuntimeClock(SystemClock, Ahead);

/// Microseconds that have passed at once.
type Ahead = Arc<AtomicU64>;

impl RuntimeClock {
    /// A clock that begins now.
    pub fn start() -> Self {
        RuntimeClock(SystemClock::start(), Ahead::default())
    }

    /// Time passes at once, for every clone, so that a test need not wait for the end of a window.
    pub fn pass(&self, span: Duration) {
        self.1.fetch_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn ahead(&self) -> Duration {
        Duration::from_micros(self.1.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl Clock for RuntimeClock {
    fn now(&self) -> At {
        self.0.now().plus(self.ahead())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed() + self.ahead()
    }

    fn uptime(&self) -> Option<Uptime> {
        let ahead = self.1.load(Ordering::Relaxed);
        self.0.uptime().map(|up| Uptime { micros: up.micros.saturating_add(ahead), ..up })
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

/// The runtime's own clock, for the age of what can be thrown away at any time: idle connections, kept streams. What
/// decides about effects asks [`RuntimeClock`].
#[allow(clippy::disallowed_methods, reason = "the one home of the runtime's clock")]
pub fn moment() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
