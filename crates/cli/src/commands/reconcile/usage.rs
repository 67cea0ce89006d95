//! `--usage`: a model provider's export beside the ledger's model calls.

use crate::commands::ledger::scan::{self, Which};
use crate::context::{Context, EXIT_FINDINGS};
use crate::table;
use anyhow::{Context as _, bail};
use semel::command::Change;
use semel_core::effect::Effect;
use semel_core::time::At;
use semel_detect::reconcile::outside::of_file;
use semel_detect::reconcile::usage::{
    Figure, Figures, LedgerUsage, SentRequest, Span, SurplusLayer, UsageLine, compare_usage, provider_of,
    read_export,
};
use semel_gate::clock::block_on;
use semel_gate::counts::{Counter, DoorKind};
use semel_ledger::Ledger;
use semel_ledger::counts::{CountKey, Day, Tally};
use serde::Serialize;
use serde_json::json;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

/// Nobody exports more at once; each day is a read.
const DAYS_MAX: u32 = 400;

/// The ledger's model calls in the time of the export, all providers together.
#[derive(Debug, Default, Serialize)]
struct ModelCalls {
    calls: u64,
    attempts: u64,
    /// Attempts that semel made again by itself.
    resends: u64,
    repeated_by_transport: u64,
    repeated_by_sdk: u64,
    repeated_by_agent: u64,
    repeated_by_process: u64,
}

pub fn compare(context: &Context, ledger: &Ledger, file: &Path, now: At) -> anyhow::Result<Change> {
    let about = || file.display().to_string();
    let rows = of_file(file).with_context(about)?;
    let export = read_export(&rows).with_context(about)?;
    let spans = || export.keys().map(|(span, _)| span);
    let (Some(from), Some(until)) =
        (spans().map(|span| span.from).min(), spans().map(|span| span.until).max())
    else {
        bail!("{}: it has no rows", about());
    };
    let all = Span { from, until };
    let (mut own, mut calls) = (LedgerUsage::default(), ModelCalls::default());
    let action = format!("llm:{}/", provider_of(&rows));
    let damaged = scan::effects(ledger, Which::default(), now, |_, effect| {
        count_attempts(&effect, &action, all, &mut own, &mut calls);
        Ok(ControlFlow::Continue(()))
    })?;
    scan::say_left_out(context.output, damaged);
    count_days(ledger, all, &mut own, &mut calls)?;
    let lines = compare_usage(&export, &own, ledger.secret());
    if !own.mixed_days.is_empty() {
        context.output.say(
            "semel: tokens and cost are compared only for days on which one provider was asked: the ledger adds up all",
        );
    }
    let differs = lines.iter().any(|line| line.layer.is_some());
    let code = if differs { ExitCode::from(EXIT_FINDINGS) } else { ExitCode::SUCCESS };
    let document = json!({"schema_version": 1, "model_calls": calls, "items": lines});
    Ok(Change { code, ..Change::noop(document, text(&calls, &lines)) })
}

fn count_attempts(effect: &Effect, action: &str, all: Span, own: &mut LedgerUsage, calls: &mut ModelCalls) {
    let own_action = &effect.facts.action;
    let model = effect.marks.paths.iter().find(|leaf| leaf.path == "args.model").map(|leaf| leaf.mark);
    let in_time =
        effect.attempts.iter().filter(|attempt| (all.from..all.until).contains(&attempt.claimed_at));
    for attempt in in_time.filter(|_| DoorKind::of(own_action) == DoorKind::Llm) {
        calls.resends += u64::from(attempt.resend);
        if own_action.starts_with(action) {
            own.sent.push(SentRequest { at: attempt.claimed_at, model });
        } else {
            own.mixed_days.insert(u64::from(Day::of(attempt.claimed_at).0));
        }
    }
}

fn count_days(
    ledger: &Ledger,
    all: Span,
    own: &mut LedgerUsage,
    calls: &mut ModelCalls,
) -> anyhow::Result<()> {
    let (first, last) = (Day::of(all.from).0, Day::of(At(all.until.0.saturating_sub(1))).0);
    if last.saturating_sub(first) > DAYS_MAX {
        bail!("the export has more than {DAYS_MAX} days");
    }
    let counted = block_on(ledger.counted())?;
    for (tenant, door) in counted.iter().filter(|(_, door)| door == DoorKind::Llm.word()) {
        for day in first..=last {
            let tally = block_on(ledger.counts(CountKey { tenant, door, day: Day(day) }))?;
            let count = |counter: Counter| tally.get(counter.word()).copied().unwrap_or_default();
            add(own.days.entry(u64::from(day)).or_default(), &tally);
            calls.calls += count(Counter::Asked);
            calls.attempts += count(Counter::Sent);
            calls.repeated_by_transport += count(Counter::Transport);
            calls.repeated_by_sdk += count(Counter::Sdk);
            calls.repeated_by_agent += count(Counter::Agent);
            calls.repeated_by_process += count(Counter::Process);
        }
    }
    Ok(())
}

fn add(figures: &mut Figures, tally: &Tally) {
    let add = |figure: &mut Option<u64>, counter: Counter| {
        let more = tally.get(counter.word()).copied().unwrap_or_default();
        *figure = Some(figure.unwrap_or_default() + more);
    };
    add(&mut figures.requests, Counter::PassedThrough);
    add(&mut figures.input_tokens, Counter::InputTokens);
    add(&mut figures.output_tokens, Counter::OutputTokens);
    add(&mut figures.cost_nanos, Counter::Cost);
}

fn text(calls: &ModelCalls, lines: &[UsageLine]) -> String {
    let header = ["FROM", "MODEL", "FIGURE", "PROVIDER", "LEDGER", "PROBABLY"];
    format!(
        "semel was asked {} times and sent {} requests, {} of them again by itself.\n\
         repeated by transport {}, SDK {}, agent {}, other process {}\n{}",
        calls.calls,
        calls.attempts,
        calls.resends,
        calls.repeated_by_transport,
        calls.repeated_by_sdk,
        calls.repeated_by_agent,
        calls.repeated_by_process,
        table::plain(&header, lines.iter().map(row)).join("\n")
    )
}

fn row(line: &UsageLine) -> Vec<String> {
    let number = |number: u64| match line.figure {
        Figure::CostNanos => format!("{:.4}", number as f64 / 1e9),
        _ => number.to_string(),
    };
    let figure = match line.figure {
        Figure::Requests => "requests",
        Figure::InputTokens => "tokens in",
        Figure::OutputTokens => "tokens out",
        Figure::CostNanos => "cost",
    };
    let layer = match line.layer {
        None => "",
        Some(SurplusLayer::OutsideSemel) => "a caller or an SDK that goes around semel",
        Some(SurplusLayer::PassedThrough) => "passed through semel unrecorded, or around it",
        Some(SurplusLayer::UnmeasuredAnswers) => "answers that did not tell their tokens",
        Some(SurplusLayer::NoPrices) => "the policy has no price for it",
        Some(SurplusLayer::NotBilled) => "attempts that failed and are not billed",
    };
    let from = line.span.from.to_string();
    let model = line.model.as_deref().unwrap_or("(all)");
    [&from[..16.min(from.len())], model, figure, &number(line.provider), &number(line.ledger), layer]
        .map(str::to_owned)
        .to_vec()
}
