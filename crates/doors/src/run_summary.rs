//! The effects of a run in Markdown, for a model that has forgotten them.

use crate::reply::{CommandOutput, HttpReply};
use crate::{effect_json, terminal_text};
use semel_core::class::Class;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, Evidence, NotApplied, NotAppliedWhy, State};
use semel_core::intent::run_key;
use semel_core::lifecycle;
use semel_core::subject::in_short;
use semel_ledger::record::{StoredEffect, decode};
use semel_ledger::store::{Latest, PAGE_ROWS_MAX};
use semel_ledger::{Error, Ledger};
use std::fmt::Write as _;

/// Of what is settled, so many of the newest are listed: a model's context was short to begin with.
const SETTLED_MAX: usize = 100;

/// For the names and meanings of the groups that follow, and what they leave out.
const REST_CHARACTERS: usize = 1_500;

/// Enough to recognise a result by.
const RESULT_CHARACTERS: usize = 120;

/// A tool's result is one line of JSON, whatever its size; this much of it tells which one it is.
const FIRST_LINE_CHARACTERS_MAX: usize = 2_000;

/// Effects by what is known of them, each group oldest first.
#[derive(Debug, Default)]
pub struct SortedEffects {
    twice: Vec<(Digest, Effect)>,
    applied: Vec<(Digest, Effect)>,
    in_doubt: Vec<(Digest, Effect)>,
    in_flight: Vec<(Digest, Effect)>,
    refuted: Vec<(Digest, Effect)>,
    unanswered: Vec<(Digest, Effect)>,
    reported: Vec<(Digest, Effect)>,
    not_applied: Vec<(Digest, Effect)>,
}

impl SortedEffects {
    pub fn push(&mut self, key: Digest, effect: Effect) {
        let group = match effect.state {
            _ if lifecycle::duplicates(&effect).is_some() => &mut self.twice,
            State::Applied(_) => &mut self.applied,
            State::InDoubt(_) => &mut self.in_doubt,
            State::InFlight { .. } => &mut self.in_flight,
            State::NotApplied(NotApplied { why: NotAppliedWhy::Refuted(_), .. }) => &mut self.refuted,
            // Tokens may have been generated, and paid for, although nobody has a whole answer.
            State::NotApplied(ref not)
                if effect.facts.class == Class::Generate
                    && !matches!(not.why, NotAppliedWhy::NeverSent(_)) =>
            {
                &mut self.unanswered
            }
            State::NotApplied(NotApplied { why: NotAppliedWhy::Reported(_), .. }) => &mut self.reported,
            State::NotApplied(_) => &mut self.not_applied,
        };
        group.push((key, effect));
    }
}

/// A run, and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct RunName<'a> {
    pub tenant: &'a str,
    pub run: &'a str,
}

/// The text never has more characters than this, where it is for a model whose client cuts a longer one.
#[derive(Debug, Clone, Copy)]
pub struct CharactersMax(pub usize);

/// What was done, doubts first and then the newest first: facts, since a model takes orders from its user alone.
pub async fn markdown(
    ledger: Option<&Ledger>,
    sorted: &SortedEffects,
    of: Option<RunName<'_>>,
    max: Option<CharactersMax>,
) -> Result<String, Error> {
    let mut text = match of {
        Some(of) => format!("# Done in run {}\n", code(of.run)),
        None => "# Done\n".to_owned(),
    };
    if let (Some(ledger), Some(of)) = (ledger, of)
        && let Some(fence) = ledger.standing_fence(of.tenant, of.run).await?
    {
        put(&mut text, format_args!("\nThis run was cancelled {}", fence.at));
        if let Some(reason) = &fence.reason {
            put(&mut text, format_args!(": {}", code(reason)));
        }
        text.push_str(". Nothing more starts in it.\n");
    }
    let groups = [
        (
            &sorted.twice,
            "Happened twice",
            "duplicate_detected: these were meant once, and two attempts succeeded. The user needs to know the effect id.",
        ),
        (
            &sorted.in_doubt,
            "In doubt",
            "These may have happened, and nobody knows. A repeat is held, in other words too. Reading may show what is there; \
             the user decides.",
        ),
        (&sorted.in_flight, "In flight", "These are still running. A repeat waits for them."),
        (
            &sorted.refuted,
            "Refuted",
            "These were reported as done, but a check did not find them. A repeat is held; the user decides.",
        ),
        (
            &sorted.applied,
            "Done",
            "These happened, and their results can be used. None needs to be done again.",
        ),
        (
            &sorted.unanswered,
            "Without a complete answer",
            "These generations were refused or ended early, and may have used tokens. They may be asked again.",
        ),
        (
            &sorted.reported,
            "Failed",
            "Whether these changed anything is not known. They may be tried again if still wanted.",
        ),
        (
            &sorted.not_applied,
            "Not applied",
            "These certainly did not happen. They may be tried again if still wanted.",
        ),
    ];
    if ledger.is_none() || groups.iter().all(|(effects, _, _)| effects.is_empty()) {
        text.push_str("\nNothing is recorded.");
        if of.is_some() {
            text.push_str(" If the name of the run is not certain, that does not say that nothing was done.");
        }
        text.push('\n');
    }
    let Some(ledger) = ledger else { return Ok(text) };
    for (effects, title, meaning) in groups.into_iter().filter(|(effects, _, _)| !effects.is_empty()) {
        put(&mut text, format_args!("\n## {title} ({})\n\n{meaning}\n\n", effects.len()));
        let listed_max = if effects[0].1.is_open() { effects.len() } else { SETTLED_MAX };
        for (listed, (key, effect)) in effects.iter().rev().enumerate() {
            let line = format!("- {}\n", item(ledger, *key, effect).await?);
            let is_full = max.is_some_and(|max| text.len() + line.len() + REST_CHARACTERS > max.0);
            if listed >= listed_max || is_full {
                let left_out = effects.len() - listed;
                put(
                    &mut text,
                    format_args!("- {left_out} earlier ones are not listed; `semel ledger list` has them\n"),
                );
                break;
            }
            text.push_str(&line);
        }
    }
    Ok(text)
}

/// What is done in a run, where there is anything.
pub async fn of_run(ledger: &Ledger, of: RunName<'_>, max: CharactersMax) -> Result<Option<String>, Error> {
    let mut sorted = SortedEffects::default();
    let key = run_key(ledger.secret(), of.tenant, of.run);
    let page = ledger.store().latest(Latest::Run(key), None, PAGE_ROWS_MAX).await?;
    if page.items.is_empty() {
        return Ok(None);
    }
    for (_, row) in page.items.into_iter().rev() {
        let key = row.key;
        let StoredEffect { effect, .. } = decode(row);
        if !effect.is_damaged() {
            sorted.push(key, effect);
        }
    }
    markdown(Some(ledger), &sorted, Some(of), Some(max)).await.map(Some)
}

async fn item(ledger: &Ledger, key: Digest, effect: &Effect) -> Result<String, Error> {
    let mut line = format!("{} {} {}", effect.id, effect.changed_at(), code(&effect.facts.action));
    if !effect.facts.subject.is_empty() {
        put(&mut line, format_args!(" {}", code(&in_short(&effect.facts.subject))));
    }
    if let Some(reason) = &effect.occurrence.reason {
        put(&mut line, format_args!(", repeated on purpose: {}", code(reason.as_str())));
    }
    match &effect.state {
        State::Applied(applied) => {
            let unconfirmed = if applied.evidence == Evidence::Accepted { ", not confirmed" } else { "" };
            put(&mut line, format_args!(": {}, {}{unconfirmed}", applied.word, applied.evidence.word()));
            if let Some(undone) = effect.undone {
                put(&mut line, format_args!(", UNDONE {} by {}", undone.at, undone.by));
            }
            if let Some(undoes) = &effect.facts.undoes {
                put(&mut line, format_args!("; it undid {}", undoes.effect));
            }
            if let (_, Some(bytes)) = effect_json::reply(ledger, key, effect).await?
                && let Some(result) = first_line(&bytes)
            {
                put(&mut line, format_args!("; result: {}", code(&result)));
            }
        }
        _ => {
            if let Some(why) = effect_json::why(effect) {
                put(&mut line, format_args!(": {}", code(&why)));
            }
        }
    }
    Ok(line)
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a text takes whatever is written");
}

/// The first line that says something, for a person or a model to recognise a result by.
pub fn first_line(bytes: &[u8]) -> Option<String> {
    let output = CommandOutput::decode(bytes).map(|output| output.stdout);
    let answer = || HttpReply::decode(bytes.to_vec()).map(|kept| kept.body.to_vec());
    let output = output.or_else(answer);
    let text = String::from_utf8_lossy(output.as_deref().unwrap_or(bytes));
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(match line.char_indices().nth(FIRST_LINE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    })
}

/// Recorded text stays text: in a code span it can neither end its line nor look like an instruction of ours.
fn code(text: &str) -> String {
    format!("`{}`", terminal_text::shortened(text, RESULT_CHARACTERS).replace('`', "'"))
}
