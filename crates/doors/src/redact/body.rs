//! An HTTP body and its headers, without their secrets. Everything else stays byte for byte: a replay is read by the same
//! program that read the answer.

use super::names::without_named;
use super::{KnownSecrets, MayHoldSecret, SecretParts, Secrets};
use crate::http::server::is_no_credential;
use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};
use semel_core::json::Json;
use semel_core::policy::Rule;
use semel_core::policy::upstreams::CREDENTIALS;
use semel_core::redact::{REDACTED, is_secret_name, secret_values};
use std::borrow::Cow;

/// The value of a cookie that is shorter is a setting, which an answer may speak of.
const COOKIE_BYTES_MIN: usize = 16;

impl Secrets {
    /// Those of an HTTP request; `headers` are those that went to the upstream.
    pub fn of_request(arguments: &Json, rule: &Rule, headers: &HeaderMap) -> Secrets {
        let mut values = secret_values(arguments, &rule.sorting.secret);
        for (name, value) in headers.iter().filter(|(name, value)| is_secret(name, value)) {
            if let Ok(value) = value.to_str() {
                values.extend(within_header(name, value).map(str::to_owned));
            }
        }
        Secrets { values: KnownSecrets::of(values), parts: SecretParts::of(rule) }
    }

    /// A body as it may be kept. If nobody can say that it holds no secret, nothing of it is: that there was an answer
    /// is a fact, and what it said is known to whoever got it.
    pub fn out_of_body(&self, body: &Bytes) -> Result<Bytes, MayHoldSecret> {
        let without_parts = self.parts.out_of_text(body)?;
        let mut kept = match (without_parts, std::str::from_utf8(body)) {
            (Some(without), _) => Cow::Owned(without),
            (None, Ok(text)) => Cow::Borrowed(text),
            (None, Err(_)) => return self.out_of_bytes(body),
        };
        if let Some(without) = without_named(&kept) {
            kept = Cow::Owned(without);
        }
        let clean = match self.values.out_of(kept.as_bytes())? {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        };
        Ok(match (clean, kept) {
            (Some(clean), _) => Bytes::from(clean),
            (None, Cow::Owned(kept)) => Bytes::from(kept),
            (None, Cow::Borrowed(_)) => body.clone(),
        })
    }

    /// Text of another alphabet, an image, anything. One byte for one character loses nothing, and names are plain.
    fn out_of_bytes(&self, body: &Bytes) -> Result<Bytes, MayHoldSecret> {
        let text: String = body.iter().map(|byte| char::from(*byte)).collect();
        // Of two bytes for a character one is mostly empty; what would have to be taken out there is not looked for.
        if text.contains('\0') && without_named(&text.replace('\0', "")).is_some() {
            return Err(MayHoldSecret);
        }
        let named = without_named(&text).map(|kept| kept.chars().map(|c| c as u8).collect::<Vec<u8>>());
        let kept = named.map_or_else(|| body.clone(), Bytes::from);
        Ok(match self.values.out_of(&kept)? {
            Cow::Borrowed(_) => kept,
            Cow::Owned(clean) => Bytes::from(clean),
        })
    }

    /// A header's value as it may be kept. Numbers stay, whatever they look like: programs go by them.
    pub fn out_of_header<'a>(&self, value: &'a str) -> Cow<'a, str> {
        let value = without_named(value).map_or(Cow::Borrowed(value), Cow::Owned);
        match self.values.out_of(value.as_bytes()) {
            Ok(Cow::Borrowed(_)) => value,
            Ok(Cow::Owned(clean)) => Cow::Owned(String::from_utf8_lossy(&clean).into_owned()),
            Err(MayHoldSecret) => Cow::Borrowed(REDACTED),
        }
    }
}

/// Whether a header of a request says who asks, by its name or because the operator put it there.
fn is_secret(name: &HeaderName, value: &HeaderValue) -> bool {
    let named = || is_secret_name(name.as_str()) && !is_no_credential(name);
    is_credential(name.as_str()) || value.is_sensitive() || named()
}

/// The secret parts of a header's value: of `Bearer x` and `Basic x` not the scheme, of cookies each by itself.
fn within_header<'a>(name: &HeaderName, value: &'a str) -> impl Iterator<Item = &'a str> {
    let is_cookie = name == COOKIE;
    let pieces = value.split([' ', ';', ',']).filter(|piece| !piece.is_empty());
    let scheme = !is_cookie && pieces.clone().count() > 1;
    pieces.skip(usize::from(scheme)).flat_map(move |piece| {
        let inner = piece.split_once('=').map(|(_, value)| value.trim_matches('"'));
        [Some(piece), inner.filter(|value| value.len() >= COOKIE_BYTES_MIN)].into_iter().flatten()
    })
}

/// Whether a header's value must never be looked at by anybody.
pub fn is_credential(name: &str) -> bool {
    CREDENTIALS.contains(&name) || name == AUTHORIZATION.as_str() || name == COOKIE.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::json;
    use semel_core::policy::{ActionFacts, Policy};
    use std::sync::Arc;

    fn kept(secret_paths: &[&str], arguments: &str, authorization: &str, body: &str) -> String {
        let mut rule = Policy::default().rule_for(&ActionFacts::new("http:POST a/b", &Json::Null));
        Arc::make_mut(&mut rule).sorting.secret =
            secret_paths.iter().map(|path| json::Path::parse(path).unwrap()).collect();
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, authorization.parse().unwrap());
        let secrets = Secrets::of_request(&json::parse(arguments).unwrap(), &rule, &headers);
        String::from_utf8(secrets.out_of_body(&Bytes::from(body.to_owned())).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn an_answer_without_secrets_stays_byte_for_byte() {
        let body = "{ \"id\" : 1.0,\n\"network_token\":{\"used\":false}, \"token\": \"\", \"tokens\":\"x\"}";
        assert_eq!(kept(&[], "{}", "Bearer abcdef", body), body);
        assert_eq!(kept(&[], "{}", "Bearer abcdef", "<a token=\"1\">"), "<a token=\"1\">");
    }

    #[test]
    fn what_is_under_a_secret_name_is_not_kept_whatever_the_body_is() {
        assert_eq!(kept(&[], "{}", "x", r#"{"access_token": "a"}"#), r#"{"access_token": "[redacted]"}"#);
        assert_eq!(kept(&[], "{}", "x", "access_token=a&b=1"), "access_token=[redacted]&b=1");
    }

    #[test]
    fn an_echo_of_any_header_that_names_a_secret_is_not_kept() {
        let rule = Policy::default().rule_for(&ActionFacts::new("http:POST a/b", &Json::Null));
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-auth-token", "tok-alice-1"),
            ("private-token", "glpat-abcdef"),
            ("cookie", "sid=0123456789abcdef; theme=darkmode"),
            ("x-csrf-token", "made-anew"),
            ("idempotency-key", "order-1001"),
            ("x-trace", "trace-1"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let secrets = Secrets::of_request(&Json::Null, &rule, &headers);
        let body = r#"["tok-alice-1","glpat-abcdef","0123456789abcdef","darkmode","made-anew","order-1001","trace-1"]"#;
        let kept = secrets.out_of_body(&Bytes::from_static(body.as_bytes())).unwrap();
        let redacted = r#""[redacted]","[redacted]","[redacted]""#;
        let expected = format!(r#"[{redacted},"darkmode","made-anew","order-1001","trace-1"]"#);
        assert_eq!(kept, expected.as_bytes());
    }

    #[test]
    fn of_an_answer_to_more_secrets_than_can_be_looked_for_nothing_is_kept() {
        let fields: Vec<String> = (0..20_000).map(|n| format!(r#"{{"password":"secret-{n}"}}"#)).collect();
        let arguments = format!("[{}]", fields.join(","));
        let rule = Policy::default().rule_for(&ActionFacts::new("http:POST a/b", &Json::Null));
        let secrets = Secrets::of_request(&json::parse(&arguments).unwrap(), &rule, &HeaderMap::new());
        assert_eq!(
            secrets.out_of_body(&Bytes::from_static(br#"{"echo":"secret-19999"}"#)),
            Err(MayHoldSecret)
        );
    }

    #[test]
    fn other_alphabets_hide_nothing_and_lose_nothing() {
        let rule = Policy::default().rule_for(&ActionFacts::new("http:POST a/b", &Json::Null));
        let secrets = Secrets::of_request(&Json::Null, &rule, &HeaderMap::new());
        let kept = |body: &[u8]| secrets.out_of_body(&Bytes::copy_from_slice(body));
        let latin = kept(b"<name>Ren\xe9</name><password>S3cret</password>").unwrap();
        assert_eq!(latin, &b"<name>Ren\xe9</name><password>[redacted]</password>"[..]);
        let plain = &b"Ren\xe9 \xff\x00\x01"[..];
        assert_eq!(kept(plain).unwrap(), plain);
        let wide: Vec<u8> =
            "\u{feff}{\"access_token\":\"S\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(kept(&wide), Err(MayHoldSecret));
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
