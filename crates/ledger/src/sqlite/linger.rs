//! How long a batch waits for company. Committing at once splits the callers into two cohorts that take turns, and
//! a slow disk then does half the work it could; on a fast one any wait costs more than it brings. So the wait is
//! a share of the commit time that is being measured: a small one while nobody comes, a large one while they do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A tenth: what a caller may lose to waiting in vain, against the half that cohorts lose.
const SHARE: u32 = 10;

/// A half: those just answered come back one after another, each with some work of its own behind it. While they do,
/// the next of them is worth more than the time it takes.
const SHARE_MAX: u32 = 2;

/// A timed wait shorter than this oversleeps by more than its own length.
const SPAN_MIN: Duration = Duration::from_micros(50);

/// From here on a commit holds a thread of the executor for too long, and the hand-over to ours is cheap beside it.
const SLOW: Duration = Duration::from_millis(1);

/// The mean time of a durable commit, the newest one weighing an eighth.
#[derive(Debug, Default)]
pub(super) struct Linger {
    mean_nanos: AtomicU64,
}

impl Linger {
    pub(super) fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let mean = self.mean_nanos.load(Ordering::Relaxed);
        let next = if mean == 0 { took } else { mean - mean / 8 + took / 8 };
        self.mean_nanos.store(next, Ordering::Relaxed);
    }

    /// `None` where waiting does not pay.
    pub(super) fn span(&self) -> Option<Span> {
        let quiet = self.mean() / SHARE;
        (quiet >= SPAN_MIN).then(|| Span { quiet, whole: self.mean() / SHARE_MAX })
    }

    pub(super) fn disk_is_slow(&self) -> bool {
        self.mean() >= SLOW
    }

    fn mean(&self) -> Duration {
        Duration::from_nanos(self.mean_nanos.load(Ordering::Relaxed))
    }
}

/// A wait for company.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// It ends when nobody has come for this long,
    pub(super) quiet: Duration,
    /// and in any case after this.
    pub(super) whole: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_disk_is_not_waited_for_and_a_slow_one_a_tenth_to_a_half() {
        let linger = Linger::default();
        assert_eq!(linger.span(), None);
        linger.note(Duration::from_micros(100));
        assert_eq!((linger.span(), linger.disk_is_slow()), (None, false));
        let linger = Linger::default();
        linger.note(Duration::from_millis(2));
        let span = Span { quiet: Duration::from_micros(200), whole: Duration::from_millis(1) };
        assert_eq!((linger.span(), linger.disk_is_slow()), (Some(span), true));
    }
}
