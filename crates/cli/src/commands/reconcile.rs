//! `semel reconcile`: the ledger beside what is out there.

use super::ledger::named::recognisable;
use super::ledger::rule::ruling;
use super::ledger::scan::{self, Which};
use crate::args::ReconcileArgs;
use crate::change::Change;
use crate::context::{Context, EXIT_FINDINGS};
use crate::open::{LocalLedger, TENANT};
use crate::operator::Operator;
use crate::output::{Hinted, counted};
use crate::{table, terminal_text};
use anyhow::{Context as _, anyhow};
use semel_core::answer::EffectWord;
use semel_core::digest::Secret;
use semel_core::effect::{Effect, State};
use semel_core::identity::value_mark;
use semel_core::json::Path;
use semel_core::time::At;
use semel_detect::reconcile::outside::{self, OutsideError};
use semel_detect::reconcile::{Comparison, IntendedEffect, OutsideRow, Pairing, Standing, compare};
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::rulings::RulingVerdict;
use serde_json::json;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::process::{Command, ExitCode, Stdio};

pub fn run(context: &Context, args: &ReconcileArgs) -> anyhow::Result<Change> {
    let pairing = Pairing::parse(&args.on)?;
    let operator = match args.apply {
        true => Operator::unless_dry(context, &args.operator, &args.change)?,
        false => None,
    };
    let rows = outside_rows(args)?;
    if let Some(column) = pairing.unknown_column(&rows) {
        return Err(anyhow!("no row of the outside has `{column}`"));
    }
    if let Some(file) = &args.intended {
        // Nothing is kept, so any secret serves.
        let secret = Secret::new([0; 32]);
        let intended = outside::of_file(file).with_context(|| file.display().to_string())?;
        let intended = intended_rows(intended, &pairing, &secret)?;
        return Ok(answer(EffectWord::Noop, &compare(&intended, &rows, &pairing, &secret)));
    }
    let clock = SystemClock::start();
    let ledger = context.existing_ledger(&clock)?;
    let ledger = ledger.ok_or_else(|| Hinted::error("there is no ledger yet".to_owned(), "semel doctor"))?;
    let effects = effects(context, args, &ledger, clock.now())?;
    let intended: Vec<IntendedEffect> =
        effects.iter().filter_map(|effect| as_intended(effect, &pairing)).collect();
    let left_out = effects.len() - intended.len();
    if left_out > 0 {
        let words = counted(left_out, "effect has", "effects have");
        context.output.say(format_args!("semel: {words} none of these arguments, and was not compared"));
    }
    let found = compare(&intended, &rows, &pairing, ledger.secret());
    let decided = if args.apply { decided(&effects, &found) } else { Vec::new() };
    let effect = if decided.is_empty() { EffectWord::Noop } else { EffectWord::Updated };
    let Some(operator) = operator else {
        let is_dry = args.change.dry_run;
        return Ok(answer(if is_dry { effect.would() } else { effect }, &found));
    };
    if decided.is_empty() {
        context.output.say("semel: the listing shows no effect that is in doubt");
    } else {
        apply(context, args, &operator, &ledger, decided)?;
    }
    Ok(answer(effect, &found))
}

fn outside_rows(args: &ReconcileArgs) -> anyhow::Result<Vec<OutsideRow>> {
    let from = &args.outside;
    let named = |name: String| move |rows: Result<Vec<OutsideRow>, OutsideError>| rows.with_context(|| name);
    if let Some(file) = &from.outside {
        return named(file.display().to_string())(outside::of_file(file));
    }
    if let (Some(file), Some(query)) = (&from.sqlite, &args.query) {
        return named(file.display().to_string())(outside::of_sqlite(file, query));
    }
    let text = from.command.as_deref().unwrap_or_default();
    let words = shlex::split(text).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| anyhow!("`{text}` is no command"))?;
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", words[0]))?;
    let output = child.stdout.take().expect("it was asked for");
    let rows = named(words[0].clone())(outside::of_text(BufReader::new(output)));
    // Half a listing would make false successes of the other half.
    let status = child.wait()?;
    if !status.success() {
        return Err(anyhow!("{} ended with {status}, so its listing may not be whole", words[0]));
    }
    rows
}

fn effects(
    context: &Context,
    args: &ReconcileArgs,
    ledger: &LocalLedger,
    now: At,
) -> anyhow::Result<Vec<Effect>> {
    let oldest =
        args.since.map(|span| At(now.0.saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))));
    let mut effects = Vec::new();
    let damaged = scan::effects(ledger, Which::default(), now, |_, effect| {
        let is_wanted = args.action.as_ref().is_none_or(|text| effect.facts.action.contains(text.as_str()))
            && oldest.is_none_or(|oldest| effect.opened_at >= oldest);
        if is_wanted {
            effects.push(effect);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    scan::say_left_out(context.output, damaged);
    Ok(effects)
}

/// `None`: the effect has not all of the arguments.
fn as_intended(effect: &Effect, pairing: &Pairing) -> Option<IntendedEffect> {
    let mark = |path: &String| {
        let marks = effect.marks.paths.iter().chain(effect.marks.content_paths.iter());
        marks.clone().find(|leaf| leaf.path == path.as_str()).map(|leaf| leaf.mark)
    };
    Some(IntendedEffect {
        marks: pairing.pairs.iter().map(|(left, _)| mark(left)).collect::<Option<_>>()?,
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
}

fn intended_rows(
    rows: Vec<OutsideRow>,
    pairing: &Pairing,
    secret: &Secret,
) -> anyhow::Result<Vec<IntendedEffect>> {
    let paths = pairing.pairs.iter().map(|(left, _)| Path::parse(left).with_context(|| left.clone()));
    let paths: Vec<Path> = paths.collect::<anyhow::Result<_>>()?;
    let intended = rows.into_iter().filter_map(|row| {
        let mark = |path: &Path| {
            let found = path.find(&row.values).into_iter().next()?;
            Some(value_mark(secret, &found.1.canonical()))
        };
        let marks = paths.iter().map(mark).collect::<Option<_>>()?;
        Some(IntendedEffect {
            marks,
            id: row.place,
            action: String::new(),
            subject: String::new(),
            standing: Standing::Intended,
        })
    });
    Ok(intended.collect())
}

fn answer(effect: EffectWord, found: &[Comparison]) -> Change {
    let is_matched = |comparison: &&Comparison| matches!(comparison, Comparison::Matched { .. });
    let matched = found.iter().filter(is_matched).count();
    let different: Vec<&Comparison> = found.iter().filter(|comparison| !is_matched(comparison)).collect();
    let document = json!({"schema_version": 1, "matched": matched, "items": different});
    let mut text = format!("{} matched, {} differ.", counted(matched, "effect", "effects"), different.len());
    if !different.is_empty() {
        let rows = different.iter().map(|comparison| row(comparison));
        let lines = table::plain(&["EFFECT", "RESULT", "OUTSIDE", "ACTION"], rows);
        text = format!("{text}\n{}", lines.join("\n"));
    }
    let code = if different.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FINDINGS) };
    Change { code, ..Change::new(effect, document, text) }
}

fn row(comparison: &Comparison) -> Vec<String> {
    let (id, result, outside, action, subject): (&str, &str, String, &str, &str) = match comparison {
        Comparison::Matched { id, row } => (id, "matched", row.clone(), "", ""),
        Comparison::TwiceOutside { id, action, subject, rows } => {
            (id, "twice outside", rows.join("; "), action, subject)
        }
        Comparison::AbsentOutside { id, action, subject } => {
            (id, "said to be done, and is not there", String::new(), action, subject)
        }
        Comparison::UnknownToLedger { row } => ("", "not in the ledger", row.clone(), "", ""),
        Comparison::NowDecidable { id, action, subject, happened, row } => {
            let result = if *happened { "it happened" } else { "in doubt, and is not there" };
            (id, result, row.clone().unwrap_or_default(), action, subject)
        }
        Comparison::NotDone { id, action, subject } => (id, "not done", String::new(), action, subject),
    };
    let what = terminal_text::shortened(&format!("{action} {subject}"), 60);
    vec![id.to_owned(), result.to_owned(), terminal_text::line(&outside), what.trim().to_owned()]
}

/// The doubts that the listing shows to have happened, and where. An absence proves nothing: a listing may be old, cut or
/// filtered, so a person rules on that one by one.
fn decided<'e>(effects: &'e [Effect], found: &[Comparison]) -> Vec<(&'e Effect, String)> {
    let decided = found.iter().filter_map(|comparison| match comparison {
        Comparison::NowDecidable { id, happened, row, .. } => {
            let effect = effects.iter().find(|effect| effect.id.to_string() == *id)?;
            let may_rule = *happened && matches!(effect.state, State::InDoubt(_));
            may_rule.then(|| (effect, row.clone().unwrap_or_default()))
        }
        _ => None,
    });
    decided.collect()
}

fn apply(
    context: &Context,
    args: &ReconcileArgs,
    operator: &Operator<'_>,
    ledger: &LocalLedger,
    decided: Vec<(&Effect, String)>,
) -> anyhow::Result<()> {
    let now = SystemClock::start().now();
    let shown = decided.iter().map(|(effect, row)| format!("{} at {row}\n", recognisable(effect)));
    let shown: String = shown.collect();
    let what = format!("{shown}Record that {} happened?", counted(decided.len(), "effect", "effects"));
    let by = operator.confirm(ledger, TENANT, what)?;
    let reason = args.reason.as_deref().unwrap_or_default();
    for (effect, row) in decided {
        let ruling = ruling(by.clone(), &format!("{reason} (found at {row})"), now)?;
        block_on(ledger.resolve(effect.id, RulingVerdict::Applied { reply: None }, ruling))?;
        context.output.say(format_args!("Recorded: {} happened.", effect.id));
    }
    Ok(())
}
