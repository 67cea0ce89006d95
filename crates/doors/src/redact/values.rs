//! Secrets of a request that an upstream repeats, found in one pass over the answer however much of it there is.

use crate::wire::form;
use crate::wire::members::quoted;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use semel_core::redact::{MayHoldSecret, REDACTED};
use std::borrow::Cow;

/// Shorter values would blank out half of an ordinary text.
pub const SECRET_BYTES_MIN: usize = 6;

/// A request has a handful of secrets, and an import of people perhaps hundreds.
const VALUES_MAX: usize = 1_000;

/// As much as all of them may have together: what looks for them takes thirty times that while it looks.
const BYTES_MAX: usize = 256 * 1024;

/// Up to here it is cheaper to look for each of them than to build what looks for all.
const FEW: usize = 8;

/// The secrets of one request, each in all the ways in which answers write it.
#[derive(Debug, Default)]
pub struct KnownSecrets {
    /// Sorted, and no two equal.
    spellings: Vec<String>,
    too_many: bool,
}

impl KnownSecrets {
    pub fn of(mut values: Vec<String>) -> KnownSecrets {
        values.retain(|value| value.len() >= SECRET_BYTES_MIN);
        values.sort_unstable();
        values.dedup();
        if values.len() > VALUES_MAX || values.iter().map(String::len).sum::<usize>() > BYTES_MAX {
            return KnownSecrets { spellings: Vec::new(), too_many: true };
        }
        let mut spellings: Vec<String> = values.iter().flat_map(|value| spelled(value)).collect();
        spellings.sort_unstable();
        spellings.dedup();
        KnownSecrets { spellings, too_many: false }
    }

    /// The text without them: of two that begin at one place the longer one, and no byte is looked at twice.
    pub fn out_of<'a>(&self, text: &'a [u8]) -> Result<Cow<'a, [u8]>, MayHoldSecret> {
        if self.too_many {
            return Err(MayHoldSecret);
        }
        // A value longer than the text cannot stand in it.
        let fitting: Vec<&str> =
            self.spellings.iter().map(String::as_str).filter(|known| known.len() <= text.len()).collect();
        if fitting.is_empty() || is_clean(&fitting, text) {
            return Ok(Cow::Borrowed(text));
        }
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&fitting);
        let finder = built.map_err(|_| MayHoldSecret)?;
        let mut kept = Vec::new();
        let mut from = 0;
        for found in finder.find_iter(text) {
            kept.extend_from_slice(&text[from..found.start()]);
            kept.extend_from_slice(REDACTED.as_bytes());
            from = found.end();
        }
        if from == 0 {
            return Ok(Cow::Borrowed(text));
        }
        kept.extend_from_slice(&text[from..]);
        Ok(Cow::Owned(kept))
    }
}

/// The usual case, a credential or two that nobody repeats.
fn is_clean(few: &[&str], text: &[u8]) -> bool {
    few.len() <= FEW
        && std::str::from_utf8(text).is_ok_and(|text| !few.iter().any(|known| text.contains(known)))
}

/// As it is, inside JSON (some write `/` as `\/` there), inside JSON that is a text of JSON, and inside a form.
fn spelled(value: &str) -> impl Iterator<Item = String> {
    let inside = |text: &str| {
        let quoted = quoted(text);
        quoted[1..quoted.len() - 1].to_owned()
    };
    let once = inside(value);
    [once.replace('/', "\\/"), inside(&once), once, form::encoded(value), value.to_owned()].into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out_of(values: &[&str], text: &str) -> Result<String, MayHoldSecret> {
        let known = KnownSecrets::of(values.iter().map(|value| (*value).to_owned()).collect());
        Ok(String::from_utf8(known.out_of(text.as_bytes())?.into_owned()).unwrap())
    }

    #[test]
    fn a_secret_is_known_in_whatever_form_it_comes_back() {
        let secret = "a/b+c \"d\"";
        let nested = r#"a/b+c \\\"d\\\""#;
        for written in ["a/b+c \"d\"", r#"a/b+c \"d\""#, r#"a\/b+c \"d\""#, "a%2Fb%2Bc%20%22d%22", nested] {
            assert_eq!(out_of(&[secret], &format!("<{written}>")).unwrap(), "<[redacted]>", "{written}");
        }
        assert_eq!(out_of(&["abcdef", "abcdefgh"], "abcdefgh abcdef").unwrap(), "[redacted] [redacted]");
        assert_eq!(out_of(&["short"], "short").unwrap(), "short");
    }

    #[test]
    fn as_many_as_are_looked_for_are_all_found() {
        let values: Vec<String> = (0..VALUES_MAX).map(|n| format!("secret-{n:06}")).collect();
        let known = KnownSecrets::of(values.clone());
        let text = values.join("\u{e4}\n");
        let kept = known.out_of(text.as_bytes()).unwrap().into_owned();
        let kept = String::from_utf8(kept).unwrap();
        assert_eq!(kept.matches(REDACTED).count(), VALUES_MAX);
        assert!(!kept.contains("secret"));
    }

    /// One by one, these would be looked for in half an hour.
    #[test]
    fn more_than_that_are_not_looked_for_and_nothing_is_called_clean() {
        let values: Vec<String> = (0..200_000).map(|n| format!("aaaaaaaaaaaaaaaaaaaa{n}")).collect();
        let text = "a".repeat(1 << 20);
        assert_eq!(KnownSecrets::of(values).out_of(text.as_bytes()), Err(MayHoldSecret));
        assert_eq!(KnownSecrets::of(vec!["x".repeat(BYTES_MAX + 1)]).out_of(b"abc"), Err(MayHoldSecret));
    }

    #[test]
    fn bytes_that_are_no_text_are_looked_at_too() {
        let known = KnownSecrets::of(vec!["hunter22".to_owned()]);
        let kept = known.out_of(b"\xff\xfehunter22\xff").unwrap().into_owned();
        assert_eq!(kept, b"\xff\xfe[redacted]\xff");
    }
}
