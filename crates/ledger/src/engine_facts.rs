//! The engine of a ledger, as people ask about it.

use crate::Error;
use crate::store::Store;
use semel_core::effect::CLOCKS_DIFFER_MAX;
use semel_core::time::At;
use std::time::Duration;

/// Which server it is, and how far its answers can be trusted to stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFacts {
    /// Name and version.
    pub server: String,
    /// The settings that decide about a power cut.
    pub persistence: String,
    /// How far an acknowledged commit can be trusted to stay.
    pub durability: String,
    /// How far the clock of a server is ahead of this host's, the question's way included. `None`: it is this host's.
    pub clock_ahead_ms: Option<i64>,
}

impl EngineFacts {
    pub(crate) fn of_memory() -> EngineFacts {
        EngineFacts {
            server: "memory".to_owned(),
            persistence: "none".to_owned(),
            durability: "nothing survives the process".to_owned(),
            clock_ahead_ms: None,
        }
    }
}

/// Half of what two hosts' clocks may differ by. Servers that tell whole seconds alone are off by one of these five.
const CLOCK_SKEW_MAX: Duration = CLOCKS_DIFFER_MAX.checked_div(2).expect("2 is not 0");

/// Refuses a host whose clock is far from that of the ledger's server: deadlines, and the silence after which a probe's
/// "no" counts, are judged by the clocks of hosts.
pub async fn check_clock(store: &dyn Store, address: &str, now: At) -> Result<(), Error> {
    // A server that may not be asked for its time has other troubles, or none.
    let Ok(EngineFacts { clock_ahead_ms: Some(ahead), .. }) = store.describe(now).await else {
        return Ok(());
    };
    if u128::from(ahead.unsigned_abs()) <= CLOCK_SKEW_MAX.as_millis() {
        return Ok(());
    }
    let (seconds, word) = (ahead.unsigned_abs() / 1_000, if ahead > 0 { "behind" } else { "ahead of" });
    let what = format!("this host's clock is {seconds} s {word} the server's; set both by NTP");
    Err(Error::Engine { ledger: address.to_owned(), what })
}

/// How many milliseconds the first is ahead of the second.
pub(crate) fn ahead_ms(there: At, here: At) -> i64 {
    let ms = |at: At| i64::try_from(at.0 / 1_000).unwrap_or(i64::MAX);
    ms(there) - ms(here)
}
