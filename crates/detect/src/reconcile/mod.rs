//! Compares what was intended with what is out there.
//!
//! Both sides are reduced to marks of the values that identify them: the ledger keeps marks of arguments and not the
//! arguments themselves, so an outside row is marked with the ledger's secret and compared by that.

pub mod outside;
pub mod transcript;
pub mod usage;

use semel_core::digest::Secret;
use semel_core::identity::{Marks, value_mark};
use semel_core::json::{Json, Number, Path, PathError};
use serde::Serialize;
use std::collections::HashMap;

/// Which value of an intended effect equals which value of an outside row: `args.invoice=invoice`.
#[derive(Debug, Clone)]
pub struct Pairing {
    pub pairs: Vec<(String, Path)>,
}

#[derive(Debug, thiserror::Error)]
pub enum BadPairing {
    #[error("`{0}` is not of the form ARGUMENT=COLUMN, such as args.invoice=invoice")]
    Form(String),
    #[error("`{0}` is no path: {1}")]
    Path(String, PathError),
    #[error("nothing says by what rows are matched")]
    Empty,
    #[error("at most {PAIRS_MAX} values identify a row")]
    TooMany,
}

/// Each value may be a text or a number, so the ways to write a row double with each.
const PAIRS_MAX: usize = 6;

impl Pairing {
    pub fn parse(text: &str) -> Result<Pairing, BadPairing> {
        let mut pairs = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (left, right) = part.split_once('=').ok_or_else(|| BadPairing::Form(part.to_owned()))?;
            let right = right.trim();
            // A bare name is a column of that name.
            let path = Path::parse(right).map_err(|error| BadPairing::Path(right.to_owned(), error))?;
            pairs.push((left.trim().to_owned(), path));
        }
        match pairs.len() {
            0 => Err(BadPairing::Empty),
            1..=PAIRS_MAX => Ok(Pairing { pairs }),
            _ => Err(BadPairing::TooMany),
        }
    }

    /// The paths of a call's values that a pairing can name.
    pub fn paths_in(marks: &Marks) -> impl Iterator<Item = &str> {
        marks.paths.iter().chain(&marks.content_paths).map(|leaf| &*leaf.path)
    }

    /// The marks of a call's identifying values. `None`: it has not all of them.
    pub fn marks_in(&self, marks: &Marks) -> Option<Vec<u64>> {
        let all = || marks.paths.iter().chain(&marks.content_paths);
        let mark = |path: &String| all().find(|leaf| leaf.path == path.as_str()).map(|leaf| leaf.mark);
        self.pairs.iter().map(|(path, _)| mark(path)).collect()
    }

    /// A column that no row has. An outside without any rows has none to miss.
    pub fn unknown_column(&self, rows: &[OutsideRow]) -> Option<&Path> {
        let is_there = |path: &&Path| rows.iter().any(|row| !path.find(&row.values).is_empty());
        self.pairs.iter().map(|(_, path)| path).find(|path| !rows.is_empty() && !is_there(path))
    }
}

/// The left side: an effect of the ledger, or a call that was intended.
#[derive(Debug, Clone)]
pub struct IntendedEffect {
    pub id: String,
    pub action: String,
    pub subject: String,
    pub standing: Standing,
    /// The marks of its identifying values, in the order of the pairing.
    pub marks: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Applied,
    NotApplied,
    InDoubt,
    InFlight,
    /// It was only intended; no ledger knows of it.
    Intended,
}

/// A row of the outside, by its place in the source.
#[derive(Debug, Clone)]
pub struct OutsideRow {
    pub place: String,
    pub values: Json,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Comparison {
    Matched {
        id: String,
        row: String,
    },
    /// One effect, several rows.
    TwiceOutside {
        id: String,
        action: String,
        subject: String,
        rows: Vec<String>,
    },
    /// The ledger says that it was done, and it is not there: a false success.
    AbsentOutside {
        id: String,
        action: String,
        subject: String,
    },
    /// Nobody meant it, as far as the left side knows.
    UnknownToLedger {
        row: String,
    },
    /// Nobody knew whether it had happened.
    NowDecidable {
        id: String,
        action: String,
        subject: String,
        happened: bool,
        row: Option<String>,
    },
    /// It was intended, and is not there.
    NotDone {
        id: String,
        action: String,
        subject: String,
    },
    /// The outside was asked, and could not tell.
    Undecided {
        id: String,
        action: String,
        subject: String,
        why: String,
    },
}

impl Comparison {
    /// The effect that it is about. `None`: nobody knows of one.
    pub fn id(&self) -> Option<&str> {
        match self {
            Comparison::Matched { id, .. }
            | Comparison::TwiceOutside { id, .. }
            | Comparison::AbsentOutside { id, .. }
            | Comparison::NowDecidable { id, .. }
            | Comparison::NotDone { id, .. }
            | Comparison::Undecided { id, .. } => Some(id),
            Comparison::UnknownToLedger { .. } => None,
        }
    }
}

/// Compares both sides. Effects that did not happen, and are not there, are as they should be and not listed.
pub fn compare(
    intended: &[IntendedEffect],
    outside: &[OutsideRow],
    pairing: &Pairing,
    secret: &Secret,
) -> Vec<Comparison> {
    let mut by_marks: HashMap<Vec<u64>, Vec<usize>> = HashMap::new();
    for (number, row) in outside.iter().enumerate() {
        for marks in ways_to_write(row, pairing, secret) {
            by_marks.entry(marks).or_default().push(number);
        }
    }
    let mut is_known = vec![false; outside.len()];
    let mut found = Vec::new();
    let mut equal: HashMap<&[u64], Vec<&IntendedEffect>> = HashMap::new();
    for effect in intended {
        equal.entry(&effect.marks).or_default().push(effect);
    }
    for effect in intended {
        let Some(effects) = equal.remove(effect.marks.as_slice()) else { continue };
        let mut rows = by_marks.get(&effect.marks).cloned().unwrap_or_default();
        rows.dedup();
        rows.iter().for_each(|row| is_known[*row] = true);
        let places: Vec<String> = rows.iter().map(|row| outside[*row].place.clone()).collect();
        match effects.as_slice() {
            [effect] => found.extend(result(effect, places)),
            several => found.extend(shared(several, places)),
        }
    }
    let unknown = outside.iter().zip(is_known).filter(|(_, is_known)| !is_known);
    found.extend(unknown.map(|(row, _)| Comparison::UnknownToLedger { row: row.place.clone() }));
    found
}

/// Effects that the values do not tell apart, such as repeats on purpose. Each takes one row, those that are known to have
/// happened first. A doubt is not decided by a row that may be another's.
fn shared(effects: &[&IntendedEffect], rows: Vec<String>) -> Vec<Comparison> {
    let (applied, open): (Vec<&IntendedEffect>, Vec<&IntendedEffect>) =
        effects.iter().copied().partition(|effect| effect.standing == Standing::Applied);
    let spare = rows.get(applied.len()).cloned();
    let mut rows = rows.into_iter();
    let mut found = Vec::new();
    for effect in applied.into_iter().chain(open) {
        let row = rows.next();
        let is_doubt = matches!(effect.standing, Standing::InDoubt | Standing::NotApplied);
        found.extend(match &spare {
            Some(spare) if is_doubt => {
                let IntendedEffect { id, action, subject, .. } = effect.clone();
                let why = format!("{spare} may be another effect with the same values");
                Some(Comparison::Undecided { id, action, subject, why })
            }
            _ => result(effect, row.into_iter().collect()),
        });
    }
    // Rows beyond all that were ever tried are nobody's.
    found.extend(rows.map(|row| Comparison::UnknownToLedger { row }));
    found
}

fn result(effect: &IntendedEffect, mut rows: Vec<String>) -> Option<Comparison> {
    let IntendedEffect { id, action, subject, standing, .. } = effect.clone();
    if rows.len() > 1 {
        return Some(Comparison::TwiceOutside { id, action, subject, rows });
    }
    let row = rows.pop();
    match (standing, row) {
        (Standing::InDoubt, row) => {
            Some(Comparison::NowDecidable { id, action, subject, happened: row.is_some(), row })
        }
        // It may appear any moment.
        (Standing::InFlight, None) | (Standing::NotApplied, None) => None,
        (Standing::Applied, None) => Some(Comparison::AbsentOutside { id, action, subject }),
        (Standing::Intended, None) => Some(Comparison::NotDone { id, action, subject }),
        (Standing::NotApplied, Some(row)) => {
            Some(Comparison::NowDecidable { id, action, subject, happened: true, row: Some(row) })
        }
        (_, Some(row)) => Some(Comparison::Matched { id, row }),
    }
}

/// The marks of a row. A text that is a number may stand for either, since tables of text do not say.
fn ways_to_write(row: &OutsideRow, pairing: &Pairing, secret: &Secret) -> Vec<Vec<u64>> {
    let mut ways: Vec<Vec<u64>> = vec![Vec::new()];
    for (_, path) in &pairing.pairs {
        let Some((_, value)) = path.find(&row.values).into_iter().next() else { return Vec::new() };
        let mut marks = vec![value_mark(secret, &value.canonical())];
        match value {
            Json::String(text) => {
                marks.extend(
                    Number::parse(text)
                        .ok()
                        .map(|number| value_mark(secret, &Json::Number(number).canonical())),
                );
            }
            Json::Number(number) => marks.push(value_mark(secret, &Json::str(number.text()).canonical())),
            _ => {}
        }
        ways = ways
            .iter()
            .flat_map(|way| marks.iter().map(|mark| [way.as_slice(), &[*mark]].concat()))
            .collect();
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::json::parse;

    fn secret() -> Secret {
        Secret::new([7; 32])
    }

    fn effect(id: &str, invoice: &str, amount: &str, standing: Standing) -> IntendedEffect {
        let mark = |text: &str| value_mark(&secret(), &parse(text).expect("JSON").canonical());
        IntendedEffect {
            id: id.to_owned(),
            action: "mcp:billing/charge".to_owned(),
            subject: String::new(),
            standing,
            marks: vec![mark(invoice), mark(amount)],
        }
    }

    fn row(place: &str, values: &str) -> OutsideRow {
        OutsideRow { place: place.to_owned(), values: parse(values).expect("JSON") }
    }

    fn in_words(found: &[Comparison]) -> Vec<String> {
        let words = found.iter().map(|comparison| match comparison {
            Comparison::Matched { id, row } => format!("{id} matches {row}"),
            Comparison::TwiceOutside { id, rows, .. } => format!("{id} twice in {}", rows.join(",")),
            Comparison::AbsentOutside { id, .. } => format!("{id} absent"),
            Comparison::UnknownToLedger { row } => format!("{row} unknown"),
            Comparison::NowDecidable { id, happened, .. } => format!("{id} happened {happened}"),
            Comparison::NotDone { id, .. } => format!("{id} not done"),
            Comparison::Undecided { id, .. } => format!("{id} undecided"),
        });
        words.collect()
    }

    #[test]
    fn every_effect_of_equal_values_is_reported() {
        use Standing::{Applied, InDoubt, Intended};
        let pairing = Pairing::parse("args.invoice=invoice, args.amount=amount").expect("a pairing");
        for (standings, rows, expected) in [
            ([Intended, Intended], 0, vec!["a not done", "b not done"]),
            ([Intended, Intended], 1, vec!["a matches 0", "b not done"]),
            ([Intended, Intended], 2, vec!["a matches 0", "b matches 1"]),
            ([Intended, Intended], 3, vec!["a matches 0", "b matches 1", "2 unknown"]),
            ([InDoubt, Applied], 1, vec!["b matches 0", "a happened false"]),
            ([InDoubt, Applied], 2, vec!["b matches 0", "a undecided"]),
            ([InDoubt, InDoubt], 0, vec!["a happened false", "b happened false"]),
            ([InDoubt, InDoubt], 1, vec!["a undecided", "b undecided"]),
            ([Applied, Applied], 1, vec!["a matches 0", "b absent"]),
        ] {
            let effects = [effect("a", "1", "5", standings[0]), effect("b", "1", "5", standings[1])];
            let outside = (0..rows).map(|n| row(&n.to_string(), r#"{"invoice":1,"amount":5}"#));
            let outside: Vec<OutsideRow> = outside.collect();
            let found = compare(&effects, &outside, &pairing, &secret());
            assert_eq!(in_words(&found), expected, "{standings:?} with {rows}");
        }
    }

    #[test]
    fn both_sides_are_compared_by_value_whatever_a_table_calls_a_number() {
        let intended = [
            effect("a", r#""INV-1""#, "10", Standing::Applied),
            effect("b", r#""INV-2""#, "20", Standing::Applied),
            effect("c", r#""INV-3""#, "30", Standing::InDoubt),
            effect("d", r#""INV-4""#, "40", Standing::InDoubt),
            effect("e", r#""INV-5""#, "50", Standing::NotApplied),
            effect("f", r#""INV-6""#, "60", Standing::Applied),
        ];
        let outside = [
            row("1", r#"{"invoice":"INV-1","amount":"10.0"}"#),
            row("2", r#"{"invoice":"INV-3","amount":30}"#),
            row("3", r#"{"invoice":"INV-6","amount":"60"}"#),
            row("4", r#"{"invoice":"INV-6","amount":"60"}"#),
            row("5", r#"{"invoice":"INV-9","amount":"1"}"#),
            row("6", r#"{"amount":"1"}"#),
        ];
        let pairing = Pairing::parse("args.invoice=invoice, args.amount=amount").expect("a pairing");
        let found = compare(&intended, &outside, &pairing, &secret());
        assert_eq!(
            in_words(&found),
            [
                "a matches 1",
                "b absent",
                "c happened true",
                "d happened false",
                "f twice in 3,4",
                "5 unknown",
                "6 unknown"
            ]
        );
    }
}
