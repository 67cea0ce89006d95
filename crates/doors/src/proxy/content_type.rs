//! What a `Content-Type` says, where all readers of it understand the same.

use super::multipart::Broken;

/// A type without its parameters.
pub fn essence(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// What divides the parts of a form.
pub fn boundary(kind: &str) -> Result<&str, Broken> {
    let mut found = None;
    for (name, value) in parameters(kind) {
        if name.eq_ignore_ascii_case("boundary") && found.is_none() {
            found = Some(value);
            continue;
        }
        // Some readers take the first one, some the last, and some whatever stands behind the word.
        if [name, value].iter().any(|text| text.to_ascii_lowercase().contains("boundary")) {
            return Err(Broken::Boundary);
        }
    }
    let value = found.filter(|value| !value.is_empty()).ok_or(Broken::NoBoundary)?;
    let (boundary, is_plain) = match unquoted(value) {
        Some(quoted) => (quoted, quoted.trim() == quoted && quoted.bytes().all(may_be_quoted)),
        None => (value, is_token(value)),
    };
    match (1..=70).contains(&boundary.len()) && is_plain {
        true => Ok(boundary),
        false => Err(Broken::Boundary),
    }
}

/// A word that needs no quotes.
pub fn is_token(text: &str) -> bool {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(belongs)
}

/// What the standard lets a boundary have.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_is_named_once_and_plainly() {
        for (kind, expected) in [
            ("boundary=B", Ok("B")),
            ("charset=UTF-8; Boundary=\"----=_Part_1 (2)\";", Ok("----=_Part_1 (2)")),
            ("boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW", Ok("----WebKitFormBoundary7MA4YWxkTrZu0gW")),
            ("boundary=Boundary+0xAbCd", Ok("Boundary+0xAbCd")),
            ("charset=utf-8", Err(Broken::NoBoundary)),
            ("boundary=", Err(Broken::NoBoundary)),
            ("boundary=\"\"", Err(Broken::Boundary)),
            ("boundary=A; boundary=B", Err(Broken::Boundary)),
            ("boundary=A; boundary=A", Err(Broken::Boundary)),
            ("boundary=A; BOUNDARY*=utf-8''B", Err(Broken::Boundary)),
            ("xboundary=A; boundary=B", Err(Broken::Boundary)),
            ("x=\"; boundary=A\"; boundary=B", Err(Broken::Boundary)),
            ("boundary=\"A; boundary=B\"", Err(Broken::Boundary)),
            ("boundary=\"A;B\"", Err(Broken::Boundary)),
            ("boundary =A", Err(Broken::Boundary)),
            ("boundary= A", Err(Broken::Boundary)),
            ("boundary=A, x", Err(Broken::Boundary)),
            ("boundary=\"A \"", Err(Broken::Boundary)),
            ("boundary=\"A\\B\"", Err(Broken::Boundary)),
        ] {
            assert_eq!(boundary(&format!("multipart/form-data; {kind}")), expected, "{kind}");
        }
        assert_eq!(boundary(&format!("a; boundary={}", "x".repeat(71))), Err(Broken::Boundary));
    }
}
