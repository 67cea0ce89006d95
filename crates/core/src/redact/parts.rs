//! Parts of an answer that a rule calls secret: `reply.card.number` is never written. Whatever is written of an answer,
//! be it its reply or a line about it, is made of what this leaves.

use super::REDACTED;
use crate::json::{self, Json, Path, PathStep};
use crate::policy::Rule;
use std::borrow::Cow;

const REPLY: &str = "reply";

/// There are more secrets than are looked for, or more ways to read a text than one, so nobody can say that it holds none of
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MayHoldSecret;

/// Their paths. The first step of each is `reply`.
#[derive(Debug, Default)]
pub struct SecretParts(Vec<Path>);

impl SecretParts {
    pub fn of(rule: &Rule) -> SecretParts {
        let of_reply =
            |path: &&Path| matches!(path.steps().first(), Some(PathStep::Member(root)) if root == REPLY);
        SecretParts(rule.sorting.secret.iter().filter(of_reply).cloned().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes them out of a reply that was read. `Ok(false)`: it has none.
    pub fn out_of(&self, reply: &mut Json) -> Result<bool, MayHoldSecret> {
        if self.named_in(reply) {
            return Ok(true);
        }
        let Json::String(text) = reply else { return Ok(false) };
        let kept = self.out_of_text(text.as_bytes())?;
        Ok(kept.map(|kept| *text = kept).is_some())
    }

    /// The same where something must stand: a reply that nobody can look through is hidden whole.
    pub fn hide_in(&self, reply: &mut Json) {
        if self.out_of(reply).is_err() {
            *reply = Json::str(REDACTED);
        }
    }

    /// A text without them. `None`: it stays as it is. `Err`: it may hold one that nobody can find, while other
    /// programs read it well (half a character, a member twice, a number too long, JSON within a log).
    pub fn out_of_text(&self, text: &[u8]) -> Result<Option<String>, MayHoldSecret> {
        let text = text.trim_ascii();
        if self.is_empty() || text.is_empty() {
            return Ok(None);
        }
        if let Ok(mut reply) = json::parse_bytes(text) {
            return Ok(self.out_of(&mut reply)?.then(|| reply.canonical()));
        }
        // Text that is no JSON is `reply.text` for rules.
        let mut reply = Json::object([("text", Json::str(&String::from_utf8_lossy(text)))]);
        if self.named_in(&mut reply) {
            let kept = reply.get("text").unwrap_or(&reply).as_str().unwrap_or(REDACTED);
            return Ok(Some(kept.to_owned()));
        }
        if begins_like_json(text) || spells_letters(text) || self.may_be_in(text) {
            return Err(MayHoldSecret);
        }
        Ok(None)
    }

    /// For text beside a reply that need not be there: one that nobody can look through is hidden by itself.
    pub fn out_of_beside<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match self.out_of_text(text) {
            Ok(None) => Cow::Borrowed(text),
            Ok(Some(kept)) => Cow::Owned(kept.into_bytes()),
            Err(MayHoldSecret) => Cow::Borrowed(REDACTED.as_bytes()),
        }
    }

    fn named_in(&self, reply: &mut Json) -> bool {
        let mut found = false;
        let mut rooted = Json::object([(REPLY, std::mem::replace(reply, Json::Null))]);
        for path in &self.0 {
            path.change_in(&mut rooted, &mut |value| {
                *value = Json::str(REDACTED);
                found = true;
            });
        }
        if let Json::Object(mut root) = rooted {
            *reply = root.remove(REPLY).unwrap_or(Json::Null);
        }
        found
    }

    /// Whether a text that is no JSON has a name of theirs: where its value begins and ends, nobody can say.
    fn may_be_in(&self, text: &[u8]) -> bool {
        // Of two bytes for a character one is mostly empty.
        let letters: Vec<u8> = text.iter().filter(|byte| **byte != 0).map(u8::to_ascii_lowercase).collect();
        let text = String::from_utf8_lossy(&letters);
        self.0.iter().any(|path| {
            let mut names = path.steps()[1..].iter().filter_map(|step| match step {
                PathStep::Member(name) => Some(name),
                PathStep::AnyMember | PathStep::Element(_) | PathStep::AnyElement => None,
            });
            let mut named = names.clone().peekable();
            // Other letters may be written in any alphabet.
            named.peek().is_none()
                || names.any(|name| !name.is_ascii() || text.contains(&name.to_ascii_lowercase()))
        })
    }
}

/// Whether it is meant as an object or a list, in whatever alphabet.
fn begins_like_json(text: &[u8]) -> bool {
    let before = |byte: &u8| byte.is_ascii_whitespace() || b"\xef\xbb\xbf\xfe\xff\0".contains(byte);
    let start = text.iter().position(|byte| !before(byte)).unwrap_or(text.len());
    match &text[start..] {
        [b'{', ..] => true,
        [b'[', rest @ ..] => !is_label(rest),
        _ => false,
    }
}

/// `OK] the order is made`: a word in brackets before a sentence.
fn is_label(rest: &[u8]) -> bool {
    let Some(end) = rest.iter().position(|byte| b"]{[\"".contains(byte)) else { return false };
    rest[end] == b']' && !rest[end + 1..].trim_ascii().is_empty()
}

/// Whether it writes letters by their numbers, as JSON, forms and XML can: a name would not be seen in it.
fn spells_letters(text: &[u8]) -> bool {
    text.windows(3).any(|part| match part {
        [b'\\', b'u' | b'U' | b'x' | b'0'..=b'9', _] | [b'&', b'#', _] => true,
        [b'%', high, low] => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(paths: &[&str]) -> SecretParts {
        SecretParts(paths.iter().map(|path| Path::parse(path).unwrap()).collect())
    }

    fn kept(text: &[u8]) -> Result<Option<String>, MayHoldSecret> {
        parts(&["reply.card.pin"]).out_of_text(text)
    }

    #[test]
    fn of_what_cannot_be_read_as_the_json_that_it_is_nothing_is_kept() {
        let deep = format!("{}{}", "[".repeat(150), "]".repeat(150));
        for beside in [r#""\ud83d""#, r#"{"a":1,"a":2}"#, &deep, "1e99999999", "NaN", "1}{"] {
            let text = format!(r#"{{"pin":"4711","beside":{beside}}}"#);
            assert_eq!(kept(text.as_bytes()), Err(MayHoldSecret), "{text}");
            assert_eq!(kept(format!("\u{feff} [{text}]").as_bytes()), Err(MayHoldSecret), "{text}");
            assert_eq!(SecretParts::default().out_of_text(text.as_bytes()), Ok(None), "no rule asks");
        }
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        assert_eq!(kept(&wide(r#"{"pin":"4711"}"#)), Err(MayHoldSecret));
        assert_eq!(kept(&wide("the pin: 4711")), Err(MayHoldSecret));
    }

    #[test]
    fn nor_of_a_text_that_has_one_of_their_names_or_could_have() {
        for text in [
            r#")]}' {"pin":"4711"}"#,
            "{\"pin\":\"4711\"}\n{\"pin\":\"4712\"}",
            "starting\n{\"pin\":\"4711\"}",
            "<PIN>4711</PIN>",
            "card=4711",
            r#"Error: {"p\u0069n":"4711"}"#,
            "p%69n=4711",
            "x &#112;",
            r#""see {\"pin\":\"4711\",}""#,
        ] {
            assert_eq!(kept(text.as_bytes()), Err(MayHoldSecret), "{text}");
        }
        for path in ["reply[0]", "reply.größe"] {
            assert_eq!(parts(&[path]).out_of_text(b"no 4711"), Err(MayHoldSecret), "{path}");
        }
    }

    #[test]
    fn what_can_hold_none_of_them_stays() {
        for text in ["", "  ", "done, 100% of it", "[OK] the order is made", r#"{"other":1}"#, r#""done""#] {
            assert_eq!(kept(text.as_bytes()), Ok(None), "{text}");
        }
    }

    #[test]
    fn they_are_taken_out_of_what_can_be_read() {
        let masked = r#"{"card":{"pin":"[redacted]"}}"#;
        assert_eq!(kept(br#" {"card":{"pin":"4711"}} "#), Ok(Some(masked.into())));
        assert_eq!(kept(br#""{\"card\":{\"pin\":4711}}""#), Ok(Some(Json::str(masked).canonical())));
        for (path, text, left) in [
            ("reply", r#"{"a":4711}"#, r#""[redacted]""#),
            ("reply", "4711", r#""[redacted]""#),
            ("reply", "no 4711", "[redacted]"),
            ("reply.text", "no 4711", "[redacted]"),
            ("reply.*", "no 4711", "[redacted]"),
            ("reply[*].a", r#"[{"a":4711}]"#, r#"[{"a":"[redacted]"}]"#),
        ] {
            assert_eq!(
                parts(&[path]).out_of_text(text.as_bytes()),
                Ok(Some(left.into())),
                "{path} of {text}"
            );
        }
    }
}
