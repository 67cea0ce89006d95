//! Calls that were only observed. Nothing is claimed for them, so this is all that tells a repeat from a first call; it
//! is for a report and is lost with its process.

use semel_core::digest::Digest;
use semel_core::time::At;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Of more the oldest are forgotten, and a repeat of theirs is reported as a first call.
const CALLS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    times: HashMap<Digest, Times>,
    /// In the order in which they came first.
    order: VecDeque<Digest>,
}

/// How often an intent was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) first: At,
    pub(crate) count: u32,
}

impl Seen {
    /// Sees a call, and says what was seen of its intent before. `still_counts` says whether a first call of that
    /// moment still matters; if not, this one is the first.
    pub(crate) fn see(&self, key: Digest, now: At, still_counts: impl FnOnce(At) -> bool) -> Option<Times> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Calls { times, order } = &mut *calls;
        if let Some(known) = times.get_mut(&key) {
            if still_counts(known.first) {
                let before = *known;
                known.count = known.count.saturating_add(1);
                return Some(before);
            }
            *known = Times { first: now, count: 1 };
            return None;
        }
        if order.len() >= CALLS_MAX
            && let Some(oldest) = order.pop_front()
        {
            times.remove(&oldest);
        }
        order.push_back(key);
        times.insert(key, Times { first: now, count: 1 });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize) -> Digest {
        Digest::of(&[&n.to_be_bytes()])
    }

    #[test]
    fn a_repeat_is_told_from_a_first_call_as_long_as_that_counts() {
        let seen = Seen::default();
        let within = |now: u64| move |first: At| now < first.0 + 10;
        assert_eq!(seen.see(key(1), At(1), within(1)), None);
        assert_eq!(seen.see(key(2), At(2), within(2)), None);
        assert_eq!(seen.see(key(1), At(3), within(3)), Some(Times { first: At(1), count: 1 }));
        assert_eq!(seen.see(key(1), At(4), within(4)), Some(Times { first: At(1), count: 2 }));
        assert_eq!(seen.see(key(1), At(11), within(11)), None, "its time is over");
        assert_eq!(seen.see(key(1), At(12), within(12)), Some(Times { first: At(11), count: 1 }));
    }

    #[test]
    fn of_too_many_the_oldest_are_forgotten() {
        let seen = Seen::default();
        for n in 0..=CALLS_MAX {
            assert_eq!(seen.see(key(n), At(0), |_| true), None);
        }
        assert_eq!(seen.see(key(0), At(0), |_| true), None, "it was the oldest");
        assert!(seen.see(key(CALLS_MAX), At(0), |_| true).is_some());
    }
}
