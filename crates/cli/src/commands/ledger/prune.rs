//! `semel ledger prune`: retention, now instead of by itself.

use crate::context::Context;
use semel_core::policy::Retention;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::prune::PruneReport;
use std::process::ExitCode;
use std::time::Duration;

pub fn run(context: &Context, replies: Option<Duration>, clock_is_right: bool) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let kept = context.policy()?.retention;
    let replies = replies.unwrap_or(kept.replies);
    let report = match context.existing_ledger(&clock)? {
        Some(ledger) => {
            let now = clock.now();
            if let Some(newest) = block_on(ledger.far_behind(now))?.filter(|_| !clock_is_right) {
                anyhow::bail!(
                    "nothing was pruned: the clock says {now}, and the ledger's newest line is from {newest}. A \
                     clock that is ahead would drop facts that retries still need. If it is right, run this again \
                     with --clock-is-right"
                );
            }
            block_on(ledger.prune(Retention { replies, ..kept }, now, clock.uptime()))?
        }
        None => PruneReport::default(),
    };
    let PruneReport { replies_dropped, facts_dropped } = report;
    if context.output.json {
        let document =
            serde_json::json!({"replies_dropped": replies_dropped, "facts_dropped": facts_dropped});
        context.output.document(&document);
    } else {
        context.output.data(format_args!("Dropped {replies_dropped} replies and {facts_dropped} facts."));
    }
    Ok(ExitCode::SUCCESS)
}
