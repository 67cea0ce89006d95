//! The left side: effects of the ledger, a file of intended actions, or the calls of a transcript.

use crate::args::ReconcileArgs;
use crate::commands::ledger::scan::{self, Which};
use crate::context::Context;
use crate::output::{Hinted, counted, stderr_is_terminal};
use anyhow::{Context as _, anyhow};
use semel::policy_files;
use semel_core::digest::Secret;
use semel_core::effect::{Effect, State};
use semel_core::identity::value_mark;
use semel_core::json::Path;
use semel_core::time::At;
use semel_detect::audit::run::AuditOptions;
use semel_detect::formats::mapped::Mapping;
use semel_detect::judge::Judge;
use semel_detect::reconcile::outside::of_file;
use semel_detect::reconcile::transcript::{IntendedCalls, intended_calls};
use semel_detect::reconcile::{IntendedEffect, Pairing, Standing};
use semel_detect::source::discover::{self, TranscriptFile};
use semel_ledger::Ledger;
use std::ops::ControlFlow;

/// The effects of the ledger, or of one tenant in it.
pub fn effects(
    context: &Context,
    args: &ReconcileArgs,
    ledger: &Ledger,
    now: At,
) -> anyhow::Result<Vec<Effect>> {
    let mut effects = Vec::new();
    let damaged = scan::effects(ledger, Which::default(), now, |_, effect| {
        if args.tenant.as_ref().is_none_or(|tenant| *tenant == effect.facts.tenant) {
            effects.push(effect);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    scan::say_left_out(context.output, damaged);
    Ok(effects)
}

/// Whether an effect is asked for.
pub fn is_wanted(args: &ReconcileArgs, effect: &Effect, now: At) -> bool {
    is_named(args, &effect.facts.action) && oldest(args, now).is_none_or(|oldest| effect.opened_at >= oldest)
}

/// Those that have all values of the pairing.
pub fn of_effects(effects: &[Effect], pairing: &Pairing) -> Vec<IntendedEffect> {
    effects
        .iter()
        .filter_map(|effect| {
            Some(IntendedEffect {
                marks: pairing.marks_in(&effect.marks)?,
                id: effect.id.to_string(),
                action: effect.facts.action.clone(),
                subject: effect.facts.subject.clone(),
                standing: match effect.state {
                    State::Applied(_) => Standing::Applied,
                    State::NotApplied(_) => Standing::NotApplied,
                    State::InDoubt(_) => Standing::InDoubt,
                    State::InFlight { .. } => Standing::InFlight,
                },
            })
        })
        .collect()
}

pub fn of_rows(
    file: &std::path::Path,
    pairing: &Pairing,
    secret: &Secret,
) -> anyhow::Result<Vec<IntendedEffect>> {
    let rows = of_file(file).with_context(|| file.display().to_string())?;
    let paths = pairing.pairs.iter().map(|(left, _)| Path::parse(left).with_context(|| left.clone()));
    let paths: Vec<Path> = paths.collect::<anyhow::Result<_>>()?;
    let intended = rows.into_iter().map(|row| {
        let mark = |path: &Path| {
            let found = path.find(&row.values).into_iter().next();
            let found = found.ok_or_else(|| anyhow!("{} has no `{path}`; nothing was compared", row.place));
            Ok(value_mark(secret, &found?.1.canonical()))
        };
        Ok(IntendedEffect {
            marks: paths.iter().map(mark).collect::<anyhow::Result<_>>()?,
            id: row.place.clone(),
            action: String::new(),
            subject: String::new(),
            standing: Standing::Intended,
        })
    });
    intended.collect::<anyhow::Result<_>>().with_context(|| file.display().to_string())
}

/// The calls of a transcript, and the secret that they are marked with.
pub fn of_transcript(
    context: &Context,
    args: &ReconcileArgs,
    path: &std::path::Path,
    pairing: &Pairing,
    now: At,
) -> anyhow::Result<(IntendedCalls, Secret)> {
    let policy = policy_files::read(&context.environment.settings, context.global.policy.as_deref())?;
    let judge = Judge::new(policy).map_err(|found| {
        context.output.warn(found.render(stderr_is_terminal()));
        Hinted::error("the policy does not hold together".to_owned(), "semel policy lint")
    })?;
    let (files, options) = transcript_files(args, path, now)?;
    let calls =
        intended_calls(&files, &judge, &options, pairing, |call| is_named(args, &call.judged.action))?;
    if let Some(first) = calls.unread.first() {
        let places = counted(calls.unread.len(), "place", "places");
        context.output.warn(format_args!("semel: {places} could not be read, the first is {first}"));
    }
    Ok((calls, judge.secret().clone()))
}

pub fn transcript_files(
    args: &ReconcileArgs,
    path: &std::path::Path,
    now: At,
) -> anyhow::Result<(Vec<TranscriptFile>, AuditOptions)> {
    let mapping = args.map.as_deref().map(Mapping::parse).transpose()?;
    let options = AuditOptions { mapping, since: oldest(args, now), workers: 1 };
    Ok((discover::candidates(path).with_context(|| path.display().to_string())?, options))
}

fn is_named(args: &ReconcileArgs, action: &str) -> bool {
    args.action.as_ref().is_none_or(|text| action.contains(text.as_str()))
}

fn oldest(args: &ReconcileArgs, now: At) -> Option<At> {
    args.since.map(|span| At(now.0.saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))))
}
