//! `semel ledger prune`: retention, now instead of by itself.

use crate::args::PruneArgs;
use crate::context::Context;
use semel::command::Change;
use semel_core::answer::EffectWord;
use semel_core::policy::Retention;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::prune::PruneReport;

pub fn run(context: &Context, args: &PruneArgs) -> anyhow::Result<Change> {
    let clock = SystemClock::start();
    let kept = context.policy()?.retention;
    let retention = Retention { replies: args.replies.unwrap_or(kept.replies), ..kept };
    let report = match context.existing_ledger(&clock)? {
        Some(ledger) => {
            let now = clock.now();
            if let Some(newest) = block_on(ledger.far_behind(now))?.filter(|_| !args.clock_is_right) {
                anyhow::bail!(
                    "nothing was pruned: the clock says {now}, and the ledger's newest line is from {newest}. A \
                     clock that is ahead would drop facts that retries still need. If it is right, run this again \
                     with --clock-is-right"
                );
            }
            match args.change.dry_run {
                true => block_on(ledger.count_prunable(retention, now, clock.uptime()))?,
                false => block_on(ledger.prune(retention, now, clock.uptime()))?,
            }
        }
        None => PruneReport::default(),
    };
    let PruneReport { replies_dropped, facts_dropped } = report;
    let effect = if report == PruneReport::default() { EffectWord::Noop } else { EffectWord::Deleted };
    let document = serde_json::json!({"replies_dropped": replies_dropped, "facts_dropped": facts_dropped});
    Ok(match args.change.dry_run {
        true => Change::would(effect, document),
        false => Change::new(
            effect,
            document,
            format!("Dropped {replies_dropped} replies and {facts_dropped} facts."),
        ),
    })
}
