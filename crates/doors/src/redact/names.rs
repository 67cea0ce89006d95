//! Values under names that say that they are secret: members of JSON, parameters of forms and addresses,
//! elements of XML, lines of text. All else stays byte for byte.

use crate::wire::{form, members};
use semel_core::redact::members::{NAME_BYTES_MAX, after, end_of_text, past_space, secret_members, without};
use semel_core::redact::{REDACTED, is_secret_name, may_name_a_secret, redact_tokens};
use std::borrow::Cow;
use std::ops::Range;

/// Between quotes behind an equals sign a shorter value is an attribute of a page.
const QUOTED_BYTES_MIN: usize = 6;

/// JSON that is a text of JSON that is a text of JSON: deeper nobody writes it.
const NESTED_MAX: usize = 3;

/// The text without them. `None`: there are none, as in most answers.
pub fn without_named(text: &str) -> Option<String> {
    without_named_within(text, NESTED_MAX)
}

fn without_named_within(text: &str, nested_max: usize) -> Option<String> {
    let mut kept = Cow::Borrowed(text);
    if nested_max > 0
        && let Some(clean) = without_nested(text, nested_max - 1)
    {
        kept = Cow::Owned(clean);
    }
    let mut then = |find: &dyn Fn(&str) -> Vec<Range<usize>>| {
        let found = find(&kept);
        if !found.is_empty() {
            kept = Cow::Owned(without(&kept, found));
        }
    };
    if may_name_a_secret(text) {
        let is_json = text.trim_start().starts_with(['{', '[']);
        then(&|text| secret_members(text, is_json));
        if text.contains("':") || text.contains("' :") {
            then(&printed);
        }
        then(&|text| parameters(text, is_json));
        if !is_json {
            then(&elements);
            then(&lines);
        }
    }
    if let Some(clean) = redact_tokens(&kept) {
        kept = Cow::Owned(clean);
    }
    match kept {
        Cow::Owned(kept) if kept != text => Some(kept),
        _ => None,
    }
}

/// JSON with its texts that are JSON themselves looked into: `{"body":"{\"access_token\":\"…\"}"}`.
fn without_nested(text: &str, nested_max: usize) -> Option<String> {
    if !text.trim_start().starts_with(['{', '[']) || !text.contains("{\\\"") {
        return None;
    }
    let bytes = text.as_bytes();
    let mut kept = String::new();
    let (mut from, mut at) = (0, 0);
    while let Some(open) = bytes[at..].iter().position(|byte| *byte == b'"').map(|open| at + open) {
        let Some(close) = end_of_text(bytes, open) else { break };
        at = close;
        let quoted = &text[open..close];
        let nests = |inner: &String| inner.trim_start().starts_with(['{', '[']);
        if quoted.contains("\\\"")
            && let Some(inner) = serde_json::from_str::<String>(quoted).ok().filter(nests)
            && let Some(clean) = without_named_within(&inner, nested_max)
        {
            kept.push_str(&text[from..open]);
            kept.push_str(&members::quoted(&clean));
            from = close;
        }
    }
    (from > 0).then(|| kept + &text[from..])
}

/// `'access_token': '…'`, as a program of Python prints its objects.
fn printed(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(close) = text[from..].find('\'').map(|at| from + at) {
        from = close + 1;
        let Some(value) = after(bytes, from, b':').map(|colon| past_space(bytes, colon)) else { continue };
        let name = text[..close].rfind('\'').map_or("", |open| &text[open + 1..close]);
        if bytes.get(value) == Some(&b'\'')
            && name.len() <= NAME_BYTES_MAX
            && is_secret_name(name)
            && let Some(length) = text[value + 1..].find('\'').filter(|length| *length > 0)
        {
            found.push(value + 1..value + 1 + length);
            from = value + length + 2;
        }
    }
    found
}

/// `access_token=…&…`, in a form, an address or a sentence, and inside a text of JSON as well: a value ends where any
/// of these could end.
fn parameters(text: &str, is_json: bool) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(equals) = text[from..].find('=').map(|at| from + at) {
        let named = |byte: &&u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']' | b'%')
        };
        let length = bytes[from..equals].iter().rev().take(NAME_BYTES_MAX).take_while(named).count();
        let name = &text[equals - length..equals];
        from = equals + 1;
        if length == 0 || !is_secret_name(&form::decoded(name)) {
            continue;
        }
        // A quote that is written like this inside JSON ends the whole text there.
        let (quote, start) = match bytes.get(from..).unwrap_or_default() {
            [b'\\', b'"' | b'\'', ..] => (Some('\\'), from + 2),
            [b'"', ..] if !is_json => (Some('"'), from + 1),
            [b'\'', ..] => (Some('\''), from + 1),
            _ => (None, from),
        };
        let ends = |c: char| match quote {
            Some(quote) => c == quote || is_json && matches!(c, '"' | '\\'),
            None => matches!(c, '&' | '#' | '"' | '\'' | '\\' | '<' | '>') || c.is_whitespace(),
        };
        let Some(end) = text[start..].find(ends).or(quote.is_none().then_some(text.len() - start)) else {
            continue;
        };
        if end >= quote.map_or(1, |_| QUOTED_BYTES_MIN) {
            found.push(start..start + end);
            from = start + end;
        }
    }
    found
}

/// `<SecretAccessKey>…</SecretAccessKey>`.
fn elements(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = text[from..].find('<').map(|at| from + at + 1) {
        let Some(length) = text[open..].find(['>', '<']) else { break };
        let tag = &text[open..open + length];
        let name = tag.split_whitespace().next().unwrap_or_default();
        from = open + length;
        if name.len() > NAME_BYTES_MAX || name.starts_with('/') || !is_secret_name(name) {
            continue;
        }
        let start = (from + 1).min(text.len());
        if !text[from..].starts_with('>') {
            continue;
        }
        const VERBATIM: (&str, &str) = ("<![CDATA[", "]]>");
        if let Some(verbatim) = text[start..].strip_prefix(VERBATIM.0) {
            let Some(length) = verbatim.find(VERBATIM.1) else { break };
            let start = start + VERBATIM.0.len();
            found.push(start..start + length);
            from = start + length;
            continue;
        }
        let Some(end) = text[start..].find('<') else { break };
        if !text[start..start + end].trim().is_empty() {
            found.push(start..start + end);
        }
        from = start + end;
    }
    found
}

/// `X-Api-Key: …` and `Invalid API key: …`, to the end of the line.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = line.trim_end().len();
        if let Some(colon) = line[..end].find(':')
            && colon <= NAME_BYTES_MAX
            && !line[..colon].contains(['"', '<', '{', '='])
            && is_secret_name(&line[..colon])
        {
            let start = colon + 1 + (line[colon + 1..].len() - line[colon + 1..].trim_start().len());
            // An address is no value of its scheme.
            if start < end && !line[start..end].starts_with("//") && line[start..end] != *REDACTED {
                found.push(at + start..at + end);
            }
        }
        at += line.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(text: &str) -> String {
        without_named(text).unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn wherever_programs_put_a_secret_it_is_found() {
        for (text, expected) in [
            (
                r#"{"status": 200, "body": "{\"access_token\":\"S\",\"n\":1}"}"#,
                r#"{"status": 200, "body": "{\"access_token\":\"[redacted]\",\"n\":1}"}"#,
            ),
            (
                r#"{"secret":["one", "two"],"b":["c"]}"#,
                r#"{"secret":["[redacted]", "[redacted]"],"b":["c"]}"#,
            ),
            ("{'access_token': 'S', 'n': 1}", "{'access_token': '[redacted]', 'n': 1}"),
            ("<password><![CDATA[S]]></password>", "<password><![CDATA[[redacted]]]></password>"),
            ("/cb?code=1#access_token=S&x=1", "/cb?code=1#access_token=[redacted]&x=1"),
        ] {
            assert_eq!(kept(text), expected);
        }
        for text in [r#"{"body":"{\"id\":\"S\"}"}"#, "/charges/4242424242424242", "it's 'here': 'there'"] {
            assert_eq!(kept(text), text);
        }
    }

    #[test]
    fn a_text_under_a_secret_name_goes_and_its_surroundings_stay() {
        for (text, expected) in [
            (
                r#"{ "a" :1.0, "access_token" : "s\"ecret","b":[{"clientSecret":"y"}]}"#,
                r#"{ "a" :1.0, "access_token" : "[redacted]","b":[{"clientSecret":"[redacted]"}]}"#,
            ),
            (
                r#"{"a":"\"token\":\"x\"","pass\u0077ord":"p"}"#,
                r#"{"a":"\"token\":\"x\"","pass\u0077ord":"[redacted]"}"#,
            ),
            ("access_token=abc&expires=3600", "access_token=[redacted]&expires=3600"),
            ("a=1&cvc=123&access%5Ftoken=x%20y", "a=1&cvc=[redacted]&access%5Ftoken=[redacted]"),
            (
                r#"{"message":"api_key=sk_live_1\" is wrong","n":1}"#,
                r#"{"message":"api_key=[redacted]\" is wrong","n":1}"#,
            ),
            ("your api_key=sk_live_1 is wrong", "your api_key=[redacted] is wrong"),
            ("Invalid API key: sk_live_1\nid: 7\n", "Invalid API key: [redacted]\nid: 7\n"),
            ("data: {\"token\":\"abc\"}\n\ndata: x\"\n", "data: {\"token\":\"[redacted]\"}\n\ndata: x\"\n"),
            (
                "<R><SecretAccessKey>abc</SecretAccessKey><Id>1</Id></R>",
                "<R><SecretAccessKey>[redacted]</SecretAccessKey><Id>1</Id></R>",
            ),
            (
                r#"{"header":"Bearer abcdefgh.ijk","url":"https://ann:pw@h/x"}"#,
                r#"{"header":"Bearer [redacted]","url":"https://ann:[redacted]@h/x"}"#,
            ),
            (r#"{"m":"token=\"abcdefgh\" or"}"#, r#"{"m":"token=\"[redacted]\" or"}"#),
            ("<session token=\"abcdefgh\"/>", "<session token=\"[redacted]\"/>"),
        ] {
            assert_eq!(kept(text), expected);
            assert_eq!(kept(expected), expected, "twice is once");
        }
    }

    #[test]
    fn what_holds_no_secret_stays_as_it_is() {
        for text in [
            "{ \"id\" : 1.0,\n\"network_token\":{\"used\":false}, \"token\": \"\", \"tokens\":\"x\"}",
            r#"{"url":"https://h/?a=1&b=2","keyboard":"q","n":4242424242424242}"#,
            "<a token=\"1\">",
            "secrets://h",
            "id=1&amount=2000",
            "12:00: all is well",
        ] {
            assert_eq!(kept(text), text);
        }
    }

    proptest! {
        #[test]
        fn json_stays_json(text in "(token=|['a=&\"\\\\ :<>\u{e4}]|abcdefg){0,30}", name in "(token|id|api_key)") {
            let inner = format!("{text} {name}={text}");
            let json = serde_json::json!({ name: text, "message": inner }).to_string();
            prop_assert!(serde_json::from_str::<serde_json::Value>(&kept(&json)).is_ok(), "{}", kept(&json));
        }

        #[test]
        fn nothing_makes_it_panic(text in "(token|\u{e4}|[=:\"'<>/&% \n{]|Bearer |://|a){0,24}") {
            let _kept = kept(&text);
        }
    }
}
