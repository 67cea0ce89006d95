//! Whether anything is recorded of a run: whoever mistypes its name should hear of it.

use semel_core::intent::run_key;
use semel_ledger::cancel::CancelReport;
use semel_ledger::store::Latest;
use semel_ledger::{Error, Ledger};

/// An effect that was opened in it, or a fence that was set for it.
pub async fn is_on_record(ledger: &Ledger, tenant: &str, run: &str) -> Result<bool, Error> {
    let key = run_key(ledger.secret(), tenant, run);
    let (_, _, fence) = ledger.fence(key).await?;
    Ok(fence.is_some() || !ledger.store().latest(Latest::Run(key), None, 1).await?.items.is_empty())
}

/// An effect that was opened elsewhere can have attempts of a run as well; only its fence lists them.
pub fn lists_effects(cancelled: &CancelReport) -> bool {
    !(cancelled.applied.is_empty() && cancelled.in_flight.is_empty() && cancelled.in_doubt.is_empty())
}
