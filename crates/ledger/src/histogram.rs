//! How long things take, counted in buckets. Adding is one atomic step, so it may stand on the hot path.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of the buckets, in microseconds: from what a memory takes to what a sick disk does.
pub const BUCKETS_US: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
    30_000_000,
];

#[derive(Debug, Default)]
pub struct Histogram {
    /// One for each end, and one for what took longer than all of them.
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    sum_us: AtomicU64,
}

/// The counts at some moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// Not cumulative; the last one has no upper end.
    pub buckets: Vec<u64>,
    pub sum_us: u64,
}

impl Histogram {
    pub fn add(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.iter().position(|end| us <= *end).unwrap_or(BUCKETS_US.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    pub fn counted(&self) -> HistogramSnapshot {
        let buckets = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        HistogramSnapshot { buckets, sum_us: self.sum_us.load(Ordering::Relaxed) }
    }
}

impl HistogramSnapshot {
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_span_falls_into_the_bucket_whose_end_it_does_not_pass() {
        let times = Histogram::default();
        for us in [0, 100, 101, 1_000, u64::MAX / 2] {
            times.add(Duration::from_micros(us));
        }
        let counted = times.counted();
        assert_eq!((counted.buckets[0], counted.buckets[1], counted.buckets[3]), (2, 1, 1));
        assert_eq!((counted.buckets[BUCKETS_US.len()], counted.count()), (1, 5));
    }
}
