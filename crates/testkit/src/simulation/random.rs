//! The one source of chance. A seed fixes everything that a simulation does.

use crate::random::Random;
use semel_ledger::entropy::Entropy;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Shared by all parts of one simulation.
#[derive(Debug, Clone)]
pub struct SharedRandom(Arc<Mutex<Random>>);

impl SharedRandom {
    pub fn of(seed: u64) -> Self {
        SharedRandom(Arc::new(Mutex::new(Random::new(seed))))
    }

    pub fn next(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).draw()
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

impl Entropy for SharedRandom {
    fn bits(&self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}
