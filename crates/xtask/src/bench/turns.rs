//! Several kinds of reading in short turns: a machine that is faster now and slower then is so for all of them.

use super::measure;
use std::time::Duration;

/// How often each kind has its turn.
const TURNS: u32 = 8;

/// One kind: thread so-and-so reads for the so-manieth time.
pub type Reading<'a> = &'a (dyn Fn(usize, u64) + Sync);

#[derive(Debug, Clone, Copy, Default)]
pub struct Read {
    pub count: u64,
    pub took: Duration,
    /// Processor time, in seconds.
    pub cpu: f64,
}

impl Read {
    pub fn per_second(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64()
    }

    pub fn cpu_micros(&self) -> f64 {
        self.cpu * 1e6 / self.count as f64
    }
}

/// Reads from so many threads for a span of each kind.
pub fn in_turns<const KINDS: usize>(
    threads: usize,
    span: Duration,
    kinds: [Reading<'_>; KINDS],
) -> [Read; KINDS] {
    let mut all = [Read::default(); KINDS];
    for _ in 0..TURNS {
        for (kind, read) in kinds.into_iter().zip(&mut all) {
            turn(threads, span / TURNS, kind, read);
        }
    }
    all
}

fn turn(threads: usize, span: Duration, kind: Reading<'_>, read: &mut Read) {
    let (before, already, started) = (measure::own_seconds(), read.count, measure::now());
    let one = |thread: usize| {
        let mut count = 0;
        while started.elapsed() < span {
            kind(thread, already + count);
            count += 1;
        }
        count
    };
    let counts = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        readers.into_iter().map(|reader| reader.join().expect("a reader does not panic")).sum::<u64>()
    });
    read.count += counts;
    read.took += started.elapsed();
    read.cpu += measure::own_seconds() - before;
}
