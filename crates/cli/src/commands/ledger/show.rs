//! `semel ledger show`: all that is known of one effect.

use super::journal::{self, LineJson};
use super::{named, scan};
use crate::args::EffectName;
use crate::context::{Context, EXIT_FINDINGS};
use crate::effect_json::{self, EffectJson, ReplyKept};
use crate::output::stderr_is_terminal;
use crate::table;
use crate::terminal_text;
use semel_core::class::Class;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, NotAppliedWhy, Ruling, State, Verdict};
use semel_core::time::in_words;
use semel_doors::reply::CommandOutput;
use semel_doors::run_summary::first_line;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::Ledger;
use semel_ledger::store::{By, PAGE_ROWS_MAX};
use serde::Serialize;
use std::fmt::Write as _;
use std::process::ExitCode;

#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    effect: EffectJson,
    again: Option<String>,
    ruling: Option<RulingJson>,
    reply_summary: Option<ReplySummary>,
    other_occurrences: Vec<OccurrenceJson>,
    journal: Vec<LineJson>,
}

#[derive(Debug, Serialize)]
struct RulingJson {
    by: String,
    reason: String,
    at: String,
}

#[derive(Debug, Serialize)]
struct ReplySummary {
    bytes: usize,
    exit_code: Option<i32>,
    first_line: Option<String>,
}

#[derive(Debug, Serialize)]
struct OccurrenceJson {
    occurrence: u32,
    effect_id: String,
    state: &'static str,
    opened_at: String,
    again: Option<String>,
}

pub fn run(context: &Context, name: &EffectName) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let ledger = context.existing_ledger(&clock)?;
    let Some((key, effect)) = named::look_up(context, ledger.as_ref(), name, clock.now())? else {
        return Ok(ExitCode::from(EXIT_FINDINGS));
    };
    let ledger = ledger.expect("an effect was found in it");
    let now = clock.now();
    let effect = scan::now_of(&ledger, key, effect, now)?;
    let shown = look(&ledger, key, &effect)?;
    if context.output.json {
        context.output.document(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    context.output.data(text(&shown, &effect, in_words(now.since(effect.opened_at)))?.trim_end());
    // Commands that rule are for people: a model reads what is piped.
    if stderr_is_terminal() {
        hints(&effect).iter().for_each(|hint| context.output.say(hint));
    }
    Ok(ExitCode::SUCCESS)
}

/// The decisions that a person can make about it.
fn hints(effect: &Effect) -> Vec<String> {
    let id = effect.id;
    let undo = || format!("hint: to take it back: semel ledger undo {id} --reason TEXT");
    match &effect.state {
        State::InDoubt(_) => {
            vec![format!("hint: semel ledger resolve {id} --reason TEXT --applied  # or --not-applied")]
        }
        State::NotApplied(not) if matches!(not.why, NotAppliedWhy::Refuted(_)) => {
            vec![format!("hint: to let it run again: semel ledger resolve {id} --reason TEXT --not-applied")]
        }
        State::Applied(_) => {
            let answers = effect.facts.class == Class::Consequential || effect.facts.caller_key;
            let again = answers
                .then(|| format!("hint: to allow a repeat: semel ledger allow-repeat {id} --reason TEXT"));
            effect.undoable().map(|_| undo()).into_iter().chain(again).collect()
        }
        State::NotApplied(_) | State::InFlight { .. } => Vec::new(),
    }
}

fn look(ledger: &Ledger, key: Digest, effect: &Effect) -> anyhow::Result<Shown> {
    let (kept, bytes) = effect_json::reply(ledger, key, effect)?;
    let ruling = |ruling: &Ruling| RulingJson {
        by: ruling.by.clone(),
        reason: ruling.reason.as_str().to_owned(),
        at: ruling.at.to_string(),
    };
    Ok(Shown {
        effect: EffectJson::of(effect, kept),
        again: effect.occurrence.reason.as_ref().map(|reason| reason.as_str().to_owned()),
        ruling: match &effect.state {
            State::Applied(applied) => applied.ruling.as_ref().map(ruling),
            State::NotApplied(not_applied) => not_applied.ruling.as_ref().map(ruling),
            State::InFlight { .. } | State::InDoubt(_) => None,
        },
        reply_summary: bytes.map(|bytes| {
            let output = CommandOutput::decode(&bytes);
            ReplySummary {
                bytes: output
                    .as_ref()
                    .map_or(bytes.len(), |output| output.stdout.len() + output.stderr.len()),
                exit_code: output.map(|output| output.exit_code),
                first_line: first_line(&bytes),
            }
        }),
        other_occurrences: others(ledger, key, effect)?,
        journal: journal::of_effect(ledger, effect)?,
    })
}

fn others(ledger: &Ledger, key: Digest, effect: &Effect) -> anyhow::Result<Vec<OccurrenceJson>> {
    let mut others = Vec::new();
    let mut after = None;
    loop {
        let page = block_on(ledger.listing(By::Record(key), after, PAGE_ROWS_MAX))?;
        let found =
            page.items.into_iter().map(|(_, known)| known.effect).filter(|other| other.id != effect.id);
        others.extend(found.map(|other| OccurrenceJson {
            occurrence: other.occurrence.number,
            effect_id: other.id.to_string(),
            state: semel_ledger::journal::state_word(&other.state),
            opened_at: other.opened_at.to_string(),
            again: other.occurrence.reason.map(|reason| reason.as_str().to_owned()),
        }));
        match page.next {
            None => return Ok(others),
            next => after = next,
        }
    }
}

fn text(shown: &Shown, effect: &Effect, age: String) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let json = &shown.effect;
    let mut fact = |name: &str, value: &str| {
        if !value.is_empty() {
            let _infallible = writeln!(text, "{name:<14}{}", terminal_text::line(value));
        }
    };
    fact("effect", &json.effect_id.to_string());
    fact("action", &json.action);
    fact("subject", &json.subject);
    let tier = serde_json::to_value(json.tier).unwrap_or_default();
    fact("class, tier", &format!("{}, {}", json.class, tier.as_str().unwrap_or_default()));
    fact("run", json.run.as_deref().unwrap_or_default());
    fact("rule", &json.rule);
    fact("named by", if json.caller_key { "a key of the caller" } else { "" });
    fact("intent digest", &json.intent_digest.to_string());
    fact("opened", &format!("{} ({age} ago)", json.opened_at));
    fact("changed", &json.changed_at);
    fact("delivered", json.delivered_at.as_deref().unwrap_or("no"));
    fact(
        "occurrence",
        &match &shown.again {
            Some(reason) => format!("{}, on purpose: {reason}", json.occurrence),
            None => format!("{} (the same call, repeated on purpose, is the next one)", json.occurrence),
        },
    );
    fact(
        "result",
        &match (json.reply, &shown.reply_summary) {
            (ReplyKept::Kept, Some(summary)) => {
                let code = summary.exit_code.map(|code| format!("exit {code}, ")).unwrap_or_default();
                let line = summary.first_line.as_ref().map(|line| format!(": {line}")).unwrap_or_default();
                format!("{code}{} bytes{line}", summary.bytes)
            }
            (ReplyKept::Pruned, _) => "no longer kept".to_owned(),
            (ReplyKept::Damaged, _) => "damaged in the ledger".to_owned(),
            (ReplyKept::TooLarge, _) => "too large to keep".to_owned(),
            _ => String::new(),
        },
    );
    if let Some(undoes) = &json.undoes {
        fact("undoes", &format!("{}, {}: {}", undoes.effect_id, undoes.by, undoes.reason));
    }
    if let Some(undo) = &json.undo {
        match (&undo.call, &undo.why_not) {
            (Some(call), _) => fact("undo", call),
            (None, why) => fact("undo", &format!("none: {}", why.as_deref().unwrap_or_default())),
        }
    }
    if let Some(undone) = &json.undone {
        fact("undone", &format!("{} by {}", undone.at, undone.by));
    }
    let state = table::state(&effect.state);
    let why = json.why.as_deref().map(|why| format!(": {}", terminal_text::line(why))).unwrap_or_default();
    let evidence = json.evidence.map(|evidence| format!(", {}", evidence.word())).unwrap_or_default();
    writeln!(text, "{:<14}{state}{evidence}{why}", "state")?;
    if let Some(RulingJson { by, reason, at }) = &shown.ruling {
        writeln!(text, "{:<14}{}", "ruling", terminal_text::line(&format!("{by}, {at}: {reason}")))?;
    }
    writeln!(text, "\nattempts")?;
    for attempt in &effect.attempts {
        let verdict = match attempt.verdict {
            Verdict::Open => "open",
            Verdict::Unproven => "unproven (no answer says whether it happened)",
            Verdict::Applied => "applied",
            Verdict::NotApplied => "not applied",
            Verdict::Reported => "reported as failed",
        };
        let resend = if attempt.resend { ", sent again by semel" } else { "" };
        let gone = attempt.gone_at.map(|at| format!(", its sender gone since {at}")).unwrap_or_default();
        let deadline = attempt.timeout_at().map(|at| format!(", deadline {at}")).unwrap_or_default();
        let (number, claimed) = (attempt.number, attempt.claimed_at);
        writeln!(text, "  {number}  {claimed}  {verdict}{deadline}{resend}{gone}")?;
    }
    if !shown.other_occurrences.is_empty() {
        writeln!(text, "\nother occurrences of the same intent")?;
        for OccurrenceJson { occurrence, effect_id, state, opened_at, again } in &shown.other_occurrences {
            let again = terminal_text::line(again.as_deref().unwrap_or_default());
            writeln!(text, "  {occurrence}  {effect_id}  {opened_at}  {}  {again}", state.replace('_', " "))?;
        }
    }
    writeln!(text, "\njournal")?;
    for line in &shown.journal {
        let (kind, details) = (terminal_text::line(&line.kind), line.details());
        writeln!(text, "  {}  {kind:<20}  {details}{}", line.at, gloss(line))?;
    }
    Ok(text)
}

/// The words of a line that nobody knows who has not read the documents.
fn gloss(line: &LineJson) -> &'static str {
    match (line.kind.as_str(), line.data["why"].as_str()) {
        ("lapsed", Some("holder_died")) => " (the process that ran it ended before its answer was recorded)",
        ("lapsed", Some("holder_silent")) => " (the process that ran it was not heard of any more)",
        ("forgotten", _) => " (a new epoch: the ledger may have lost calls that came before)",
        _ => "",
    }
}
