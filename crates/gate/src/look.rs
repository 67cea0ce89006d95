//! A caller's patience. After its rule's timeout a caller looks again, while its first attempt goes on: that attempt's
//! late answer is evidence.

use crate::Gate;
use crate::clock::{Clock, within};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long after an attempt's deadline its caller looks again: the claim is a little younger than the call.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

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

    pub(crate) fn sends(&self) {
        self.call.sent.store(true, Ordering::Relaxed);
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
        timeout: Option<Duration>,
        look: impl FnMut(Look) -> F,
    ) -> T {
        look_until_answered(&*self.clock, timeout, look).await
    }
}

/// The same for a call that does not pass a gate of this process.
pub async fn look_until_answered<T, F: Future<Output = T>>(
    clock: &dyn Clock,
    timeout: Option<Duration>,
    mut look: impl FnMut(Look) -> F,
) -> T {
    let call = Arc::<SeenByLooks>::default();
    loop {
        let caller = Arc::new(());
        let answer = look(Look { call: Arc::clone(&call), caller: Some(Arc::downgrade(&caller)) });
        let Some(timeout) = timeout else {
            let answer = answer.await;
            drop(caller);
            return answer;
        };
        if let Some(answer) = within(answer, clock.sleep(timeout + LOOK_AGAIN_AFTER)).await {
            return answer;
        }
    }
}
