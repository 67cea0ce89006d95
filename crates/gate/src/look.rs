//! A caller's patience. After its rule's timeout, or once its upstream is silent, a caller looks again, while its first
//! attempt goes on: that attempt's late answer is evidence.

use crate::Gate;
use crate::clock::{Clock, within};
use semel_core::class::Class;
use semel_core::policy::rule::Rule;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long the upstream of a tool or a request may give no sign of life: gateways give up sooner, and a person who waits
/// wants to know.
pub const SILENCE_MAX: Duration = Duration::from_secs(300);

/// How long after an attempt's deadline its caller looks again: the claim is a little younger than the call.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// How long a caller waits for what it has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Patience {
    #[default]
    Endless,
    /// Since the call came.
    Timeout(Duration),
    /// Since its upstream gave the last sign of life.
    Silence(Duration),
}

impl Patience {
    /// For a call of a tool or over HTTP. A rule's timeout is not prolonged.
    pub fn of(rule: &Rule, silence_max: Duration) -> Patience {
        match (rule.timeout, rule.class) {
            (Some(timeout), _) => Patience::Timeout(timeout),
            // Nothing of the one can be in doubt, and the other has a deadline of its own.
            (None, Class::Read | Class::Generate) => Patience::Endless,
            (None, _) => Patience::Silence(silence_max),
        }
    }
}

/// The newest sign of life of an upstream, in microseconds of the monotonic clock. 0: none.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    pub fn note(&self, clock: &dyn Clock) {
        let micros = u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_max(micros.max(1), Ordering::Relaxed);
    }

    pub fn last(&self) -> Option<Duration> {
        Some(self.0.load(Ordering::Relaxed)).filter(|micros| *micros > 0).map(Duration::from_micros)
    }
}

/// One look of a caller at its call. A caller that looks again is not a new one.
#[derive(Debug, Clone, Default)]
pub struct Look {
    call: Arc<SeenByLooks>,
    /// Gone once the caller has left this look behind. `None`: it waits to the end.
    caller: Option<Weak<()>>,
}

/// Shared by all looks of one call.
#[derive(Debug, Default)]
struct SeenByLooks {
    sent: AtomicBool,
    answered: AtomicBool,
    patience: Patience,
    progress: Progress,
}

impl Look {
    /// A look whose caller has gone.
    pub fn without_caller() -> Look {
        Look { caller: Some(Weak::new()), ..Look::default() }
    }

    /// Whether an earlier look has sent the call.
    pub(crate) fn has_sent(&self) -> bool {
        self.call.sent.load(Ordering::Relaxed)
    }

    pub fn sends(&self, clock: &dyn Clock) {
        self.call.sent.store(true, Ordering::Relaxed);
        self.call.progress.note(clock);
    }

    pub fn progress(&self) -> &Progress {
        &self.call.progress
    }

    /// Ends once the upstream has been silent for too long, since then at the earliest. Before anything was sent nobody
    /// is silent.
    pub async fn silence(&self, clock: &dyn Clock, since: Duration) {
        let Patience::Silence(max) = self.call.patience else { return std::future::pending().await };
        loop {
            let now = clock.elapsed();
            let left = (self.call.progress.last().unwrap_or(now).max(since) + max).saturating_sub(now);
            if left.is_zero() {
                return;
            }
            clock.sleep(left).await;
        }
    }

    /// Whether this look is the first to come to an answer. An attempt that was left behind comes to another one later.
    pub(crate) fn answers_first(&self) -> bool {
        !self.call.answered.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn caller_waits(&self) -> bool {
        self.caller.as_ref().is_none_or(|caller| caller.strong_count() > 0)
    }
}

impl Gate {
    /// Looks until one look has an answer. `look` must finish its work even if it is dropped: what was sent is settled.
    pub async fn look_until_answered<T, F: Future<Output = T>>(
        &self,
        patience: Patience,
        look: impl FnMut(Look) -> F,
    ) -> T {
        look_until_answered(&*self.clock, patience, look).await
    }
}

/// The same for a call that does not pass a gate of this process.
pub async fn look_until_answered<T, F: Future<Output = T>>(
    clock: &dyn Clock,
    patience: Patience,
    mut look: impl FnMut(Look) -> F,
) -> T {
    let call = Arc::new(SeenByLooks { patience, ..SeenByLooks::default() });
    loop {
        let (caller, began) = (Arc::new(()), clock.elapsed());
        let this = Look { call: Arc::clone(&call), caller: Some(Arc::downgrade(&caller)) };
        let over = {
            let this = this.clone();
            async move {
                match patience {
                    Patience::Timeout(timeout) => clock.sleep(timeout).await,
                    Patience::Endless | Patience::Silence(_) => this.silence(clock, began).await,
                }
                clock.sleep(LOOK_AGAIN_AFTER).await;
            }
        };
        if let Some(answer) = within(look(this), over).await {
            return answer;
        }
    }
}
