//! `semel ledger reopen` and `semel ledger allow-repeat`: a person's word about what has ended.

use super::named::{self, recognisable};
use crate::args::BecauseArgs;
use crate::context::Context;
use crate::effect_json;
use crate::open::LocalLedger;
use crate::operator::Operator;
use crate::output::Hinted;
use anyhow::Context as _;
use semel_core::effect::{Attempt, Effect, LastSend, Ruling, State};
use semel_core::ids::Reason;
use semel_core::lifecycle::Illegal;
use semel_core::time::At;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::holders::Liveness;
use semel_ledger::{Error, RecordUpdate};
use std::process::ExitCode;

/// Whether an effect in doubt may yet be carried out: a process that could still send it is alive, or a call waits.
pub(super) fn may_still_happen(ledger: &LocalLedger, effect: &Effect, now: At) -> bool {
    let may_still_send = |attempt: &Attempt| match attempt.last_send {
        LastSend::By(last) => now <= last,
        LastSend::WhileAlive => true,
    };
    let unsure = effect.attempts.iter().filter(|a| a.gone_at.is_none() && may_still_send(a));
    let holders = block_on(ledger.liveness(unsure.map(|attempt| attempt.owner)));
    let may_live = |holders: Vec<Liveness>| holders.into_iter().any(|holder| holder != Liveness::Dead);
    matches!(effect.state, State::InDoubt(_))
        && (holders.map_or(true, may_live) || block_on(ledger.is_awaited(effect, now)).unwrap_or(true))
}

/// A ruling was wrong.
pub fn reopen(context: &Context, because: &BecauseArgs) -> anyhow::Result<ExitCode> {
    rule(
        context,
        because,
        Words {
            asks: "Take back the ruling on",
            said: |_| "is in doubt again, and equal calls are held",
            why_not: "no ruling made it so",
        },
        |ledger, effect, ruling| Ok(block_on(ledger.reopen(effect.id, ruling))?),
    )
}

/// Somebody wants it once more.
pub fn allow_repeat(context: &Context, because: &BecauseArgs) -> anyhow::Result<ExitCode> {
    let policy = context.policy()?;
    rule(
        context,
        because,
        Words {
            asks: "Allow a repeat of",
            said: |effect| match effect.delivered_at {
                Some(_) => "may happen once more: the next equal call runs",
                None => {
                    "may happen once more. Nobody has got its answer yet: the next equal call gets that, and the one \
                     after it runs"
                }
            },
            why_not: "only an applied effect can be repeated",
        },
        |ledger, effect, ruling| {
            if let Some(why) = policy.never_again(&effect.facts) {
                return Err(Hinted::error(why, format!("semel ledger show {}", effect.id)));
            }
            Ok(block_on(ledger.permit_repeat(effect.id, ruling))?)
        },
    )
}

struct Words {
    asks: &'static str,
    said: fn(&Effect) -> &'static str,
    why_not: &'static str,
}

fn rule(
    context: &Context,
    because: &BecauseArgs,
    words: Words,
    change: impl FnOnce(&LocalLedger, &Effect, Ruling) -> anyhow::Result<RecordUpdate>,
) -> anyhow::Result<ExitCode> {
    let operator = Operator::find(context, because.operator.token.as_deref())?;
    let clock = SystemClock::start();
    let ledger = context.existing_ledger(&clock)?;
    let (key, effect) = named::find(ledger.as_ref(), &because.name, clock.now())?;
    let ledger = ledger.expect("an effect was found in it");
    let id = effect.id;
    let what = format!("{} {}?", words.asks, recognisable(&effect));
    let by = operator.confirm(&ledger, &effect.facts.tenant, what)?;
    let ruling = ruling(by, &because.reason, clock.now())?;
    let changed = change(&ledger, &effect, ruling).map_err(|error| match error.downcast_ref() {
        Some(Error::Illegal(Illegal { state, .. })) => Hinted::error(
            format!("{id} is {state}, and {}", words.why_not),
            format!("semel ledger show {id}"),
        ),
        _ => error,
    })?;
    let effect = changed.snapshot.effect().expect("it was just changed");
    if context.output.json {
        context.output.document(&effect_json::read(&ledger, key, effect)?);
    } else {
        context.output.data(format_args!("{id} {}.", (words.said)(effect)));
    }
    Ok(ExitCode::SUCCESS)
}

pub fn ruling(by: String, reason: &str, at: At) -> anyhow::Result<Ruling> {
    Ok(Ruling { by, reason: Reason::parse(reason).context("--reason")?, at })
}
