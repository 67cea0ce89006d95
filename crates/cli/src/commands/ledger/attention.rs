//! `semel ledger` alone: what needs a person.

use super::scan::{self, Which};
use crate::context::Context;
use crate::effect_json;
use crate::open::TENANT;
use crate::{table, terminal_text};
use semel_core::class::Class;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, NotAppliedWhy, State};
use semel_core::lifecycle;
use semel_core::time::At;
use semel_gate::clock::{Clock, SystemClock, block_on};
use serde::Serialize;
use std::ops::ControlFlow;
use std::process::ExitCode;

#[derive(Debug, Default, Serialize)]
struct StateCounts {
    duplicates: u64,
    in_doubt: u64,
    refuted: u64,
    in_flight: u64,
    applied: u64,
    not_applied: u64,
    /// Generations that broke off: whoever asks again gets another one, and nobody has to decide.
    lost_generations: u64,
}

pub fn run(context: &Context, run: Option<&str>) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let now = clock.now();
    let ledger = context.existing_ledger(&clock)?;
    let mut counts = StateCounts::default();
    let mut waiting: Vec<(Digest, Effect)> = Vec::new();
    if let Some(ledger) = &ledger {
        let damaged = scan::effects(ledger, Which { run, open: false }, now, |key, effect| {
            let duplicate = lifecycle::duplicates(&effect).is_some();
            let (count, needs_a_person) = match &effect.state {
                _ if duplicate => (&mut counts.duplicates, true),
                State::InDoubt(_) if effect.facts.class.doubts_need_a_decision() => {
                    (&mut counts.in_doubt, true)
                }
                State::InDoubt(_) => (&mut counts.lost_generations, false),
                State::NotApplied(not_applied) if matches!(not_applied.why, NotAppliedWhy::Refuted(_)) => {
                    (&mut counts.refuted, true)
                }
                State::InFlight { .. } => (&mut counts.in_flight, false),
                State::Applied(_) => (&mut counts.applied, false),
                State::NotApplied(_) => (&mut counts.not_applied, false),
            };
            *count += 1;
            if needs_a_person {
                waiting.push((key, effect));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        scan::say_left_out(context.output, damaged);
    }
    waiting.sort_by_key(|(_, effect)| urgency(effect));
    if context.output.json {
        let items = match &ledger {
            Some(ledger) => waiting
                .iter()
                .map(|(key, effect)| effect_json::read(ledger, *key, effect))
                .collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        let none: Option<&str> = None;
        context.output.document(
            &serde_json::json!({"schema_version": 1, "items": items, "next": none, "counts": counts}),
        );
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    if !waiting.is_empty() {
        text = table::effects(waiting.iter().map(|(_, effect)| effect), now, false);
        text.push('\n');
    }
    text.push_str(&summary(&counts));
    context.output.data(text);
    if ledger.is_none() {
        context.output.say(format_args!("There is no ledger yet at {}.", context.ledger_address()?));
    }
    if let (Some(ledger), Some(run)) = (&ledger, run)
        && let Some(fence) = block_on(ledger.standing_fence(TENANT, run))?
    {
        let reason = fence.reason.map_or_else(String::new, |reason| format!(": {reason}"));
        context.output.say(format_args!(
            "run {} was cancelled {}{}; nothing more starts in it",
            terminal_text::line(run),
            fence.at,
            terminal_text::line(&reason)
        ));
    }
    if counts.duplicates > 0 {
        context.output.warn(format_args!(
            "duplicate_detected: {} happened twice; see the first rows",
            counts.duplicates
        ));
    }
    if let Some((_, first)) = waiting.first() {
        context.output.say(format_args!("hint: semel ledger show {}", first.id));
    }
    if let Some(ledger) = &ledger
        && block_on(ledger.epoch())?.1.is_some_and(|epoch| epoch.forgotten_before(now).is_some())
    {
        context.output.say(
            "the ledger may have forgotten claims: intents it has not seen are held (semel ledger quarantine)",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// What happened twice before all; in doubt before refuted; of these, what moves money or speaks to people first, then
/// the oldest.
fn urgency(effect: &Effect) -> (bool, bool, bool, At) {
    let doubt = matches!(effect.state, State::InDoubt(_));
    (
        lifecycle::duplicates(effect).is_none(),
        !doubt,
        effect.facts.class != Class::Consequential,
        effect.opened_at,
    )
}

fn summary(counts: &StateCounts) -> String {
    let decisions = match counts.in_doubt + counts.refuted {
        0 => "nothing needs a decision".to_owned(),
        1 => "1 needs a decision".to_owned(),
        many => format!("{many} need a decision"),
    };
    let StateCounts { in_flight, applied, not_applied, lost_generations, .. } = counts;
    let lost = match lost_generations {
        0 => String::new(),
        1 => " · 1 generation lost".to_owned(),
        many => format!(" · {many} generations lost"),
    };
    format!("{decisions} · {in_flight} in flight · {applied} applied · {not_applied} not applied{lost}")
}
