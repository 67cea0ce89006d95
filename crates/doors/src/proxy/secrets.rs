//! What an upstream says that must not be written down, taken out of what is kept. Everything else stays byte for byte:
//! a replay is read by the same program that read the answer.

use crate::command::render::secret_values;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE};
use semel_core::effect::NotAppliedWhy;
use semel_core::identity::{REDACTED, is_secret_name, may_name_a_secret, redact};
use semel_core::json::{self, Json, Path, Step};
use semel_core::outcome::Outcome;
use semel_core::policy::Rule;
use semel_core::policy::upstreams::CREDENTIALS;
use std::borrow::Cow;

/// Shorter values would blank out half of an ordinary text.
const SECRET_BYTES_MIN: usize = 6;

#[derive(Debug)]
pub struct Secrets {
    /// What the request itself held: upstreams like to repeat it.
    values: Vec<String>,
    /// Where the rule says that an answer holds one, without the leading `reply`.
    of_reply: Vec<Path>,
}

impl Secrets {
    /// `headers` are those that went to the upstream.
    pub fn of(arguments: &Json, rule: &Rule, headers: &HeaderMap) -> Secrets {
        let mut values = secret_values(arguments, &rule.sorting.secret);
        let names = CREDENTIALS.iter().copied().chain([COOKIE.as_str()]);
        let shown = names.flat_map(|name| headers.get_all(name));
        // Those that the operator injects are marked, whatever they are called.
        let injected = headers.values().filter(|value| value.is_sensitive());
        for value in shown.chain(injected).filter_map(|value| value.to_str().ok()) {
            // `Bearer x` and `Basic x`: the scheme is no secret.
            let secret = value.rsplit(' ').next().unwrap_or(value);
            if secret.len() >= SECRET_BYTES_MIN && !values.iter().any(|known| known == secret) {
                values.push(secret.to_owned());
            }
        }
        let of_reply = rule.sorting.secret.iter().filter_map(within_reply).collect();
        Secrets { values, of_reply }
    }

    /// A body as it may be kept.
    pub fn out_of_body(&self, body: &Bytes) -> Bytes {
        let Ok(text) = std::str::from_utf8(body) else {
            return self.values.iter().fold(body.clone(), |body, secret| without(&body, secret));
        };
        let mut kept = Cow::Borrowed(text);
        if !self.of_reply.is_empty()
            && let Ok(value) = json::parse(text)
            && self.of_reply.iter().any(|path| !path.find(&value).is_empty())
        {
            let mut shown = value;
            for path in &self.of_reply {
                path.change_in(&mut shown, &mut |value| *value = Json::str(REDACTED));
            }
            kept = Cow::Owned(shown.canonical());
        }
        if let Some(without) = without_named(&kept) {
            kept = Cow::Owned(without);
        }
        for secret in &self.values {
            for written in [Cow::Borrowed(secret.as_str()), inside_json(secret)] {
                if kept.contains(written.as_ref()) {
                    kept = Cow::Owned(kept.replace(written.as_ref(), REDACTED));
                }
            }
        }
        match kept {
            Cow::Borrowed(_) => body.clone(),
            Cow::Owned(kept) => Bytes::from(kept),
        }
    }

    /// A line, or a header's value, as it may be kept.
    pub fn out_of_line<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let shown = redact(&Json::str(line), &[]);
        let shown = shown.as_str().filter(|shown| *shown != line).map(str::to_owned);
        let line = shown.map_or(Cow::Borrowed(line), Cow::Owned);
        self.values.iter().fold(line, |line, secret| match line.contains(secret.as_str()) {
            true => Cow::Owned(line.replace(secret.as_str(), REDACTED)),
            false => line,
        })
    }

    pub fn out_of_outcome(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::NotApplied { why: NotAppliedWhy::Refused(why), reply } => Outcome::NotApplied {
                why: NotAppliedWhy::Refused(self.out_of_line(&why).into_owned()),
                reply,
            },
            Outcome::InDoubt { why, sender_gone } => {
                Outcome::InDoubt { why: self.out_of_line(&why).into_owned(), sender_gone }
            }
            Outcome::Applied { .. } | Outcome::NotApplied { .. } => outcome,
        }
    }
}

/// `reply.card.number` is `card.number` of an answer.
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

/// A text as it stands between the quotes of JSON.
fn inside_json(text: &str) -> Cow<'_, str> {
    let quoted = serde_json::Value::from(text).to_string();
    Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
}

fn without(body: &Bytes, secret: &str) -> Bytes {
    let secret = secret.as_bytes();
    let mut kept = Vec::with_capacity(body.len());
    let mut at = 0;
    while at < body.len() {
        if body[at..].starts_with(secret) {
            kept.extend_from_slice(REDACTED.as_bytes());
            at += secret.len();
        } else {
            kept.push(body[at]);
            at += 1;
        }
    }
    if kept.len() == body.len() { body.clone() } else { Bytes::from(kept) }
}

/// JSON without the texts under names that say that they are secret. `None`: there are none, as in most answers.
///
/// Numbers, objects and nulls under such a name stay: `"network_token": {"used": false}` is no secret, and a program
/// that reads a replay may rely on its type.
fn without_named(text: &str) -> Option<String> {
    if !text.trim_start().starts_with(['{', '[']) || !may_name_a_secret(text) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut kept = String::new();
    let (mut from, mut at) = (0, 0);
    while let Some(open) = bytes[at..].iter().position(|byte| *byte == b'"').map(|open| at + open) {
        let Some(close) = end_of_text(bytes, open) else { break };
        at = close;
        // A text before a colon is a name.
        let Some(value) = after(bytes, close, b':').map(|colon| past_space(bytes, colon)) else { continue };
        at = value;
        if bytes.get(value) == Some(&b'"')
            && value + 1 < bytes.len()
            && bytes[value + 1] != b'"'
            && is_named_secret(&text[open..close])
            && let Some(end) = end_of_text(bytes, value)
        {
            kept.push_str(&text[from..value]);
            kept.push('"');
            kept.push_str(REDACTED);
            kept.push('"');
            (from, at) = (end, end);
        }
    }
    (from > 0).then(|| kept + &text[from..])
}

fn is_named_secret(quoted: &str) -> bool {
    match quoted.contains('\\') {
        true => serde_json::from_str::<String>(quoted).is_ok_and(|name| is_secret_name(&name)),
        false => is_secret_name(&quoted[1..quoted.len() - 1]),
    }
}

/// Where the text that opens here has ended.
fn end_of_text(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn past_space(bytes: &[u8], from: usize) -> usize {
    let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    bytes[from..].iter().position(|byte| !space(byte)).map_or(bytes.len(), |space| from + space)
}

fn after(bytes: &[u8], from: usize, mark: u8) -> Option<usize> {
    let at = past_space(bytes, from);
    (bytes.get(at) == Some(&mark)).then_some(at + 1)
}

/// Whether a header's value must never be looked at by anybody.
pub fn is_credential(name: &str) -> bool {
    CREDENTIALS.contains(&name) || name == AUTHORIZATION.as_str() || name == COOKIE.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::policy::{ActionFacts, Policy};

    fn kept(secret_paths: &[&str], arguments: &str, authorization: &str, body: &str) -> String {
        let mut rule = Policy::default().rule_for(&ActionFacts::new("http:POST a/b", &Json::Null));
        rule.sorting.secret = secret_paths.iter().map(|path| Path::parse(path).unwrap()).collect();
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, authorization.parse().unwrap());
        let secrets = Secrets::of(&json::parse(arguments).unwrap(), &rule, &headers);
        String::from_utf8(secrets.out_of_body(&Bytes::from(body.to_owned())).to_vec()).unwrap()
    }

    #[test]
    fn an_answer_without_secrets_stays_byte_for_byte() {
        let body = "{ \"id\" : 1.0,\n\"network_token\":{\"used\":false}, \"token\": \"\", \"tokens\":\"x\"}";
        assert_eq!(kept(&[], "{}", "Bearer abcdef", body), body);
        assert_eq!(kept(&[], "{}", "Bearer abcdef", "<a token=\"1\">"), "<a token=\"1\">");
    }

    #[test]
    fn a_text_under_a_secret_name_is_not_kept_and_its_surroundings_are() {
        assert_eq!(
            kept(&[], "{}", "x", r#"{ "a" :1.0, "access_token" : "s\"ecret","b":[{"clientSecret":"y"}]}"#),
            r#"{ "a" :1.0, "access_token" : "[redacted]","b":[{"clientSecret":"[redacted]"}]}"#
        );
        assert_eq!(
            kept(&[], "{}", "x", r#"{"a":"\"token\":\"x\"","pass\u0077ord":"p"}"#),
            r#"{"a":"\"token\":\"x\"","pass\u0077ord":"[redacted]"}"#
        );
    }

    #[test]
    fn what_the_request_held_is_not_kept_where_it_comes_back() {
        assert_eq!(kept(&[], "{}", "Bearer sk_live_1", "you sent sk_live_1"), "you sent [redacted]");
        let echoed = kept(&["body.pin"], r#"{"body":{"pin":"12\"3456"}}"#, "x", r#"{"echo":"12\"3456"}"#);
        assert_eq!(echoed, r#"{"echo":"[redacted]"}"#);
    }

    #[test]
    fn a_rule_marks_what_no_name_gives_away() {
        assert_eq!(
            kept(&["reply.card.number"], "{}", "x", r#"{"card": {"number": 4242}, "id": 1}"#),
            r#"{"card":{"number":"[redacted]"},"id":1}"#
        );
    }
}
