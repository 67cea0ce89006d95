//! `semel ledger list`: effects, newest first.

use super::named;
use super::scan::{self, Which};
use crate::args::{ListArgs, StateChoice};
use crate::context::Context;
use crate::effect_json::{self, EffectJson};
use crate::table;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, State};
use semel_core::time::At;
use semel_gate::clock::{Clock, SystemClock};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Duration;

/// An effect may be recorded so much later than another one that was opened after it.
const CLOCK_MARGIN: Duration = Duration::from_hours(1);

pub fn run(context: &Context, args: &ListArgs, run: Option<&str>) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let now = clock.now();
    let opened_after = args.since.map(|span| At(now.0.saturating_sub(span.as_micros() as u64)));
    let Some(ledger) = context.existing_ledger(&clock)? else {
        return Ok(print(context, &[], false, args, now, Vec::new()));
    };
    let before = args.before.as_deref().map(|text| named::by_text(Some(&ledger), text)).transpose()?;
    let open = matches!(args.state, Some(StateChoice::InFlight | StateChoice::InDoubt));
    let which = Which { run, open };
    let wanted = |effect: &Effect| {
        args.state.is_none_or(|state| is(&effect.state, state))
            && args.action.as_ref().is_none_or(|text| effect.facts.action.contains(text.as_str()))
            && opened_after.is_none_or(|at| effect.opened_at >= at)
    };
    // Hosts write in the order in which they come, by clocks of their own.
    let too_old = |effect: &Effect| opened_after.is_some_and(|at| effect.opened_at.plus(CLOCK_MARGIN) < at);
    let mut newest: Vec<(Digest, Effect)> = Vec::new();
    let mut more = false;
    let before = before.as_ref().map(|(_, before)| before);
    let damaged = scan::newest_first(&ledger, which, before, now, |key, effect| {
        if too_old(&effect) {
            return Ok(ControlFlow::Break(()));
        }
        if wanted(&effect) {
            if newest.len() == args.limit.get() {
                more = true;
                return Ok(ControlFlow::Break(()));
            }
            newest.push((key, effect));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    scan::say_left_out(context.output, damaged);
    let items = match context.output.json {
        true => newest
            .iter()
            .map(|(key, effect)| effect_json::read(&ledger, *key, effect))
            .collect::<Result<_, _>>()?,
        false => Vec::new(),
    };
    Ok(print(context, &newest, more, args, now, items))
}

fn print(
    context: &Context,
    effects: &[(Digest, Effect)],
    more: bool,
    args: &ListArgs,
    now: At,
    items: Vec<EffectJson>,
) -> ExitCode {
    let last = effects.last().filter(|_| more).map(|(_, effect)| effect.id.to_string());
    if context.output.json {
        context.output.list(&items, last.as_deref());
        return ExitCode::SUCCESS;
    }
    if effects.is_empty() {
        context.output.say("no such effects");
        return ExitCode::SUCCESS;
    }
    context.output.data(table::effects(effects.iter().map(|(_, effect)| effect), now, args.wide));
    if let Some(last) = last {
        context.output.say(format_args!("the newest {}; older ones: --before {last}", effects.len()));
    }
    ExitCode::SUCCESS
}

fn is(state: &State, choice: StateChoice) -> bool {
    match choice {
        StateChoice::InFlight => matches!(state, State::InFlight { .. }),
        StateChoice::InDoubt => matches!(state, State::InDoubt(_)),
        StateChoice::Applied => matches!(state, State::Applied(_)),
        StateChoice::NotApplied => matches!(state, State::NotApplied(_)),
    }
}
