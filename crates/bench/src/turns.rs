//! Several kinds of reading in short turns: a machine that is faster now and slower then is so for all of them.

use super::measure;
use std::time::Duration;

/// How often each kind has its turn.
const TURNS: u32 = 8;

/// So many readings are timed together.
pub const BATCH: u64 = 32;

/// One kind: a thread's so-manieth batch, and what it took. What it prepares for it need not count.
pub type ReadFn<'a> = &'a (dyn Fn(usize, u64) -> Duration + Sync);

/// What all threads together read.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadResult {
    pub count: u64,
    /// Of one thread after the other.
    took: Duration,
    threads: usize,
}

impl ReadResult {
    pub fn per_second(&self) -> f64 {
        self.count as f64 * self.threads as f64 / self.took.as_secs_f64()
    }

    /// What one takes its thread.
    pub fn micros(&self) -> f64 {
        self.took.as_secs_f64() * 1e6 / self.count as f64
    }
}

/// Reads from so many threads for a span of each kind.
pub fn in_turns<const KINDS: usize>(
    threads: usize,
    span: Duration,
    kinds: [ReadFn<'_>; KINDS],
) -> [ReadResult; KINDS] {
    let mut all = [ReadResult { threads, ..ReadResult::default() }; KINDS];
    for _ in 0..TURNS {
        for (kind, read) in kinds.into_iter().zip(&mut all) {
            turn(span / TURNS, kind, read);
        }
    }
    all
}

fn turn(span: Duration, kind: ReadFn<'_>, read: &mut ReadResult) {
    let (already, started) = (read.count / BATCH, measure::now());
    let one = |thread: usize| {
        let (mut batches, mut took) = (0, Duration::ZERO);
        while started.elapsed() < span {
            took += kind(thread, already + batches);
            batches += 1;
        }
        (batches, took)
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..read.threads).map(|thread| scope.spawn(move || one(thread))).collect();
        for reader in readers {
            let (batches, took) = reader.join().expect("a reader does not panic");
            read.count += batches * BATCH;
            read.took += took;
        }
    });
}
