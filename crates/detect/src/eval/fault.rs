//! Faults, as scenarios name them.

use super::world::{EffectTime, FirstAnswer, WorldPlan};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorldFault {
    None,
    /// The answer is lost; the effect happened.
    LostAfter,
    /// The answer is lost; the effect did not happen.
    LostBefore,
    /// The answer is lost, and the effect happens a little later.
    LateCommit,
    /// A server error, although it happened.
    UnavailableAfter,
    /// "Too many requests", although it happened.
    RateLimitedAfter,
    /// A success, although nothing happened.
    NeverDone,
    /// The tool dies behind the effect, or in front of it.
    CrashAfter,
    CrashBefore,
    /// It happens at once, and the answer takes long.
    SlowAnswer,
    /// The agent's call is delivered twice.
    DeliveredTwice,
    /// The answer is lost, and reads do not show the effect yet, as those of a replica that lags.
    StaleRead,
}

impl WorldFault {
    pub fn plan(self) -> WorldPlan {
        let error = |status: u16, words: &str| FirstAnswer::Error(status, words.to_owned());
        let (effect, answer) = match self {
            WorldFault::None | WorldFault::DeliveredTwice => (EffectTime::Now, FirstAnswer::Success(None)),
            WorldFault::LostAfter | WorldFault::StaleRead => (EffectTime::Now, FirstAnswer::Lost),
            WorldFault::LostBefore => (EffectTime::Never, FirstAnswer::Lost),
            WorldFault::LateCommit => (EffectTime::Late, FirstAnswer::Lost),
            WorldFault::UnavailableAfter => (EffectTime::Now, error(503, "503 Service Unavailable")),
            WorldFault::RateLimitedAfter => (EffectTime::Now, error(429, "429 Too Many Requests")),
            WorldFault::NeverDone => (EffectTime::Never, FirstAnswer::Success(None)),
            WorldFault::CrashAfter => (EffectTime::Now, FirstAnswer::Crash),
            WorldFault::CrashBefore => (EffectTime::Never, FirstAnswer::Crash),
            WorldFault::SlowAnswer => (EffectTime::Now, FirstAnswer::Slow),
        };
        let stale_reads = if self == WorldFault::StaleRead { 2 } else { 0 };
        WorldPlan { stale_reads, ..WorldPlan::new(effect, answer) }
    }
}
