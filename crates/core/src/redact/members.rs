//! Members of JSON whose names say that they are secret, in JSON and inside other text: `log {"password": "…"} end`,
//! JSON that was cut off, JSON that is none by the letter.

use super::names::{REDACTED, is_secret_name};
use std::ops::Range;

/// A longer one is no name.
pub const NAME_BYTES_MAX: usize = 128;

/// The text without what such members say. `None`: there are none, as in most texts.
pub fn without_members(text: &str) -> Option<String> {
    let found = secret_members(text, text.trim_start().starts_with(['{', '[']));
    (!found.is_empty()).then(|| without(text, found))
}

/// The text without these parts of it.
pub fn without(text: &str, found: Vec<Range<usize>>) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut from = 0;
    for range in found {
        kept.push_str(&text[from..range.start]);
        kept.push_str(REDACTED);
        from = range.end;
    }
    kept + &text[from..]
}

/// `"access_token": "…"`, what is between the quotes.
///
/// Numbers, objects and nulls under such a name stay: `"network_token": {"used": false}` is no secret, and a program
/// that reads a replay may rely on its type. In a text that is not JSON all through (a stream of events, a page) a
/// quote may belong to nothing, so every one of them may open a name.
pub fn secret_members(text: &str, is_json: bool) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = bytes[at..].iter().position(|byte| *byte == b'"').map(|open| at + open) {
        at = open + 1;
        let within = if is_json { bytes } else { &bytes[..bytes.len().min(open + NAME_BYTES_MAX)] };
        let Some(close) = end_of_text(within, open) else {
            if is_json {
                break;
            }
            continue;
        };
        if is_json {
            at = close;
        }
        // A text before a colon is a name.
        let Some(value) = after(bytes, close, b':').map(|colon| past_space(bytes, colon)) else { continue };
        if bytes.get(value) == Some(&b'"')
            && bytes.get(value + 1).is_some_and(|next| *next != b'"')
            && is_named_secret(&text[open..close])
            && let Some(end) = end_of_text(bytes, value)
        {
            found.push(value + 1..end - 1);
            at = end;
        } else if bytes.get(value) == Some(&b'[') && is_named_secret(&text[open..close]) {
            at = texts_of_list(bytes, value, &mut found);
        } else if is_json {
            at = value;
        }
    }
    found
}

/// A list of texts, each of them. Returns where it ends, or where it is something else.
fn texts_of_list(bytes: &[u8], open: usize, found: &mut Vec<Range<usize>>) -> usize {
    let mut at = past_space(bytes, open + 1);
    while bytes.get(at) == Some(&b'"') {
        let Some(end) = end_of_text(bytes, at) else { return bytes.len() };
        if end - at > 2 {
            found.push(at + 1..end - 1);
        }
        match after(bytes, end, b',') {
            Some(comma) => at = past_space(bytes, comma),
            None => return end,
        }
    }
    at
}

fn is_named_secret(quoted: &str) -> bool {
    match quoted.contains('\\') {
        true => serde_json::from_str::<String>(quoted).is_ok_and(|name| is_secret_name(&name)),
        false => is_secret_name(&quoted[1..quoted.len() - 1]),
    }
}

/// Where the text that opens here has ended.
pub fn end_of_text(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The next byte that is no white space.
pub fn past_space(bytes: &[u8], from: usize) -> usize {
    let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    bytes[from..].iter().position(|byte| !space(byte)).map_or(bytes.len(), |space| from + space)
}

/// Past a mark, if that comes next.
pub fn after(bytes: &[u8], from: usize, mark: u8) -> Option<usize> {
    let at = past_space(bytes, from);
    (bytes.get(at) == Some(&mark)).then_some(at + 1)
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
