//! Whether people hear of doubts.

use super::Checks;
use crate::context::Context;
use crate::notify;
use semel_core::policy::Policy;
use semel_doors::notify::Listener;
use semel_gate::clock::block_on;
use semel_ledger::Ledger;

pub fn examine(
    checks: &mut Checks,
    context: &Context,
    ledger: &Ledger,
    policy: &Policy,
) -> Result<(), semel_ledger::Error> {
    // A secret that is missing is said where credentials are.
    for listener in notify::listeners(context, policy).unwrap_or_default() {
        let name = listener.name();
        let missing = match &listener {
            Listener::Command(command) => command.program().err(),
            Listener::Url(_) => None,
        };
        let progress = block_on(listener.progress(ledger))?;
        let failed = progress.and_then(|progress| progress.failed);
        match (missing, failed) {
            (Some(why), _) => {
                checks.warn("notify", format!("{name} cannot be started: {why}"), "correct [notify]")
            }
            (None, Some(failed)) => checks.warn(
                "notify",
                format!("{name} {} at {}, so {} was not told", failed.why, failed.at, failed.about),
                &format!("semel ledger show {}", failed.about),
            ),
            (None, None) if block_on(listener.owes(ledger))? => {
                checks.warn("notify", format!("{name} is still to be told of doubts"), "semel ledger")
            }
            (None, None) => checks.ok("notify", format!("{name} is told of doubts")),
        }
    }
    Ok(())
}
