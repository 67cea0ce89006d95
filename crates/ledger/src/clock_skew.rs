//! Whether this host's clock is close enough to those of the others that share its ledger.

use crate::Error;
use crate::engine_facts::EngineFacts;
use crate::store::Store;
use semel_core::effect::CLOCKS_DIFFER_MAX;
use semel_core::time::At;
use std::time::Duration;

/// Half of the difference between two hosts, because each is compared with the server alone. It allows for servers that
/// tell whole seconds.
const SKEW_MAX: Duration = CLOCKS_DIFFER_MAX.checked_div(2).expect("2 is not 0");

/// A host's clock beside that of its ledger's server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// The ledger lies on this host.
    SameClock,
    /// Or the server does not tell the time: it has other troubles then, or none.
    Close,
    /// In words.
    Apart(String),
}

pub async fn compare(store: &dyn Store, clock: impl Fn() -> At) -> Comparison {
    let asked_at = clock();
    let Ok(EngineFacts { clock_ahead_ms, .. }) = store.describe(asked_at).await else {
        return Comparison::Close;
    };
    let Some(ahead_ms) = clock_ahead_ms else { return Comparison::SameClock };
    let skew = Duration::from_millis(ahead_ms.unsigned_abs());
    let (skew, word) = match ahead_ms {
        // The server may have read its clock as late as the answer came.
        1.. => (skew.saturating_sub(clock().since(asked_at)), "behind"),
        _ => (skew, "ahead of"),
    };
    match skew <= SKEW_MAX {
        true => Comparison::Close,
        false => Comparison::Apart(format!(
            "this host's clock is {} s {word} the server's; set both by NTP",
            skew.as_secs()
        )),
    }
}

/// Refuses a host whose clock is far from that of the ledger's server: hosts judge deadlines by their clocks, and the
/// silence after which a probe's "no" counts.
pub async fn check(store: &dyn Store, address: &str, clock: impl Fn() -> At) -> Result<(), Error> {
    match compare(store, clock).await {
        Comparison::SameClock | Comparison::Close => Ok(()),
        Comparison::Apart(what) => Err(Error::Engine { ledger: address.to_owned(), what }),
    }
}
