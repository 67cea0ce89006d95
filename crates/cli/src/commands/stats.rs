//! `semel stats`: what was asked, sent, done and saved.

use crate::args::StatsArgs;
use crate::context::Context;
use crate::table;
use semel_doors::stats::{Stats, StatsLine, stats};
use semel_gate::clock::{Clock, SystemClock, block_on};
use std::process::ExitCode;
use std::time::Duration;

pub fn run(context: &Context, args: &StatsArgs) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let since = args.since;
    let Some(ledger) = context.existing_ledger(&clock)? else {
        let nothing = empty(since, &clock);
        print(context, &nothing);
        return Ok(ExitCode::SUCCESS);
    };
    print(context, &block_on(stats(&ledger, args.tenant.as_deref(), since, clock.now()))?);
    Ok(ExitCode::SUCCESS)
}

fn empty(since: Duration, clock: &SystemClock) -> Stats {
    let began = semel_core::time::At(clock.now().0.saturating_sub(since.as_micros() as u64));
    let since = began.to_string()[..10].to_owned();
    Stats {
        schema_version: 1,
        since,
        total: StatsLine::default(),
        doors: Default::default(),
        in_doubt_now: 0,
    }
}

fn print(context: &Context, stats: &Stats) {
    if context.output.json {
        context.output.document(stats);
        return;
    }
    context.output.say(format_args!("since {} (UTC)", stats.since));
    let row = |name: &str, line: &StatsLine| {
        let numbers =
            [line.asked, line.sent, line.applied, line.saved(), line.in_doubt, line.duplicates_detected];
        std::iter::once(name.to_owned()).chain(numbers.map(|number| number.to_string())).collect()
    };
    let doors = stats.doors.iter().map(|(door, line)| row(door, line));
    let rows = doors.chain([row("total", &stats.total)]);
    let header = ["DOOR", "ASKED", "SENT", "HAPPENED", "SAVED", "IN DOUBT", "DUPLICATES"];
    for line in table::plain(&header, rows) {
        context.output.data(line);
    }
    let StatsLine { repeated, tokens, saved_tokens, .. } = &stats.total;
    context.output.data(format_args!(
        "repeated by transport {}, SDK {}, agent {}, other process {}",
        repeated.transport, repeated.sdk, repeated.agent, repeated.process
    ));
    if tokens.input + tokens.output + saved_tokens.input + saved_tokens.output > 0 {
        context.output.data(format_args!(
            "tokens in {}, out {}; saved in {}, out {}",
            tokens.input, tokens.output, saved_tokens.input, saved_tokens.output
        ));
    }
    if stats.total.cost + stats.total.saved_cost > 0.0 {
        context
            .output
            .data(format_args!("cost {:.4}, saved {:.4}", stats.total.cost, stats.total.saved_cost));
    }
    if stats.total.duplicates_detected > 0 {
        context.output.warn("duplicates were detected: semel ledger tail --no-follow shows which");
    }
    if stats.in_doubt_now > 0 {
        context.output.say(format_args!("hint: {} in doubt now: semel ledger", stats.in_doubt_now));
    }
}
