//! The one source of chance. A seed fixes everything that a simulation does.

use semel_ledger::entropy::Entropy;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// SplitMix64, shared by all parts of one simulation.
#[derive(Debug, Clone)]
pub struct Random(Arc<Mutex<u64>>);

impl Random {
    pub fn of(seed: u64) -> Self {
        Random(Arc::new(Mutex::new(seed)))
    }

    pub fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to `end - 1`.
    pub fn below(&self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn percent(&self, chance: u64) -> bool {
        self.next() % 100 < chance
    }

    pub fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// From `least` up to `most` milliseconds.
    pub fn millis(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.next() % (most - least + 1))
    }
}

impl Entropy for Random {
    fn bits(&self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}
