//! The meaning of a `Content-Type`, where all readers of it understand the same.

use super::broken_multipart::BrokenMultipart;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// The type that a message says its body has; empty if it does not say.
pub fn of(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default()
}

/// A type without its parameters.
pub fn essence(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    Utf8,
    /// In an encoding that agrees with UTF-8 on ASCII, and on nothing else. Some clients name one for every text.
    Ascii,
}

impl Charset {
    /// Whether these bytes are the same text in UTF-8.
    pub fn agrees_on(self, bytes: &[u8]) -> bool {
        self == Charset::Utf8 || bytes.is_ascii()
    }
}

/// It names an encoding in which even ASCII may be another text, or none that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherCharset;

pub fn charset(kind: &str) -> Result<Charset, OtherCharset> {
    let mut charset = Charset::Utf8;
    for (name, value) in parameters(kind).filter(|(name, _)| begins_with(name, "charset")) {
        let value = unquoted(value.trim()).unwrap_or(value.trim()).to_ascii_lowercase();
        match (name.trim().len() == "charset".len(), value.as_str()) {
            (true, "utf-8" | "utf8") => {}
            (true, "us-ascii" | "ascii" | "iso-8859-1" | "latin1" | "iso-8859-15" | "windows-1252") => {
                charset = Charset::Ascii;
            }
            // Also `charset*`, which not all readers know.
            _ => return Err(OtherCharset),
        }
    }
    Ok(charset)
}

/// The text that divides the parts of a form.
pub fn boundary(kind: &str) -> Result<&str, BrokenMultipart> {
    let mut found = None;
    for (name, value) in parameters(kind) {
        if name.eq_ignore_ascii_case("boundary") && found.is_none() {
            found = Some(value);
            continue;
        }
        // Some readers take the first one, some the last, and some whatever stands behind the word.
        if [name, value].iter().any(|text| text.to_ascii_lowercase().contains("boundary")) {
            return Err(BrokenMultipart::Boundary);
        }
    }
    let value = found.filter(|value| !value.is_empty()).ok_or(BrokenMultipart::NoBoundary)?;
    let (boundary, is_plain) = match unquoted(value) {
        Some(quoted) => (quoted, quoted.trim() == quoted && quoted.bytes().all(may_be_quoted)),
        None => (value, is_token(value)),
    };
    match (1..=70).contains(&boundary.len()) && is_plain {
        true => Ok(boundary),
        false => Err(BrokenMultipart::Boundary),
    }
}

/// A word that needs no quotes.
pub fn is_token(text: &str) -> bool {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(belongs)
}

/// Bytes that the standard lets a boundary have.
fn may_be_quoted(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte)
}

/// `; name=value`. Quotes do not keep a semicolon together: to some readers they do, to others not, and the halves are
/// nothing that is understood here.
fn parameters(kind: &str) -> impl Iterator<Item = (&str, &str)> {
    let parameters = kind.split(';').skip(1).map(str::trim);
    parameters.map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
}

fn unquoted(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"')
}

fn begins_with(text: &str, beginning: &str) -> bool {
    text.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_one_spelling() {
        for kind in
            ["application/json", "Application/JSON", " application/json ;charset=utf-8", "application/json;"]
        {
            assert_eq!(essence(kind), "application/json", "{kind}");
        }
    }

    #[test]
    fn a_boundary_is_named_once_and_plainly() {
        for (kind, expected) in [
            ("boundary=B", Ok("B")),
            ("charset=UTF-8; Boundary=\"----=_Part_1 (2)\";", Ok("----=_Part_1 (2)")),
            ("boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW", Ok("----WebKitFormBoundary7MA4YWxkTrZu0gW")),
            ("boundary=Boundary+0xAbCd", Ok("Boundary+0xAbCd")),
            ("charset=utf-8", Err(BrokenMultipart::NoBoundary)),
            ("boundary=", Err(BrokenMultipart::NoBoundary)),
            ("boundary=\"\"", Err(BrokenMultipart::Boundary)),
            ("boundary=A; boundary=B", Err(BrokenMultipart::Boundary)),
            ("boundary=A; boundary=A", Err(BrokenMultipart::Boundary)),
            ("boundary=A; BOUNDARY*=utf-8''B", Err(BrokenMultipart::Boundary)),
            ("xboundary=A; boundary=B", Err(BrokenMultipart::Boundary)),
            ("x=\"; boundary=A\"; boundary=B", Err(BrokenMultipart::Boundary)),
            ("boundary=\"A; boundary=B\"", Err(BrokenMultipart::Boundary)),
            ("boundary=\"A;B\"", Err(BrokenMultipart::Boundary)),
            ("boundary =A", Err(BrokenMultipart::Boundary)),
            ("boundary= A", Err(BrokenMultipart::Boundary)),
            ("boundary=A, x", Err(BrokenMultipart::Boundary)),
            ("boundary=\"A \"", Err(BrokenMultipart::Boundary)),
            ("boundary=\"A\\B\"", Err(BrokenMultipart::Boundary)),
        ] {
            assert_eq!(boundary(&format!("multipart/form-data; {kind}")), expected, "{kind}");
        }
        assert_eq!(boundary(&format!("a; boundary={}", "x".repeat(71))), Err(BrokenMultipart::Boundary));
    }

    #[test]
    fn an_encoding_is_known_or_refused() {
        for (kind, expected) in [
            ("a/b", Ok(Charset::Utf8)),
            ("a/b; charset=\"UTF-8\"; q=1", Ok(Charset::Utf8)),
            ("a/b;charset = utf8", Ok(Charset::Utf8)),
            ("a/b; Charset=ISO-8859-1", Ok(Charset::Ascii)),
            ("a/b; charset=utf-8; charset=us-ascii", Ok(Charset::Ascii)),
            ("a/b; charset=utf-8; charset=utf-16", Err(OtherCharset)),
            ("a/b; charset=utf-7", Err(OtherCharset)),
            ("a/b; charset*=us-ascii''utf-16", Err(OtherCharset)),
            ("a/b; charset", Err(OtherCharset)),
        ] {
            assert_eq!(charset(kind), expected, "{kind}");
        }
    }
}
