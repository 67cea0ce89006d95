//! Many callers at once, each starting its next call as soon as the last one is answered.

use super::measure::{self, Times};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

#[derive(Debug)]
pub struct LoadResult {
    pub calls: u64,
    pub took: Duration,
    /// Processor time that all calls took together, in seconds.
    pub cpu: f64,
    pub times: Times,
}

impl LoadResult {
    /// Microseconds of processor time a call.
    pub fn cpu_micros(&self) -> f64 {
        self.cpu * 1e6 / self.calls as f64
    }

    pub fn per_second(&self) -> f64 {
        self.calls as f64 / self.took.as_secs_f64()
    }
}

/// Calls `call` with 0, 1, 2, … from so many callers until the time is over.
pub fn drive<C, F>(runtime: &Runtime, callers: usize, span: Duration, call: C) -> LoadResult
where
    C: Fn(u64) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send,
{
    let call = Arc::new(call);
    let next = Arc::new(AtomicU64::new(0));
    let cpu_before = measure::own_seconds();
    let started = measure::now();
    let caller = || {
        let (call, next) = (Arc::clone(&call), Arc::clone(&next));
        runtime.spawn(async move {
            let mut times = Times::default();
            while started.elapsed() < span {
                let before = measure::now();
                call(next.fetch_add(1, Ordering::Relaxed)).await;
                times.add(before.elapsed());
            }
            times
        })
    };
    let callers: Vec<_> = (0..callers).map(|_| caller()).collect();
    let mut times = Times::default();
    runtime.block_on(async {
        for caller in callers {
            times.join(caller.await.expect("a call does not panic"));
        }
    });
    let cpu = measure::own_seconds() - cpu_before;
    LoadResult { calls: next.load(Ordering::Relaxed), took: started.elapsed(), cpu, times }
}
