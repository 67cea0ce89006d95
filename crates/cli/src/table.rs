//! The table of effects: the id is never cut, a state has a colour and always its word.

use crate::effect_json;
use crate::terminal_text;
use comfy_table::{ContentArrangement, Table};
use owo_colors::{OwoColorize, Style};
use semel_core::effect::{Effect, Evidence, NotApplied, NotAppliedWhy, State};
use semel_core::time::{At, in_words};

/// The width that is left beside the other columns on a common terminal.
const SUBJECT_CHARACTERS: usize = 40;
const WHY_CHARACTERS: usize = 48;

const HEADER: [&str; 7] = ["EFFECT", "AGE", "STATE", "ACTION", "SUBJECT", "ATTEMPTS", "WHY"];

pub fn effects<'a>(effects: impl IntoIterator<Item = &'a Effect>, now: At, wide: bool) -> String {
    let effects: Vec<&Effect> = effects.into_iter().collect();
    let cut = |text: &str, characters| {
        if wide { terminal_text::line(text) } else { terminal_text::shortened(text, characters) }
    };
    let rows = effects.iter().map(|effect| {
        vec![
            effect.id.to_string(),
            in_words(now.since(effect.opened_at)),
            word(&effect.state).to_owned(),
            terminal_text::line(&effect.facts.action),
            cut(&effect.facts.subject, SUBJECT_CHARACTERS),
            effect.newest_attempt().map_or(0, |attempt| attempt.number.0).to_string(),
            cut(&why(effect), WHY_CHARACTERS),
        ]
    });
    let lines = plain(&HEADER, rows);
    let column = lines[0].find(HEADER[2]).expect("the header has its words");
    let mut text = lines[0].bold().to_string();
    for (line, effect) in lines[1..].iter().zip(effects) {
        // All columns before the state are ASCII, so its place is the same in every line.
        let (before, rest) = line.split_at(column);
        let (state, after) = rest.split_at(word(&effect.state).len());
        text.push_str(&format!("\n{before}{}{after}", state.style(style(&effect.state))));
    }
    text
}

/// Columns two spaces apart, without borders: the header first, then one line a row.
pub fn plain(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// The state in its colour.
pub fn state(state: &State) -> String {
    word(state).style(style(state)).to_string()
}

/// A disproved success waits for a person, and a reported failure proves nothing.
fn word(state: &State) -> &'static str {
    match state {
        State::NotApplied(NotApplied { why: NotAppliedWhy::Refuted(_), .. }) => "refuted",
        State::NotApplied(NotApplied { why: NotAppliedWhy::Reported(_), .. }) => "failed",
        state => state.word(),
    }
}

fn style(state: &State) -> Style {
    match state {
        State::Applied(_) => Style::new().green(),
        State::InFlight { .. } => Style::new().blue(),
        State::InDoubt(_) => Style::new().yellow(),
        State::NotApplied(_) => Style::new().red(),
    }
}

/// The last column. A plain success needs no words.
fn why(effect: &Effect) -> String {
    match &effect.state {
        State::Applied(_) if effect.undone.is_some() => {
            effect.undone.map(|undone| format!("undone by {}", undone.by)).unwrap_or_default()
        }
        State::Applied(applied) if applied.evidence == Evidence::Reported => String::new(),
        State::Applied(applied) => applied.evidence.word().to_owned(),
        _ => effect_json::why(effect).unwrap_or_default(),
    }
}
