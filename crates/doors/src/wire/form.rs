//! `application/x-www-form-urlencoded`, as queries and forms are written.

use semel_core::json::{Json, Object};
use std::borrow::Cow;

/// More pairs than this were generated to do harm.
pub const PAIRS_MAX: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {PAIRS_MAX} parameters")]
pub struct TooMany;

/// The beginning of an escaped byte.
const ESCAPE: &str = "\u{FFFD}%";

/// Bytes as text. UTF-8 stays as it is, and any other byte is written `\u{FFFD}%E9`. A text that has such a beginning
/// of its own has it escaped, so that no two byte strings become one text.
pub fn text_of(bytes: Vec<u8>) -> String {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if !text.contains(ESCAPE) => return text,
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    };
    let mut text = String::with_capacity(bytes.len() * 2);
    for chunk in bytes.utf8_chunks() {
        let mut pieces = chunk.valid().split(ESCAPE);
        text.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            escape("\u{FFFD}".as_bytes(), &mut text);
            text.push('%');
            text.push_str(piece);
        }
        escape(chunk.invalid(), &mut text);
    }
    text
}

fn escape(bytes: &[u8], text: &mut String) {
    use std::fmt::Write as _;
    for byte in bytes {
        write!(text, "{ESCAPE}{byte:02X}").expect("a text takes whatever is written");
    }
}

/// Names and values, decoded.
pub fn pairs(text: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
}

/// An object of texts; a name that comes twice has a list of them, in their order. Brackets in names stay as they are.
pub fn object(text: &str) -> Result<Object, TooMany> {
    let mut object = Object::new();
    for (count, (name, value)) in pairs(text).enumerate() {
        if count == PAIRS_MAX {
            return Err(TooMany);
        }
        let value = Json::String(value.into_owned());
        match object.get_mut(&name) {
            None => drop(object.insert(name, value)),
            Some(Json::Array(values)) => values.push(value),
            Some(first) => {
                let before = std::mem::replace(first, Json::Null);
                *first = Json::Array(vec![before, value]);
            }
        }
    }
    Ok(object)
}

/// The text with one pair set: in its place if it is there, else at the end. All else stays as it was written.
pub fn with(text: &str, name: &str, value: &str) -> String {
    let new = format!("{}={}", encoded(name), encoded(value));
    let mut found = false;
    let mut kept: Vec<&str> = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let is_it = decoded(pair.split_once('=').map_or(pair, |(name, _)| name)) == name;
        match (is_it, found) {
            (false, _) => kept.push(pair),
            (true, false) => kept.push(&new),
            // A second one would be another value under the same name.
            (true, true) => {}
        }
        found |= is_it;
    }
    if !found {
        kept.push(&new);
    }
    kept.join("&")
}

pub fn decoded(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, beyond @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = beyond;
                }
                _ => bytes.push(b'%'),
            },
            (byte, _) => bytes.push(byte),
        }
    }
    Cow::Owned(text_of(bytes))
}

pub fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte as char),
            _ => write!(encoded, "%{byte:02X}").expect("writing to a string cannot fail"),
        }
    }
    encoded
}

fn digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> String {
        Json::Object(object(text).unwrap()).canonical()
    }

    #[test]
    fn names_stay_literal_and_repeated_ones_are_lists() {
        assert_eq!(
            read("amount=2000&metadata[order]=6%20735&x=1&x=2&x=3"),
            r#"{"amount":"2000","metadata[order]":"6 735","x":["1","2","3"]}"#
        );
        assert_eq!(read("metadata%5Border%5D=a+b&flag&=e"), r#"{"":"e","flag":"","metadata[order]":"a b"}"#);
        assert_eq!(read("a=%zz&b=%"), r#"{"a":"%zz","b":"%"}"#);
        assert_eq!(object(&"a&".repeat(PAIRS_MAX + 1)), Err(TooMany));
    }

    #[test]
    fn a_pair_is_set_and_all_else_stays() {
        assert_eq!(with("a=%41&k=old&b=1", "k", "new"), "a=%41&k=new&b=1");
        assert_eq!(with("a=1", "k[x]", "n w"), "a=1&k%5Bx%5D=n%20w");
        assert_eq!(with("k=1&a=2&k=3", "k", "n"), "k=n&a=2");
        assert_eq!(with("", "k", "n"), "k=n");
    }

    #[test]
    fn bytes_that_are_no_text_stay_apart_from_every_text() {
        assert_eq!(read("a=%E9&b=%25E9&c=%C3%A9"), "{\"a\":\"\u{FFFD}%E9\",\"b\":\"%E9\",\"c\":\"é\"}");
        // Texts that have the mark and no escape are themselves.
        assert_eq!(text_of("\u{FFFD} 100% \u{FFFD}".into()), "\u{FFFD} 100% \u{FFFD}");
    }

    /// The bytes that a text was made from.
    fn bytes_of(text: &str) -> Vec<u8> {
        let mut pieces = text.split(ESCAPE);
        let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
        for piece in pieces {
            bytes.push(u8::from_str_radix(&piece[..2], 16).unwrap());
            bytes.extend(&piece.as_bytes()[2..]);
        }
        bytes
    }

    /// Bytes among which texts, escapes and halves of both are frequent.
    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let texts = proptest::sample::select(&["\u{FFFD}", "%", "\u{FFFD}%E9", "E9", "é"][..]);
        let bytes = proptest::sample::select(&[0xEFu8, 0xBF, 0xBD, 0xE9, b'%'][..]);
        prop_oneof![
            any::<Vec<u8>>(),
            texts.prop_map(|text| text.as_bytes().to_vec()),
            bytes.prop_map(|byte| vec![byte])
        ]
    }

    proptest! {
        #[test]
        fn a_text_tells_all_of_its_bytes(pieces in proptest::collection::vec(piece(), 0..8)) {
            let bytes = pieces.concat();
            prop_assert_eq!(bytes_of(&text_of(bytes.clone())), bytes);
        }

        #[test]
        fn what_was_set_is_read_back(name in "\\PC{1,8}", value in any::<String>(), before in "[a-z=&%+]{0,20}") {
            let text = with(&before, &name, &value);
            let (name, value) = (text_of(name.into_bytes()), text_of(value.into_bytes()));
            let values: Vec<_> = pairs(&text).filter(|(known, _)| *known == name).collect();
            prop_assert_eq!(values.len(), 1);
            prop_assert_eq!(&values[0].1, &value);
        }
    }
}
