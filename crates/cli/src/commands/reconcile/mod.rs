//! `semel reconcile`: what was intended beside what is out there.

mod intended;
mod outside;
mod postgres;
mod probe;
mod usage;

use super::ledger::named::recognisable;
use super::ledger::rule::{may_still_happen, ruling};
use crate::args::{OutsideArgs, ReconcileArgs};
use crate::context::{Context, EXIT_FINDINGS};
use crate::open::TENANT;
use crate::operator::Operator;
use crate::output::{Hinted, counted};
use crate::{table, terminal_text};
use anyhow::bail;
use semel::command::Change;
use semel_core::answer::EffectWord;
use semel_core::digest::Secret;
use semel_core::effect::{Effect, State};
use semel_core::policy::file::ReconcileTable;
use semel_detect::reconcile::{Comparison, Pairing, compare};
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::Ledger;
use semel_ledger::rulings::RulingVerdict;
use serde_json::json;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;

pub fn run(context: &Context, args: &ReconcileArgs) -> anyhow::Result<Change> {
    let args = &described(context, args)?;
    let clock = SystemClock::start();
    let is_of_ledger = args.intended.is_none() && (args.transcript.is_none() || args.outside.probe);
    if args.apply && !is_of_ledger {
        bail!("--apply records rulings on effects of the ledger, and those of a transcript are not in it");
    }
    let operator = match args.apply {
        true => Operator::unless_dry(context, &args.operator, &args.change)?,
        false => None,
    };
    let open = || -> anyhow::Result<Ledger> {
        let ledger = context.existing_ledger(&clock)?;
        ledger.ok_or_else(|| Hinted::error("there is no ledger yet".to_owned(), "semel doctor"))
    };
    if let Some(file) = &args.outside.usage {
        return usage::compare(context, &open()?, file, clock.now());
    }
    if args.outside.probe {
        let ledger = open()?;
        let mut effects = intended::effects(context, args, &ledger, clock.now())?;
        effects.retain(|effect| intended::is_wanted(args, effect, clock.now()));
        let (found, left_out) = probe::ask(context, args, &ledger, &effects)?;
        let compared = Compared { found, left: "the ledger", left_out, values: HashMap::new() };
        return apply(context, args, operator.as_ref(), &ledger, &effects, &compared);
    }
    let pairing = Pairing::parse(args.on.as_deref().unwrap_or_default())?;
    let rows = outside::rows(context, args)?;
    if let Some(column) = pairing.unknown_column(&rows) {
        let columns = rows.first().and_then(|row| row.values.as_object());
        let columns: Vec<&str> =
            columns.into_iter().flat_map(|columns| columns.iter()).map(|(name, _)| name).collect();
        bail!("no row of the outside has `{column}`; the first has {}", in_list(columns));
    }
    let values = rows.iter().map(|row| (row.place.clone(), row.values.canonical())).collect();
    let compared = |found, left, left_out| Compared { found, left, left_out, values };
    if let Some(file) = &args.intended {
        // Nothing is kept, so any secret serves.
        let secret = Secret::new([0; 32]);
        let intended = intended::of_rows(file, &pairing, &secret)?;
        let found = compare(&intended, &rows, &pairing, &secret);
        return Ok(answer(EffectWord::Noop, &compared(found, "the file", 0)));
    }
    if let Some(path) = &args.transcript {
        let (calls, secret) = intended::of_transcript(context, args, path, &pairing, clock.now())?;
        let found = compare(&calls.effects, &rows, &pairing, &secret);
        return Ok(answer(EffectWord::Noop, &compared(found, "the transcript", calls.left_out)));
    }
    let ledger = open()?;
    let effects = intended::effects(context, args, &ledger, clock.now())?;
    let is_wanted = |effect: &&Effect| intended::is_wanted(args, effect, clock.now());
    let wanted: HashSet<String> =
        effects.iter().filter(is_wanted).map(|effect| effect.id.to_string()).collect();
    let intended = intended::of_effects(&effects, &pairing);
    let left_out = wanted.len() - intended.iter().filter(|effect| wanted.contains(&effect.id)).count();
    if left_out == wanted.len() && left_out > 0 {
        let known: BTreeSet<&str> =
            effects.iter().filter(is_wanted).flat_map(|effect| Pairing::paths_in(&effect.marks)).collect();
        bail!("no effect has all arguments of --on; they have {}", in_list(known));
    }
    let mut found = compare(&intended, &rows, &pairing, ledger.secret());
    // A row belongs to its effect also where nobody asked for that one.
    found.retain(|comparison| comparison.id().is_none_or(|id| wanted.contains(id)));
    let compared = compared(found, "the ledger", left_out);
    apply(context, args, operator.as_ref(), &ledger, &effects, &compared)
}

fn in_list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    const NAMED_MAX: usize = 20;
    let names: Vec<String> = names.into_iter().take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The result, with what its report needs.
struct Compared {
    found: Vec<Comparison>,
    /// The side of what was intended.
    left: &'static str,
    /// So many effects could not be compared.
    left_out: usize,
    /// Rows by their place, for people.
    values: HashMap<String, String>,
}

/// The arguments, with those of `[reconcile.NAME]` behind them.
fn described(context: &Context, args: &ReconcileArgs) -> anyhow::Result<ReconcileArgs> {
    let mut args = args.clone();
    let from = &mut args.outside;
    let has_outside = from.probe
        || [&from.outside, &from.sqlite, &from.usage].iter().any(|file| file.is_some())
        || [&from.command, &from.http, &from.postgres].iter().any(|text| text.is_some());
    if let Some(name) = &args.name {
        let policy = context.policy()?;
        let Some(table) = policy.reconcile.get(name).cloned() else {
            bail!("the policy has no [reconcile.{name}]");
        };
        if !has_outside {
            let ReconcileTable { outside, command, http, sqlite, postgres, .. } = table;
            let places = [&outside, &command, &http, &sqlite, &postgres];
            if places.iter().filter(|place| place.is_some()).count() != 1 {
                bail!("[reconcile.{name}] must have one of outside, command, http, sqlite and postgres");
            }
            let (outside, sqlite) = (outside.map(PathBuf::from), sqlite.map(PathBuf::from));
            *from = OutsideArgs { outside, command, http, sqlite, postgres, ..OutsideArgs::default() };
            args.next = args.next.or(table.next);
            args.bearer_env = args.bearer_env.or(table.bearer_env);
            args.query = args.query.or(table.query);
        }
        args.on = args.on.or(table.on);
        args.action = args.action.or(table.action);
    } else if !has_outside {
        let hint = "--outside, --command, --http, --sqlite, --postgres, --probe or --usage names it";
        return Err(Hinted::error("nothing says what to compare with".to_owned(), hint));
    }
    Ok(args)
}

fn answer(effect: EffectWord, compared: &Compared) -> Change {
    let is_matched = |comparison: &&Comparison| matches!(comparison, Comparison::Matched { .. });
    let matched = compared.found.iter().filter(is_matched).count();
    let different: Vec<&Comparison> =
        compared.found.iter().filter(|comparison| !is_matched(comparison)).collect();
    let left_out = compared.left_out;
    let document =
        json!({"schema_version": 1, "matched": matched, "not_compared": left_out, "items": different});
    let mut text = format!(
        "{} matched, {}.",
        counted(matched, "effect", "effects"),
        counted(different.len(), "difference", "differences")
    );
    if left_out > 0 {
        let left_out = counted(left_out, "effect was", "effects were");
        text = format!("{text} {left_out} not compared.");
    }
    if !different.is_empty() {
        let rows = different.iter().map(|comparison| row(comparison, compared));
        let lines = table::plain(&["EFFECT", "RESULT", "OUTSIDE", "ACTION"], rows);
        text = format!("{text}\n{}", lines.join("\n"));
    }
    let is_clean = different.is_empty() && (matched > 0 || left_out == 0);
    let code = if is_clean { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FINDINGS) };
    Change { code, ..Change::new(effect, document, text) }
}

/// A place with as much of its row as a line has room for.
fn with_values(place: &str, compared: &Compared) -> String {
    const VALUES_SHOWN: usize = 60;
    let values = compared.values.get(place).map_or("", String::as_str);
    format!("{place} {}", terminal_text::shortened(values, VALUES_SHOWN)).trim_end().to_owned()
}

fn row(comparison: &Comparison, compared: &Compared) -> Vec<String> {
    let not_in_left = format!("not in {}", compared.left);
    let (id, result, outside, action, subject): (&str, &str, String, &str, &str) = match comparison {
        Comparison::Matched { id, row } => (id, "matched", row.clone(), "", ""),
        Comparison::TwiceOutside { id, action, subject, rows } => {
            (id, "twice outside", rows.join("; "), action, subject)
        }
        Comparison::AbsentOutside { id, action, subject } => {
            (id, "recorded as applied, missing outside", String::new(), action, subject)
        }
        Comparison::UnknownToLedger { row } => ("", &not_in_left, with_values(row, compared), "", ""),
        Comparison::NowDecidable { id, action, subject, happened, row } => {
            let result = if *happened { "it happened" } else { "in doubt, and is not there" };
            let row = row.as_deref().map(|row| with_values(row, compared));
            (id, result, row.unwrap_or_default(), action, subject)
        }
        Comparison::NotDone { id, action, subject } => (id, "not done", String::new(), action, subject),
        Comparison::Undecided { id, action, subject, why } => (id, "unknown", why.clone(), action, subject),
    };
    let what = terminal_text::shortened(&format!("{action} {subject}"), 60);
    vec![id.to_owned(), result.to_owned(), terminal_text::line(&outside), what.trim().to_owned()]
}

/// Rules on the doubts that the outside decides. The absence of a row proves nothing: a listing may be old, cut or
/// filtered, so a person rules on that one by one. A probe's absence counts once nobody can send any more.
fn apply(
    context: &Context,
    args: &ReconcileArgs,
    operator: Option<&Operator<'_>>,
    ledger: &Ledger,
    effects: &[Effect],
    compared: &Compared,
) -> anyhow::Result<Change> {
    if !args.apply {
        return Ok(answer(EffectWord::Noop, compared));
    }
    // The same invoice number may be another tenant's too.
    let tenants: BTreeSet<&str> = effects.iter().map(|effect| effect.facts.tenant.as_str()).collect();
    if tenants.len() > 1 {
        return Err(Hinted::error(
            "nothing was changed: the ledger has effects of several tenants, and the outside is one's",
            format!("--tenant names it: {}", in_list(tenants)),
        ));
    }
    let now = SystemClock::start().now();
    let decided = compared.found.iter().filter_map(|comparison| match comparison {
        Comparison::NowDecidable { id, happened, row, .. } => {
            let effect = effects.iter().find(|effect| effect.id.to_string() == *id)?;
            let is_believed = *happened || (args.outside.probe && !may_still_happen(ledger, effect, now));
            let may_rule = is_believed && matches!(effect.state, State::InDoubt(_));
            may_rule.then(|| (effect, *happened, row.clone().unwrap_or_default()))
        }
        _ => None,
    });
    let decided: Vec<(&Effect, bool, String)> = decided.collect();
    if decided.is_empty() {
        context.output.say("semel: the outside decides no effect that is in doubt");
        return Ok(answer(EffectWord::Noop, compared));
    }
    let Some(operator) = operator else {
        return Ok(answer(EffectWord::Updated.would(), compared));
    };
    let shown = decided.iter().map(|(effect, happened, row)| {
        let word = if *happened { "happened" } else { "did not happen" };
        let (tenant, values) = (&effect.facts.tenant, compared.values.get(row).map_or("", String::as_str));
        terminal_text::line(&format!("{} of tenant {tenant} {word}: {row} {values}", recognisable(effect)))
            + "\n"
    });
    let shown: String = shown.collect();
    let what = format!("{shown}Record {}?", counted(decided.len(), "ruling", "rulings"));
    let by = operator.confirm(ledger, tenants.first().unwrap_or(&TENANT), what)?;
    let reason = args.reason.as_deref().unwrap_or_default();
    for (effect, happened, row) in decided {
        let (verdict, seen, word) = match happened {
            true => (RulingVerdict::Applied { reply: None }, "found at", "happened"),
            false => (RulingVerdict::NotApplied, "not found by", "did not happen"),
        };
        let ruling = ruling(by.clone(), &format!("{reason} ({seen} {row})"), now)?;
        block_on(ledger.resolve(effect.id, verdict, ruling))?;
        context.output.say(format_args!("Recorded: {} {word}.", effect.id));
    }
    Ok(answer(EffectWord::Updated, compared))
}
