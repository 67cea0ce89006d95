//! `semel ledger reopen` and `semel ledger allow-repeat`: a person's word about what has ended.

use super::named::{self, recognisable};
use crate::args::BecauseArgs;
use crate::context::Context;
use crate::effect_json;
use crate::operator::Operator;
use crate::output::Hinted;
use anyhow::Context as _;
use semel::command::Change;
use semel_core::answer::EffectWord;
use semel_core::digest::Digest;
use semel_core::effect::{Attempt, Doubt, Effect, InDoubt, LastSend, Ruling, State};
use semel_core::ids::Reason;
use semel_core::lifecycle::{self, Event, Illegal};
use semel_core::time::At;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::Ledger;
use semel_ledger::holders::Liveness;
use semel_ledger::{Error, RecordUpdate};
use serde_json::Value;

/// Whether an effect in doubt may yet be carried out: a process that could still send it is alive, or a call waits.
pub fn may_still_happen(ledger: &Ledger, effect: &Effect, now: At) -> bool {
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
pub fn reopen(context: &Context, because: &BecauseArgs) -> anyhow::Result<Change> {
    rule(
        context,
        because,
        Words {
            is_done: |effect| matches!(effect.state, State::InDoubt(InDoubt { why: Doubt::Reopened(_), .. })),
            event: |ruling| Event::Reopened { ruling },
            asks: "Take back the ruling on",
            said: |_| "is in doubt again, and equal calls are held",
            why_not: "no ruling made it so",
        },
        |ledger, effect, ruling| Ok(block_on(ledger.reopen(effect.id, ruling))?),
    )
}

/// Somebody wants it once more.
pub fn allow_repeat(context: &Context, because: &BecauseArgs) -> anyhow::Result<Change> {
    let policy = context.policy()?;
    rule(
        context,
        because,
        Words {
            // Also once the repeat has run: it was allowed once.
            is_done: |effect| effect.repeat_permitted.is_some(),
            event: |ruling| Event::RepeatPermitted { ruling },
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
    /// The effect stands so already.
    is_done: fn(&Effect) -> bool,
    event: fn(Ruling) -> Event,
    asks: &'static str,
    said: fn(&Effect) -> &'static str,
    why_not: &'static str,
}

fn rule(
    context: &Context,
    because: &BecauseArgs,
    words: Words,
    change: impl FnOnce(&Ledger, &Effect, Ruling) -> anyhow::Result<RecordUpdate>,
) -> anyhow::Result<Change> {
    let operator = Operator::unless_dry(context, &because.operator, &because.change)?;
    let clock = SystemClock::start();
    let ledger = context.existing_ledger(&clock)?;
    let (key, effect) = named::find_to_change(ledger.as_ref(), &because.name, &because.change, clock.now())?;
    let ledger = ledger.expect("an effect was found in it");
    let id = effect.id;
    let refused = |error: anyhow::Error| match error.downcast_ref() {
        Some(Error::Illegal(Illegal { state, .. })) => Hinted::error(
            format!("{id} is {state}, and {}", words.why_not),
            format!("semel ledger show {id}"),
        ),
        _ => error,
    };
    if (words.is_done)(&effect) {
        let text = format!("{id} {} already.", (words.said)(&effect));
        return Ok(Change::noop(document(&ledger, key, &effect)?, text));
    }
    let Some(operator) = operator else {
        let event = (words.event)(ruling(String::new(), &because.reason, clock.now())?);
        rehearse(&effect, &event).map_err(|error| refused(error.into()))?;
        return Ok(Change::would(EffectWord::Updated, document(&ledger, key, &effect)?));
    };
    let what = format!("{} {}?", words.asks, recognisable(&effect));
    let by = operator.confirm(&ledger, &effect.facts.tenant, what)?;
    let ruling = ruling(by, &because.reason, clock.now())?;
    let changed = change(&ledger, &effect, ruling).map_err(refused)?;
    let effect = changed.snapshot.effect().expect("it was just changed");
    let text = format!("{id} {}.", (words.said)(effect));
    Ok(Change::updated(document(&ledger, key, effect)?, text))
}

/// The effect as it stands, to answer with.
pub(super) fn document(ledger: &Ledger, key: Digest, effect: &Effect) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(effect_json::read(ledger, key, effect)?)?)
}

/// Whether the lifecycle would take it.
pub(super) fn rehearse(effect: &Effect, event: &Event) -> Result<(), Error> {
    Ok(lifecycle::next(effect, event).map(drop)?)
}

pub fn ruling(by: String, reason: &str, at: At) -> anyhow::Result<Ruling> {
    Ok(Ruling { by, reason: Reason::parse(reason).context("--reason")?, at })
}
