//! Whether the wall clock has run as clocks do. Others write down when something was sent by that clock, and a probe's
//! "no" counts some time after; a clock that jumps forward must not make it count at once.

use semel_core::time::At;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The drift of two clocks of one machine between two looks, and the size of usual corrections.
const DRIFT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct ClockJumps(Mutex<ObservedClock>);

#[derive(Debug, Clone, Copy)]
struct ObservedClock {
    /// The wall clock when the monotonic one began, as it was last seen.
    origin: i128,
    /// When it was last seen to have jumped forward, on the monotonic clock.
    jumped: Option<Duration>,
}

impl ClockJumps {
    pub(crate) fn watch_from(now: At, elapsed: Duration) -> ClockJumps {
        ClockJumps(Mutex::new(ObservedClock { origin: origin(now, elapsed), jumped: None }))
    }

    /// Whether the wall clock has not jumped forward for so long.
    pub(crate) fn none_for(&self, span: Duration, now: At, elapsed: Duration) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = origin(now, elapsed);
        if seen > state.origin + DRIFT.as_micros() as i128 {
            state.jumped = Some(elapsed);
        }
        // A clock that is set back and forth again has jumped forward too.
        state.origin = seen;
        state.jumped.is_none_or(|jumped| elapsed.saturating_sub(jumped) >= span)
    }
}

pub(crate) fn origin(now: At, elapsed: Duration) -> i128 {
    i128::from(now.0) - elapsed.as_micros() as i128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumped_forward_is_jumps_again_after_a_while() {
        let second = |n: u64| (At(1_000_000 * n), Duration::from_secs(n));
        let span = Duration::from_secs(30);
        let jumps = ClockJumps::watch_from(second(1_000).0, second(1).1);
        let has_been = |wall: u64, monotonic: u64| jumps.none_for(span, second(wall).0, second(monotonic).1);
        assert!(has_been(1_009, 10), "nothing has happened");
        assert!(!has_been(4_619, 20), "an hour in ten seconds");
        assert!(!has_been(4_629, 30) && !has_been(4_648, 49));
        assert!(has_been(4_649, 50));
        assert!(has_been(1_059, 60), "backwards it makes nothing count that did not");
        assert!(!has_been(4_669, 70), "and forwards again it may");
    }
}
