//! The effects of a run in Markdown, for a model that has forgotten them.

use crate::reply::{CommandOutput, HttpReply};
use crate::{effect_json, terminal_text};
use semel_core::class::Class;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, Evidence, NotApplied, NotAppliedWhy, State};
use semel_core::lifecycle;
use semel_core::subject::in_short;
use semel_ledger::{Error, Ledger};
use std::fmt::Write as _;

/// Of what is settled, so many of the newest are listed: a model's context was short to begin with.
const SETTLED_MAX: usize = 100;

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

pub async fn markdown(
    ledger: Option<&Ledger>,
    sorted: &SortedEffects,
    of: Option<RunName<'_>>,
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
        text.push_str(". Start nothing more in it.\n");
    }
    let groups = [
        (
            &sorted.twice,
            "Happened twice",
            "duplicate_detected: these were meant once, and two attempts succeeded. Tell the user the effect id at \
             once. Do not repeat these, and do not take one back on your own.",
        ),
        (&sorted.applied, "Done", "These happened. Do not repeat these; use their results."),
        (
            &sorted.in_doubt,
            "In doubt",
            "These may have happened, and nobody knows. Do not repeat these, reword them or reach the same end \
             another way. Check by reading only, and tell the user the effect id.",
        ),
        (&sorted.in_flight, "In flight", "These are still running. Do not repeat these; wait for them."),
        (
            &sorted.refuted,
            "Refuted",
            "These were reported as done, but a check did not find them. Do not repeat these; tell the user \
             the effect id.",
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
    for (effects, title, instruction) in groups.into_iter().filter(|(effects, _, _)| !effects.is_empty()) {
        put(&mut text, format_args!("\n## {title} ({})\n\n{instruction}\n\n", effects.len()));
        let open = effects[0].1.is_open();
        let left_out = if open { 0 } else { effects.len().saturating_sub(SETTLED_MAX) };
        if left_out > 0 {
            put(
                &mut text,
                format_args!("- {left_out} earlier ones are not listed; `semel ledger list` has them\n"),
            );
        }
        for (key, effect) in &effects[left_out..] {
            put(&mut text, format_args!("- {}\n", item(ledger, *key, effect).await?));
        }
    }
    Ok(text)
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
