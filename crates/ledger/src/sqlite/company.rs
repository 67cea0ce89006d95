//! Whether a caller that commits by itself is likely to have company.
//!
//! Letting others go first costs a caller its place: an executor of several threads wakes another one, which takes it
//! over with cold caches, and alone that doubles the time of a commit. So it is done where it has been of use of late,
//! and else now and then, to notice when it would be again.

use std::sync::atomic::{AtomicU32, Ordering};

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
}
