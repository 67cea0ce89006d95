//! Parts of an answer that a rule calls secret: `reply.card.number` is never written.

use crate::echoes::TooMany;
use semel_core::identity::REDACTED;
use semel_core::json::{self, Json, Path, Step};
use semel_core::policy::Rule;

/// Their paths, without the leading `reply`.
#[derive(Debug, Default)]
pub struct SecretParts(Vec<Path>);

impl SecretParts {
    pub fn of(rule: &Rule) -> SecretParts {
        SecretParts(rule.sorting.secret.iter().filter_map(within_reply).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes them out. `false`: it has none.
    pub fn out_of(&self, reply: &mut Json) -> bool {
        let mut found = false;
        for path in &self.0 {
            path.change_in(reply, &mut |value| {
                *value = Json::str(REDACTED);
                found = true;
            });
        }
        found
    }

    /// A text without them. `None`: it stays as it is. What claims to be JSON and cannot be read as that may hold one
    /// that nobody sees, while other programs read it well: half a character, a member twice, a number too long.
    pub fn out_of_text(&self, text: &[u8], said_json: bool) -> Result<Option<String>, TooMany> {
        if self.is_empty() {
            return Ok(None);
        }
        match json::parse_bytes(text) {
            Ok(mut reply) => Ok(self.out_of(&mut reply).then(|| reply.canonical())),
            Err(_) if begins_like_json(text) || said_json && !text.trim_ascii().is_empty() => Err(TooMany),
            Err(_) => Ok(None),
        }
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

fn within_reply(path: &Path) -> Option<Path> {
    match path.steps().first() {
        Some(Step::Member(root)) if root == "reply" => {
            let text = path.to_string();
            let rest = text.strip_prefix("reply")?;
            Path::parse(rest.strip_prefix('.').unwrap_or(rest)).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &[u8], said_json: bool) -> Result<Option<String>, TooMany> {
        SecretParts(vec![Path::parse("pin").unwrap()]).out_of_text(text, said_json)
    }

    #[test]
    fn of_what_claims_to_be_json_and_cannot_be_read_nothing_is_kept() {
        let deep = format!("{}{}", "[".repeat(150), "]".repeat(150));
        for beside in [r#""\ud83d""#, r#"{"a":1,"a":2}"#, &deep, "1e99999999", "NaN", "1}{"] {
            let text = format!(r#"{{"pin":"4711","beside":{beside}}}"#);
            assert_eq!(kept(text.as_bytes(), false), Err(TooMany), "{text}");
            assert_eq!(kept(format!("\u{feff} [{text}]").as_bytes(), false), Err(TooMany), "{text}");
            assert_eq!(SecretParts::default().out_of_text(text.as_bytes(), true), Ok(None), "no rule asks");
        }
        let wide: Vec<u8> = r#"{"pin":"4711"}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(kept(&wide, false), Err(TooMany));
        assert_eq!(kept(br#")]}' {"pin":"4711"}"#, true), Err(TooMany));
    }

    #[test]
    fn what_is_no_json_stays() {
        for text in ["", "  ", "done", "[OK] the order is made", "<pin>4711</pin>", r#"{"other":1}"#] {
            assert_eq!(kept(text.as_bytes(), false), Ok(None), "{text}");
        }
        assert_eq!(kept(b" ", true), Ok(None));
        assert_eq!(kept(br#"{"pin":"4711"}"#, false), Ok(Some(r#"{"pin":"[redacted]"}"#.into())));
    }
}
