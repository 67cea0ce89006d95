//! A tool's definition for people, in lines that can be compared.

use semel_core::json;
use serde_json::Value;
use std::borrow::Cow;

/// Some thirty pages: what is longer nobody reads before accepting it, and each tool in use has two in the ledger.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Whoever accepts a definition must have seen all of it: what is kept is its beginning, and how much there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InWords {
    pub text: String,
    /// Of the whole.
    pub bytes: usize,
}

impl InWords {
    pub fn of(members: Vec<(&str, Cow<'_, str>)>) -> InWords {
        let lines = members.into_iter().map(|(name, value)| format!("{name}: {}\n", readable(&value)));
        InWords::cut(lines.collect())
    }

    pub fn is_whole(&self) -> bool {
        self.text.len() == self.bytes
    }

    /// Both, one below the other.
    pub fn and(&self, other: &InWords) -> InWords {
        let bytes = self.bytes + 1 + other.bytes;
        match self.is_whole() {
            true => InWords { bytes, ..InWords::cut(format!("{}\n{}", self.text, other.text)) },
            false => InWords { text: self.text.clone(), bytes },
        }
    }

    /// What is left where there is no room: how long it is.
    pub fn forgotten(&self) -> InWords {
        InWords { text: String::new(), bytes: self.bytes }
    }

    fn cut(mut text: String) -> InWords {
        let bytes = text.len();
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        InWords { text, bytes }
    }
}

/// Two values that differ are written differently: what reads alike could be accepted for one another.
fn readable(value: &str) -> Cow<'_, str> {
    let Ok(exact) = json::parse(value) else { return Cow::Borrowed(value) };
    let pretty = match exact.as_str() {
        // A text that looks like something else keeps its quotes.
        Some(words) if json::parse(words).is_err() => return Cow::Owned(words.to_owned()),
        Some(_) => return Cow::Borrowed(value),
        None => serde_json::from_str::<Value>(value)
            .ok()
            .and_then(|value| serde_json::to_string_pretty(&value).ok()),
    };
    // Numbers that lose digits on the way are shown as they came.
    let is_exact =
        |pretty: &String| json::parse(pretty).is_ok_and(|read| read.canonical() == exact.canonical());
    pretty.filter(is_exact).map_or(Cow::Borrowed(value), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(description: &str) -> InWords {
        InWords::of(vec![("description", Cow::Borrowed(description))])
    }

    #[test]
    fn what_differs_reads_differently() {
        for (one, other) in [
            (r#""5""#, "5"),
            (r#""{\"a\":1}""#, r#"{"a":1}"#),
            (r#""\"5\"""#, r#""5""#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            ("0.10000000000000000001", "0.1"),
        ] {
            assert_ne!(of(one).text, of(other).text);
        }
        assert_eq!(of(r#""It pays.""#).text, "description: It pays.\n");
        assert_eq!(of(r#"{"a":1}"#).text, of(r#"{ "a": 1 }"#).text);
    }

    #[test]
    fn what_is_longer_than_what_is_kept_is_known_to_be() {
        let quoted = |letters: usize| format!("\"{}\"", "ä".repeat(letters));
        let (short, long) = (of(&quoted(10)), of(&quoted(TEXT_BYTES_MAX)));
        assert!(short.is_whole() && !long.is_whole() && !short.forgotten().is_whole());
        assert!(long.text.len() <= TEXT_BYTES_MAX && long.bytes > 2 * TEXT_BYTES_MAX);
        let both = short.and(&of("5"));
        assert!(both.is_whole() && both.text.ends_with("ä\n\ndescription: 5\n"), "{both:?}");
        assert!(!short.and(&long).is_whole() && !long.and(&short).is_whole());
        assert_eq!(short.and(&long).bytes, long.and(&short).bytes);
    }
}
