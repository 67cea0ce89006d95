//! The outline of a call: its action and arguments without content, stamps and volatile ones, amounts by value, texts
//! without regard to case and outer space. No rule has a part in it, so that a change of policy hides nothing. Two
//! calls with one outline may mean the same thing, so the second may be held. They are never merged.

use super::arguments::{ArgumentKind, TrailStep, each_leaf, names_nothing};
use crate::json::{Json, Number};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Equal for calls that look alike.
    pub text: String,
    /// The content that it leaves out. Two calls that have this in common too differ in stamps alone.
    pub content: String,
    /// It has a title or an amount: two of them are seldom meant.
    pub is_specific: bool,
    /// It answers a thread or a message, where one title comes many times.
    pub is_answer: bool,
}

impl Outline {
    pub fn of(arguments: &Json) -> Outline {
        let (text, content) = (String::new(), String::new());
        let mut outline = Outline { text, content, is_specific: false, is_answer: false };
        each_leaf(arguments, &mut |leaf| {
            // A key leaves the place of a command out, and a call without one has to be found by it.
            let is_place = matches!(
                leaf.trail,
                [TrailStep::Member("cwd")] | [TrailStep::Member("argv"), TrailStep::Element(0)]
            );
            if is_place || matches!(leaf.kind, ArgumentKind::Stamp | ArgumentKind::Volatile) {
                return true;
            }
            if leaf.kind == ArgumentKind::Content {
                leaf.write_path(&mut outline.content);
                leaf.value.write_canonical(&mut outline.content);
            } else if !names_nothing(leaf.value) || leaf.value.as_bool().is_some() {
                outline.is_specific |= matches!(leaf.kind, ArgumentKind::Title | ArgumentKind::Amount);
                outline.is_answer |= leaf.kind == ArgumentKind::Thread;
                leaf.write_path(&mut outline.text);
                outline.text.push('=');
                match leaf.value {
                    Json::String(text) => outline.text.push_str(&by_value(text)),
                    value => value.write_canonical(&mut outline.text),
                }
                outline.text.push('\n');
            }
            true
        });
        outline
    }
}

/// Signs and codes that only say of which currency an amount is.
const CURRENCY_SIGNS: [char; 4] = ['$', '€', '£', '¥'];
const CURRENCY_CODES: &[&str] = &[
    "usd", "eur", "gbp", "jpy", "chf", "cad", "aud", "nzd", "cny", "inr", "brl", "sek", "nok", "dkk", "pln",
];

/// A text in small letters whose amounts and numbers are written by their value: `$20`, `20.00 USD` and `20` are one.
fn by_value(text: &str) -> String {
    let words: Vec<OutlineWord<'_>> = text.split_whitespace().map(OutlineWord::read).collect();
    let mut out = String::with_capacity(text.len());
    for (at, word) in words.iter().enumerate() {
        let beside_number = || {
            let before = at.checked_sub(1).and_then(|before| words.get(before));
            [before, words.get(at + 1)]
                .into_iter()
                .flatten()
                .any(|word| matches!(word, OutlineWord::Number(_)))
        };
        if matches!(word, OutlineWord::Currency(_)) && beside_number() {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        match word {
            OutlineWord::Number(number) => out.push_str(number.text()),
            OutlineWord::Currency(text) | OutlineWord::Other(text) => out.push_str(&text.to_lowercase()),
        }
    }
    out
}

enum OutlineWord<'a> {
    Number(Number),
    Currency(&'a str),
    Other(&'a str),
}

impl<'a> OutlineWord<'a> {
    fn read(text: &'a str) -> OutlineWord<'a> {
        let bare = text.trim_matches(CURRENCY_SIGNS);
        let letters = bare.trim_end_matches(|c: char| c.is_ascii_digit() || ".,".contains(c)).len();
        let digits = bare.trim_start_matches(|c: char| c.is_ascii_digit() || ".,".contains(c));
        let is_code = |text: &str| CURRENCY_CODES.iter().any(|code| code.eq_ignore_ascii_case(text));
        let number = match (letters, digits) {
            // `USD20` and `20USD`.
            (at, _) if is_code(&bare[..at]) => amount(&bare[at..]),
            (_, code) if is_code(code) => amount(&bare[..bare.len() - code.len()]),
            _ => amount(bare),
        };
        match number {
            Some(number) => OutlineWord::Number(number),
            None if is_code(text) => OutlineWord::Currency(text),
            None => OutlineWord::Other(text),
        }
    }
}

/// `1,000.50` is a number, and so is `20`; `007` is a name.
fn amount(text: &str) -> Option<Number> {
    let whole = text.split('.').next().unwrap_or_default();
    let mut groups = whole.trim_start_matches('-').split(',');
    let first = groups.next().unwrap_or_default();
    let grouped = groups.clone().next().is_none()
        || ((1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3));
    Number::parse(&text.replace(',', "")).ok().filter(|_| grouped && !text.contains(['e', 'E']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    fn outline(arguments: &str) -> Outline {
        Outline::of(&parse(arguments).unwrap())
    }

    #[test]
    fn content_and_stamps_are_left_out_and_the_rest_counts() {
        let mail = outline(r#"{"args":{"to":"ann","subject":"Hi","body":"one","request_id":"1","cc":null}}"#);
        let other = outline(r#"{"args":{"to":"ann","subject":"Hi","body":"two words","request_id":"2"}}"#);
        assert_eq!(mail.text, other.text);
        assert_ne!(mail.content, other.content);
        let stamped = outline(r#"{"args":{"to":"ann","subject":"Hi","body":"one","request_id":"2"}}"#);
        assert_eq!(mail, stamped);
        assert!(mail.is_specific && !mail.is_answer);
        assert_ne!(mail, outline(r#"{"args":{"to":"bob","subject":"Hi","body":"one"}}"#));
        assert_ne!(mail, outline(r#"{"args":{"to":"ann","subject":"Hi","body":"one","draft":true}}"#));
        let chat = outline(r#"{"args":{"channel":"C1","text":"hello","thread_ts":"1.2"}}"#);
        assert!(!chat.is_specific && chat.is_answer);
    }

    #[test]
    fn amounts_are_compared_by_value() {
        let texts = [
            "\"$20\"",
            "\"20.00 USD\"",
            "20",
            "\"20\"",
            "20.0",
            "\"USD 20.00\"",
            "\"20USD\"",
            "\"EUR20\"",
            "\"€20.00\"",
        ];
        let outlines = texts.map(|text| outline(&format!(r#"{{"args":{{"amount":{text}}}}}"#)));
        assert!(outlines.windows(2).all(|pair| pair[0] == pair[1]), "{outlines:?}");
        assert_eq!(
            outline(r#"{"args":{"amount":5,"currency":"usd","to":"Ann "}}"#),
            outline(r#"{"args":{"amount":5,"currency":"USD","to":"ann"}}"#)
        );
        let one = |text: &str| by_value(text);
        assert_eq!(one("Refund of $1,000.50 to Ann"), one("Refund of 1000.5  to Ann"));
        for (a, b) in [
            ("007", "7"),
            ("INV-20", "INV-20.0"),
            ("1,00", "100"),
            ("v1.20", "v1.2"),
            ("euro", "eur"),
            ("1e2", "100"),
        ] {
            assert_ne!(one(a), one(b), "{a} and {b}");
        }
    }
}
