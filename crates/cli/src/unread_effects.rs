//! Open effects with identities that the policy no longer uses. Their calls are still known by their arguments, but a
//! person should hear that an edit of the policy concerns them.

use crate::context::Context;
use crate::output::counted;
use semel::ledger_address::{LedgerAddress, Purpose};
use semel_core::policy::Policy;
use semel_gate::clock::{SystemClock, block_on};
use semel_ledger::store::{By, PAGE_ROWS_MAX};
use semel_ledger::{Error, Ledger};

/// How many there are among the oldest open ones, of one page: to say so is no reason to start late.
pub fn count(ledger: &Ledger, policy: &Policy) -> Result<usize, Error> {
    let page = block_on(ledger.listing(By::Open, None, PAGE_ROWS_MAX))?;
    Ok(page.items.iter().filter(|(_, known)| !policy.still_reads(&known.effect.facts)).count())
}

/// In words; `None` if there are none.
pub fn sentence(count: usize) -> Option<String> {
    let (effects, have) =
        (counted(count, "open effect", "open effects"), if count == 1 { "has" } else { "have" });
    let known = "calls with the same arguments are still held";
    (count > 0).then(|| format!("{effects} {have} identities that this policy no longer uses; {known}"))
}

/// The same of the ledger in a file that the context names, where there is one that can be read.
pub fn of_file(context: &Context, policy: &Policy) -> Option<String> {
    let address = context.ledger_address().ok()?;
    if !matches!(address, LedgerAddress::File(_)) || !address.is_founded() {
        return None;
    }
    let ledger = address.open(&context.environment.settings, &SystemClock::start(), Purpose::Reading).ok()?;
    sentence(count(&ledger, policy).ok()?)
}
