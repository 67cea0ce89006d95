//! When a commit waits for others to share its flush with.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Estimates whether a caller that commits by itself is likely to have company.
///
/// Letting others go first costs a caller its place: an executor of several threads wakes another one, which takes it
/// over with cold caches, and alone that doubles the time of a commit. So a caller looks for others only where that has
/// helped lately, and now and then otherwise.
#[derive(Debug, Default)]
pub(super) struct Company {
    commits: AtomicU32,
    /// For so many commits more, others are expected.
    expected: AtomicU32,
}

impl Company {
    /// A crowd that comes is noticed within so many commits.
    const LOOKS_EVERY: u32 = 8;
    const REMEMBERED: u32 = 16;

    /// Before a commit. Two at once may lose one count: it is an estimate.
    pub(super) fn is_worth_a_look(&self) -> bool {
        let expected = self.expected.load(Ordering::Relaxed);
        if expected > 0 {
            self.expected.store(expected - 1, Ordering::Relaxed);
            return true;
        }
        let commits = self.commits.load(Ordering::Relaxed).wrapping_add(1);
        self.commits.store(commits, Ordering::Relaxed);
        commits.is_multiple_of(Self::LOOKS_EVERY)
    }

    /// After it: how many it was for.
    pub(super) fn note(&self, callers: usize) {
        if callers > 1 {
            self.expected.store(Self::REMEMBERED, Ordering::Relaxed);
        }
    }
}

/// A tenth: what a caller may lose to waiting in vain, against the half that cohorts lose.
const SHARE: u32 = 10;

/// A half: those just answered come back one after another, each with some work of its own behind it. While they do,
/// the next of them is worth more than the time it takes.
const SHARE_MAX: u32 = 2;

/// A timed wait shorter than this oversleeps by more than its own length.
const SPAN_MIN: Duration = Duration::from_micros(50);

/// From here on a commit holds a thread of the executor for too long, and the hand-over to ours is cheap beside it.
const SLOW: Duration = Duration::from_millis(1);

/// How long a batch waits for company. Committing at once splits the callers into two cohorts that take turns, and a slow
/// disk then does half the work it could; on a fast one any wait costs more than it brings. So the wait is a share of
/// the mean time of a durable commit, the newest one weighing an eighth: a small share while nobody comes, a large one
/// while they do.
#[derive(Debug, Default)]
pub(super) struct BatchWait {
    mean_nanos: AtomicU64,
}

impl BatchWait {
    pub(super) fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let mean = self.mean_nanos.load(Ordering::Relaxed);
        let next = if mean == 0 { took } else { mean - mean / 8 + took / 8 };
        self.mean_nanos.store(next, Ordering::Relaxed);
    }

    /// `None` where waiting does not pay.
    pub(super) fn span(&self) -> Option<WaitLimits> {
        let quiet = self.mean() / SHARE;
        (quiet >= SPAN_MIN).then(|| WaitLimits { quiet, whole: self.mean() / SHARE_MAX })
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
pub(super) struct WaitLimits {
    /// It ends when nobody has come for this long,
    pub(super) quiet: Duration,
    /// and in any case after this.
    pub(super) whole: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_alone_seldom_looks_and_one_among_others_always() {
        let company = Company::default();
        let looks = |commits: u32| (0..commits).filter(|_| company.is_worth_a_look()).count();
        company.note(1);
        assert_eq!(looks(80), 10);
        company.note(2);
        assert_eq!(looks(16), 16);
        assert_eq!(looks(80), 10);
    }

    #[test]
    fn a_fast_disk_is_not_waited_for_and_a_slow_one_a_tenth_to_a_half() {
        let linger = BatchWait::default();
        assert_eq!(linger.span(), None);
        linger.note(Duration::from_micros(100));
        assert_eq!((linger.span(), linger.disk_is_slow()), (None, false));
        let linger = BatchWait::default();
        linger.note(Duration::from_millis(2));
        let span = WaitLimits { quiet: Duration::from_micros(200), whole: Duration::from_millis(1) };
        assert_eq!((linger.span(), linger.disk_is_slow()), (Some(span), true));
    }
}
