//! The quarantine of a ledger that may have forgotten claims: how it is seen, begun and ended.

use crate::args::OperatorArgs;
use crate::context::Context;
use crate::open::{self, TENANT};
use crate::operator::Operator;
use crate::output::{counted, stderr_is_terminal};
use crate::terminal_text;
use anyhow::Context as _;
use semel_core::ids::Reason;
use semel_core::time::{At, in_words};
use semel_doors::stats;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::small_records::{Epoch, QUARANTINE};
use semel_ledger::sqlite::{SecretRenewal, renew_secret};
use std::process::ExitCode;

pub fn show(context: &Context) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let epoch = match context.existing_ledger(&clock)? {
        Some(ledger) => block_on(ledger.epoch())?.1,
        None => None,
    };
    print(context, epoch.as_ref(), clock.now());
    Ok(ExitCode::SUCCESS)
}

/// `semel ledger mark-restored`.
pub fn begin(context: &Context, reason: &str) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let (reason, now) = (Reason::parse(reason).context("--reason")?, clock.now());
    let epoch = block_on(context.ledger(&clock)?.bump_epoch(reason.as_str(), now))?;
    print(context, Some(&epoch), now);
    Ok(ExitCode::SUCCESS)
}

/// `semel ledger end-quarantine`.
pub fn end(context: &Context, args: &OperatorArgs) -> anyhow::Result<ExitCode> {
    let operator = Operator::find(context, args.token.as_deref())?;
    let clock = SystemClock::start();
    let ledger = context.ledger(&clock)?;
    let what = "End the quarantine? Calls that may be older than the loss run then.";
    let by = operator.confirm(&ledger, TENANT, what)?;
    let now = clock.now();
    let epoch = block_on(ledger.accept_epoch(&by, now))?;
    print(context, Some(&epoch), now);
    let doubts = block_on(stats::in_doubt(&ledger, None, now))?;
    if doubts > 0 {
        let effects = counted(doubts as usize, "effect is", "effects are");
        context.output.say(format_args!(
            "{effects} still in doubt. A person settles each:\nhint: semel ledger  # lists them"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

pub fn rotate_secret(context: &Context, reason: &str, replace: bool) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let (reason, now) = (Reason::parse(reason).context("--reason")?, clock.now());
    let file = context.environment.ledger_file(context.global.ledger.as_deref())?;
    let renewal = if replace { SecretRenewal::Replace } else { SecretRenewal::OnlyIfMissing };
    let options = open::options(&file, &context.environment, &clock);
    let epoch = renew_secret(&options, renewal, reason.as_str(), now)?;
    context.output.say(
        "The ledger has a new secret and recognises none of its earlier calls. Calls that it has not seen are held \
         until the quarantine ends. Cancel those runs again that must stay cancelled.",
    );
    print(context, Some(&epoch), now);
    Ok(ExitCode::SUCCESS)
}

fn print(context: &Context, epoch: Option<&Epoch>, now: At) {
    let quarantined_until =
        epoch.filter(|epoch| epoch.forgotten_before(now).is_some()).map(|epoch| epoch.since.plus(QUARANTINE));
    if context.output.json {
        context.output.document(&serde_json::json!({
            "number": epoch.map_or(1, |epoch| epoch.number),
            "since": epoch.map(|epoch| epoch.since.to_string()),
            "reason": epoch.map(|epoch| &epoch.reason),
            "accepted": epoch.is_none_or(|epoch| epoch.accepted),
            "quarantined_until": quarantined_until.map(|at| at.to_string()),
        }));
        return;
    }
    let Some(epoch) = epoch else {
        context.output.data("No quarantine: as far as is known, this ledger has lost nothing.");
        return;
    };
    let Epoch { since, reason, .. } = epoch;
    let reason = terminal_text::line(reason);
    context.output.data(match quarantined_until {
        Some(until) => format!(
            "Quarantine since {since}: {reason}\nCalls that may be older are held until {until} ({} more).",
            in_words(until.since(now))
        ),
        None => format!("No quarantine. The last one began {since}: {reason}"),
    });
    if quarantined_until.is_some() && stderr_is_terminal() {
        context.output.say("hint: if no older call will be retried: semel ledger end-quarantine");
    }
}
