//! `semel ledger prune`: retention, now instead of by itself.

use crate::commands::{Context, span};
use semel_core::policy::Retention;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::prune::PruneReport;
use std::process::ExitCode;

pub fn run(context: &Context, replies: Option<&str>) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let kept = context.policy()?.retention;
    let replies = replies.map(|text| span("--replies", text)).transpose()?.unwrap_or(kept.replies);
    let report = match context.existing_ledger(&clock)? {
        Some(ledger) => block_on(ledger.prune(Retention { replies, ..kept }, clock.now()))?,
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
