//! The stores' own clock. It measures commits and paces polls, and says how long ago the ledger was opened, for the
//! start of an epoch; no state of an effect ever depends on it.

use std::time::{Duration, Instant};

#[allow(
    clippy::disallowed_methods,
    reason = "measures the disk and paces polling; decides nothing about effects"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[allow(
    clippy::disallowed_methods,
    reason = "waits for another process's lock, which no clock of ours can drive"
)]
pub(crate) fn sleep(span: Duration) {
    std::thread::sleep(span);
}
