//! `semel ledger epoch`: whether the ledger may have forgotten claims.

use crate::args::EpochCommand;
use crate::commands::Context;
use crate::house::{self, TENANT};
use crate::neutral;
use crate::operator::Operator;
use crate::output::{counted, stderr_is_terminal};
use semel_core::ids::Reason;
use semel_core::time::{At, in_words};
use semel_doors::stats;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::small_records::{Epoch, QUARANTINE};
use semel_ledger::sqlite::{Renewal, renew_secret};
use std::process::ExitCode;

pub fn run(context: &Context, command: Option<&EpochCommand>) -> anyhow::Result<ExitCode> {
    use anyhow::Context as _;
    let clock = SystemClock::start();
    let now = clock.now();
    let reason = |text: &str| Reason::parse(text).context("--reason");
    let mut held = None;
    let epoch = match command {
        None => match context.existing_ledger(&clock)? {
            Some(ledger) => block_on(ledger.epoch())?.1,
            None => None,
        },
        Some(EpochCommand::Bump { reason: text }) => {
            let reason = reason(text)?;
            Some(block_on(context.ledger(&clock)?.bump_epoch(reason.as_str(), now))?)
        }
        Some(EpochCommand::Accept(args)) => {
            let operator = Operator::find(context, args.token.as_deref())?;
            let ledger = context.ledger(&clock)?;
            let what = "End the quarantine? Calls that may be older than the loss run then.";
            let by = operator.confirm(&ledger, TENANT, what)?;
            let epoch = block_on(ledger.accept_epoch(&by, now))?;
            held = Some(block_on(stats::in_doubt(&ledger, None, now))?);
            Some(epoch)
        }
        Some(EpochCommand::NewSecret { reason: text, replace }) => {
            let reason = reason(text)?;
            let file = context.environment.ledger_file(context.global.ledger.as_deref())?;
            let renewal = if *replace { Renewal::Replace } else { Renewal::OnlyIfMissing };
            let options = house::options(&file, &context.environment, &clock);
            let epoch = renew_secret(&options, renewal, reason.as_str(), now)?;
            context.output.say(
                "The ledger has a new secret. It recognises no intent that it recorded before, so unseen intents are \
                 held until the quarantine ends; cancel runs again that must stay cancelled.",
            );
            Some(epoch)
        }
    };
    print(context, epoch.as_ref(), now);
    if let Some(doubts) = held.filter(|doubts| *doubts > 0) {
        let effects = counted(doubts as usize, "effect stays", "effects stay");
        context.output.say(format_args!(
            "{effects} in doubt, what was held until now among them. Each is settled by a person:\n\
             hint: semel ledger  # lists them"
        ));
    }
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
        context.output.data("epoch 1: the ledger has never been known to forget anything");
        return;
    };
    let Epoch { number, since, reason, .. } = epoch;
    let reason = neutral::line(reason);
    context.output.data(match quarantined_until {
        Some(until) => format!(
            "epoch {number} since {since}: {reason}\nIntents that may be older are held until {until} ({} more).",
            in_words(until.since(now))
        ),
        None => format!("epoch {number} since {since}: {reason}\nNo other call is held for it any more."),
    });
    if quarantined_until.is_some() && stderr_is_terminal() {
        context.output.say("hint: if nothing older will be retried: semel ledger epoch accept");
    }
}
