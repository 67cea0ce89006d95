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

/// Refuses a host whose clock is far from that of the ledger's server: hosts judge deadlines by their clocks, and the
/// silence after which a probe's "no" counts.
pub async fn check(store: &dyn Store, address: &str, clock: impl Fn() -> At) -> Result<(), Error> {
    let asked_at = clock();
    // A server that may not be asked for its time has other troubles, or none.
    let Ok(EngineFacts { clock_ahead_ms: Some(ahead_ms), .. }) = store.describe(asked_at).await else {
        return Ok(());
    };
    let skew = Duration::from_millis(ahead_ms.unsigned_abs());
    let (skew, word) = match ahead_ms {
        // The server may have read its clock as late as the answer came.
        1.. => (skew.saturating_sub(clock().since(asked_at)), "behind"),
        _ => (skew, "ahead of"),
    };
    if skew <= SKEW_MAX {
        return Ok(());
    }
    let what = format!("this host's clock is {} s {word} the server's; set both by NTP", skew.as_secs());
    Err(Error::Engine { ledger: address.to_owned(), what })
}
