//! Numbers of payment cards, known by their digits alone: nobody names the field `card_number` in a sentence.
//!
//! A number counts if an issuer could have given it out and its check digit is right. Of the long numbers that are no
//! cards (ids, moments in time) one in fifty or so passes both; its text is then hidden from people, and nothing else.

use super::names::REDACTED;
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// A UUID, whose first groups can be the digits of a card; or digits, with single spaces or hyphens between them. Beside
/// a letter or in a fraction they are no card.
const NUMBER: &str = concat!(
    "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "|(?<before>[A-Za-z]|[0-9][.])?(?<digits>[0-9](?:[ -]?[0-9])*)(?<after>[A-Za-z][0-9A-Za-z]*|[.][0-9]+)?",
);

/// The text without them. `None`: there are none, as in most texts.
pub fn without_cards(text: &str) -> Option<String> {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| Regex::new(NUMBER).expect("it is tested"));
    // Most texts do not have as many digits.
    if text.bytes().filter(u8::is_ascii_digit).count() < DIGITS_MIN {
        return None;
    }
    let mut found = false;
    let shown = PATTERN.replace_all(text, |number: &Captures<'_>| {
        let alone = number.name("before").is_none() && number.name("after").is_none();
        match number.name("digits").filter(|digits| alone && is_card(digits.as_str())) {
            Some(_) => {
                found = true;
                REDACTED.to_owned()
            }
            None => number[0].to_owned(),
        }
    });
    found.then(|| shown.into_owned())
}

fn is_card(run: &str) -> bool {
    let digits: Vec<u8> = run.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    (DIGITS_MIN..=DIGITS_MAX).contains(&digits.len()) && has_issuer(&digits) && passes_luhn(&digits)
}

const DIGITS_MIN: usize = 13;
const DIGITS_MAX: usize = 19;

/// The beginnings and lengths that card schemes use.
fn has_issuer(digits: &[u8]) -> bool {
    let begins = digits[..4].iter().fold(0u32, |number, digit| number * 10 + u32::from(*digit));
    match begins {
        4000..=4999 => matches!(digits.len(), 13 | 16 | 19),
        5100..=5599 | 2221..=2720 => digits.len() == 16,
        3400..=3499 | 3700..=3799 => digits.len() == 15,
        3000..=3059 | 3090..=3099 | 3600..=3699 | 3800..=3999 => digits.len() >= 14,
        3528..=3589 | 2200..=2204 | 6000..=6099 | 6200..=6299 | 6440..=6599 => digits.len() >= 16,
        5000..=5099 | 5600..=5899 | 6300..=6399 | 6700..=6799 => true,
        _ => false,
    }
}

fn passes_luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, digit)| match (i % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_card_is_known_by_its_digits() {
        for card in [
            "4242424242424242",
            "4242 4242 4242 4242",
            "4000-0566-5566-5556",
            "378282246310005",
            "3782 822463 10005",
            "5555555555554444",
            "2223003122003222",
            "6011111111111117",
            "3056930009020004",
            "3566002020360505",
            "6200000000000005",
            "4222222222222",
            "6304000000000000",
        ] {
            assert_eq!(without_cards(card).as_deref(), Some(REDACTED), "{card}");
            let inside = format!("pay with {card}, please; not \u{e4}{card}.");
            let shown = "pay with [redacted], please; not \u{e4}[redacted].";
            assert_eq!(without_cards(&inside).as_deref(), Some(shown));
        }
    }

    #[test]
    fn other_numbers_stay() {
        for other in [
            "4242424242424241",
            "424242424242",
            "42424242424242424242",
            "1700000000000",
            "1700000000000000008",
            "0.4242424242424242",
            "4242424242424242.5",
            "order-a4242424242424242",
            "4242424242424242f",
            "4242  4242  4242  4242",
            "+49 30 1234567",
            "2026-11-15 12:00:00",
            "40000566-5566-5556-ab0f-c9ab9b6e572d",
            "ch_40000566-5566-5556-ab0f-c9ab9b6e572d, urn:uuid:ab0fc9ab-4000-0566-5566-55560000000a",
            "",
        ] {
            assert_eq!(without_cards(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic_and_twice_is_once(text in "[0-9 .\u{e4}a-]{0,60}") {
            if let Some(shown) = without_cards(&text) {
                prop_assert_eq!(without_cards(&shown), None);
            }
        }
    }
}
