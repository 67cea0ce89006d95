//! Members of JSON inside other text: `log {"password": "…"} end`, JSON that was cut off, JSON that is none by the letter.

use super::redact::{REDACTED, is_secret_name};

/// The text without the values of members whose names are secret, where these values are quoted. `None`: there are none.
pub fn without_members(text: &str) -> Option<String> {
    let mut shown = String::new();
    let (mut from, mut at) = (0, 0);
    while let Some((name, after_name)) = quoted(text, at) {
        at = after_name;
        let Some(value_at) = value_after(text, after_name) else { continue };
        let Some((value, after_value)) = quoted(text, value_at) else { break };
        if is_secret_name(name) && !value.is_empty() {
            let begin = after_value - 1 - value.len();
            shown.push_str(&text[from..begin]);
            shown.push_str(REDACTED);
            from = after_value - 1;
        }
        at = after_value;
    }
    (from > 0).then(|| shown + &text[from..])
}

/// What stands in the next quotes, and where they have ended.
fn quoted(text: &str, at: usize) -> Option<(&str, usize)> {
    let begin = at + text[at..].find('"')? + 1;
    let bytes = text.as_bytes();
    let mut end = begin;
    while *bytes.get(end)? != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    Some((text.get(begin..end)?, end + 1))
}

/// Where the quotes of a value open, if a colon and nothing else stands between.
fn value_after(text: &str, at: usize) -> Option<usize> {
    let rest = text[at..].trim_start().strip_prefix(':')?.trim_start();
    rest.starts_with('"').then_some(text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_values_of_secret_members_go() {
        for (text, shown) in [
            (r#"log {"password":"S","x":1} end"#, r#"log {"password":"[redacted]","x":1} end"#),
            ("ok\n{\n \"api_key\" : \"S\\\"T\" }", "ok\n{\n \"api_key\" : \"[redacted]\" }"),
            (r#"{"token":"a","token":"b"}"#, r#"{"token":"[redacted]","token":"[redacted]"}"#),
        ] {
            assert_eq!(without_members(text).as_deref(), Some(shown));
        }
        for text in ["", "\"", r#"{"name":"password"}"#, r#"{"password":7}"#, r#""token" is a word"#, "\"é\\"]
        {
            assert_eq!(without_members(text), None, "{text}");
        }
    }
}
