//! What was asked, what was sent, and what that saved.

use super::usage::Tokens;
use semel_core::digest::Digest;
use semel_core::effect::STORM;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Who sent a request: the caller, or one of the layers that send it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// It is new.
    Caller,
    /// The SDK says that it has sent it before.
    Sdk,
    /// Somebody above the SDK: the same request came a moment ago, and the SDK knows of no retry.
    Above,
    /// Whoever named the step.
    Key,
}

/// All that is counted of one action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    pub asked: BTreeMap<Layer, u64>,
    /// Attempts that went upstream.
    pub sent: u64,
    /// Requests that another one's attempt answered.
    pub joined: u64,
    /// Requests that the record answered.
    pub replayed: u64,
    pub used: Tokens,
    pub saved: Tokens,
}

#[derive(Debug, Default)]
pub struct Counts {
    totals: Mutex<BTreeMap<&'static str, Totals>>,
    seen: Mutex<HashMap<Digest, Duration>>,
}

/// What tells the layers apart.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub intent: Digest,
    /// The SDK's own count of its retries.
    pub retry: u32,
    pub named: bool,
    /// Monotonic.
    pub now: Duration,
}

/// Requests that are remembered for a moment. Past so many the oldest are few beside them, and all are forgotten.
const SEEN_MAX: usize = 16_384;

impl Counts {
    /// A request came.
    pub fn asked(&self, action: &'static str, request: Request) {
        let again = self.seen_before(request.intent, request.now);
        let layer = match (request.retry, again) {
            (1.., _) => Layer::Sdk,
            (0, true) if request.named => Layer::Key,
            (0, true) => Layer::Above,
            (0, false) => Layer::Caller,
        };
        self.change(action, |totals| *totals.asked.entry(layer).or_default() += 1);
    }

    pub fn change(&self, action: &'static str, change: impl FnOnce(&mut Totals)) {
        change(lock(&self.totals).entry(action).or_default());
    }

    pub fn totals(&self) -> BTreeMap<&'static str, Totals> {
        lock(&self.totals).clone()
    }

    fn seen_before(&self, intent: Digest, now: Duration) -> bool {
        let mut seen = lock(&self.seen);
        if seen.len() >= SEEN_MAX {
            seen.retain(|_, at| now.saturating_sub(*at) < STORM);
            if seen.len() >= SEEN_MAX {
                seen.clear();
            }
        }
        seen.insert(intent, now).is_some_and(|before| now.saturating_sub(before) < STORM)
    }
}

impl Tokens {
    pub fn add(&mut self, more: Tokens) {
        self.input += more.input;
        self.output += more.output;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_for_the_layer_that_sent_it() {
        let counts = Counts::default();
        let ask = |text: &[u8], retry, named, seconds| {
            let now = Duration::from_secs(seconds);
            counts.asked("llm:x/y", Request { intent: Digest::of(&[text]), retry, named, now });
        };
        ask(b"a", 0, false, 0);
        ask(b"a", 1, false, 1);
        ask(b"a", 2, false, 3);
        ask(b"a", 0, false, 5);
        ask(b"a", 0, false, 100);
        ask(b"b", 0, true, 100);
        ask(b"b", 0, true, 101);
        let expected = [(Layer::Caller, 3), (Layer::Sdk, 2), (Layer::Above, 1), (Layer::Key, 1)];
        assert_eq!(counts.totals()["llm:x/y"].asked, BTreeMap::from(expected));
    }
}
