//! The key that a client gives its request.

use super::offer::Offer;
use http::{HeaderMap, HeaderName, HeaderValue};
use semel_core::ids::{BadName, IdempotencyKey};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("{0} came with two different values")]
    Two(String),
    #[error("{0}: {1}")]
    Malformed(String, BadName),
    #[error("{0} is no text")]
    NoText(String),
    #[error("{0} does not have the form that this API wants, {1}")]
    Form(String, String),
}

/// The key in the header that the upstream's settings name.
pub fn in_header(headers: &HeaderMap, offer: &Offer) -> Result<Option<IdempotencyKey>, BadKey> {
    of_header(headers, &offer.key_header)?.map(|key| checked(key, offer)).transpose()
}

/// A key must have the form that the upstream's settings ask for, wherever it stood.
pub fn checked(key: IdempotencyKey, offer: &Offer) -> Result<IdempotencyKey, BadKey> {
    match &offer.key_pattern {
        Some(pattern) if !pattern.is_match(key.as_str()) => {
            Err(BadKey::Form(offer.keys.header.clone(), offer.keys.pattern.clone().unwrap_or_default()))
        }
        _ => Ok(key),
    }
}

/// The one value of a header that names a request.
pub fn of_header(headers: &HeaderMap, name: &HeaderName) -> Result<Option<IdempotencyKey>, BadKey> {
    let mut key: Option<IdempotencyKey> = None;
    for value in headers.get_all(name) {
        let read = read(value, name)?;
        match &key {
            Some(known) if *known != read => return Err(BadKey::Two(name.to_string())),
            _ => key = Some(read),
        }
    }
    Ok(key)
}

/// Puts a key into the header that the upstream's settings name.
pub fn insert(headers: &mut HeaderMap, offer: &Offer, key: &str) {
    if let Ok(value) = HeaderValue::from_str(key) {
        headers.insert(offer.key_header.clone(), value);
    }
}

/// Puts another key where the client's own is, written as that was.
pub fn replace(headers: &mut HeaderMap, offer: &Offer, key: &str) {
    let Some(given) = headers.get(&offer.key_header) else { return };
    let is_string = given.as_bytes().starts_with(b"\"");
    let text = if is_string { format!("\"{key}\"") } else { key.to_owned() };
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(offer.key_header.clone(), value);
    }
}

fn read(value: &HeaderValue, name: &HeaderName) -> Result<IdempotencyKey, BadKey> {
    let text = value.to_str().map_err(|_| BadKey::NoText(name.to_string()))?;
    let text = text.trim_matches([' ', '\t']);
    let key = match quoted(text) {
        Some(quoted) => IdempotencyKey::parse(&quoted),
        None => IdempotencyKey::parse(text),
    };
    key.map_err(|bad| BadKey::Malformed(name.to_string(), bad))
}

/// The inside of a structured field's string (RFC 9651). Most clients send the bare text instead, and a text that only
/// begins like a string is one of those.
fn quoted(text: &str) -> Option<String> {
    let mut characters = text.strip_prefix('"')?.chars();
    let mut read = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        match character {
            '\\' => read.push(characters.next().filter(|escaped| matches!(escaped, '"' | '\\'))?),
            '"' => {
                // Parameters may follow, and mean nothing here.
                let rest = characters.as_str().trim_start();
                return (rest.is_empty() || rest.starts_with(';')).then_some(read);
            }
            _ => read.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: HeaderName = HeaderName::from_static("idempotency-key");

    fn of(values: &[&str]) -> Result<Option<String>, BadKey> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(NAME, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        Ok(of_header(&headers, &NAME)?.map(|key| key.as_str().to_owned()))
    }

    #[test]
    fn a_key_is_a_structured_string_or_the_bare_text() {
        for (written, key) in [
            (r#""8e03978e-40d5""#, "8e03978e-40d5"),
            ("8e03978e-40d5", "8e03978e-40d5"),
            (r#""a \"b\" \\""#, r#"a "b" \"#),
            (r#""unfinished"#, r#""unfinished"#),
            (r#""a"b""#, r#""a"b""#),
            (r#""k";a=1"#, "k"),
            (r#""k" ; a"#, "k"),
            ("  padded\t", "padded"),
            ("a b", "a b"),
        ] {
            assert_eq!(of(&[written]), Ok(Some(key.to_owned())), "{written}");
        }
        assert_eq!(of(&[]), Ok(None));
    }

    #[test]
    fn one_request_has_one_key() {
        assert_eq!(of(&["k", "\"k\""]), Ok(Some("k".to_owned())));
        assert!(matches!(of(&["k", "l"]), Err(BadKey::Two(_))));
        assert!(matches!(of(&["", "k"]), Err(BadKey::Malformed(..))));
        assert!(matches!(of(&[&"k".repeat(256)]), Err(BadKey::Malformed(..))));
        assert!(matches!(of(&["\"\""]), Err(BadKey::Malformed(..))));
        assert!(matches!(of(&["k\u{e9}"]), Err(BadKey::NoText(_))));
        assert!(of(&[&"k".repeat(255)]).is_ok());
    }
}
