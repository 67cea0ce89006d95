//! Calls that were only observed. Nothing is claimed for them, so this is all that tells a repeat from a first call,
//! for all processes of a ledger. It is for a report, and written as lazily.

use crate::Error;
use crate::ledger::{CellUpdate, Ledger};
use crate::store::{Durability, JournalLine};
use semel_core::digest::Digest;
use semel_core::time::At;
use serde::{Deserialize, Serialize};

/// How many calls are remembered in each of 256 cells, which share the keys by their first byte. Of more the oldest is
/// forgotten, and a repeat of it is reported as a first call.
const CALLS_MAX: usize = 40;

/// How often an intent was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sightings {
    pub first: At,
    pub count: u32,
}

/// The calls of one cell, in the order in which they came first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Calls(Vec<(u64, Sightings)>);

impl Calls {
    /// Sees a call, and says what was seen of its intent before. `counts` says whether a first call of that moment
    /// still matters; if not, this one is the first.
    fn see(&mut self, mark: u64, now: At, counts: impl Fn(At) -> bool) -> Option<Sightings> {
        let Calls(calls) = self;
        if let Some((_, seen)) = calls.iter_mut().find(|(known, seen)| *known == mark && counts(seen.first)) {
            let before = *seen;
            seen.count = seen.count.saturating_add(1);
            return Some(before);
        }
        calls.retain(|(known, _)| *known != mark);
        if calls.len() >= CALLS_MAX {
            calls.remove(0);
        }
        calls.push((mark, Sightings { first: now, count: 1 }));
        None
    }
}

impl Ledger {
    /// Remembers a call and writes down the line that `line` makes of what was seen before it.
    pub async fn observed(
        &self,
        key: Digest,
        now: At,
        counts: impl Fn(At) -> bool,
        line: impl Fn(Option<Sightings>) -> JournalLine,
    ) -> Result<(), Error> {
        let cell = self.secret.mac("observed", &[&key.0[..1]]);
        let mark = u64::from_be_bytes(key.0[1..9].try_into().expect("eight bytes"));
        self.update_cell(cell, Durability::Lazy, |calls: Option<Calls>| {
            let mut value = calls.unwrap_or_default();
            let lines = vec![line(value.see(mark, now, &counts))];
            Ok(CellUpdate::Put { value, lines, result: () })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_is_told_from_a_first_call_as_long_as_that_counts() {
        let mut calls = Calls::default();
        let mut see = |mark, now: u64| calls.see(mark, At(now), |first| now < first.0 + 10);
        assert_eq!((see(1, 1), see(2, 2)), (None, None));
        assert_eq!(see(1, 3), Some(Sightings { first: At(1), count: 1 }));
        assert_eq!(see(1, 4), Some(Sightings { first: At(1), count: 2 }));
        assert_eq!(see(1, 11), None, "its time is over");
        assert_eq!(see(1, 12), Some(Sightings { first: At(11), count: 1 }));
    }

    #[test]
    fn of_too_many_the_oldest_are_forgotten() {
        let mut calls = Calls::default();
        for mark in 0..=CALLS_MAX as u64 {
            assert_eq!(calls.see(mark, At(0), |_| true), None);
        }
        assert_eq!(calls.0.len(), CALLS_MAX);
        assert_eq!(calls.see(0, At(0), |_| true), None, "it was the oldest");
        assert!(calls.see(CALLS_MAX as u64, At(0), |_| true).is_some());
    }
}
