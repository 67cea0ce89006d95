//! The id of a JSON-RPC request.

use crate::wire::members::quoted;
use semel_core::json;
use std::borrow::Cow;
use std::fmt;

/// Whole numbers of so many digits are written as they are, not as powers of ten: some clients compare the text.
const PLAIN_DIGITS_MAX: usize = 100;

/// An id, a string or a number, as JSON text in one spelling: a peer may answer `"\u0061"` to `"a"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Box<str>);

impl Id {
    /// From JSON text: a string or a number.
    pub fn from_json(text: &str) -> Option<Id> {
        match text.as_bytes().first()? {
            b'"' => serde_json::from_str::<Cow<'_, str>>(text).ok().map(|text| Id::text(&text)),
            // Nearly all ids are counted up, and a whole number has one spelling.
            b'1'..=b'9'
                if text.len() <= PLAIN_DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                Some(Id(text.into()))
            }
            // A peer may answer 100 to 1e2.
            b'0'..=b'9' | b'-' => json::parse(text).ok().map(|number| Id(number.canonical().into())),
            _ => None,
        }
    }

    pub fn text(text: &str) -> Id {
        Id(quoted(text).into())
    }

    /// Of a request that semel makes itself.
    pub fn own(instance: &str, number: u64) -> Id {
        Id::text(&format!("semel-{instance}-{number}"))
    }

    /// As JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_comes_back_as_the_id_that_it_was() {
        for id in ["7", "9007199254740993", "100000000000000000000000", &"9".repeat(PLAIN_DIGITS_MAX)] {
            assert_eq!(Id::from_json(id).unwrap().as_json(), id);
        }
        assert_eq!(Id::from_json("1e2"), Id::from_json("100"));
    }
}
