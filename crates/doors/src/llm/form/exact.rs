//! JSON whose numbers stay as they were said, to the last digit.
//!
//! `serde_json::Value` rounds what a double cannot hold, and has one text for each number. A number that it would write
//! otherwise is carried as a text between marks, and written as the number that it was.

use serde::de::IgnoredAny;
use serde_json::{Number, Value};

/// A noncharacter of Unicode: no text means anything by it.
const MARK: char = '\u{fdd0}';
const MARK_ESCAPED: &[u8] = b"\\ufdd0";

/// `None`: it is no JSON, or has marks of its own.
pub fn read(json: &[u8]) -> Option<Value> {
    let json = std::str::from_utf8(json).ok().filter(|json| !json.contains(MARK))?;
    let bytes = json.as_bytes();
    let mut marked = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = after_text(bytes, at + 1)?,
            b'-' | b'0'..=b'9' => {
                let length = bytes[at..].iter().position(|byte| !is_of_number(*byte));
                let end = length.map_or(bytes.len(), |length| at + length);
                let number = &json[at..end];
                if is_changed(number) {
                    marked.push_str(&json[copied..at]);
                    marked.push_str(&format!("\"{MARK}{number}{MARK}\""));
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return serde_json::from_str(json).ok();
    }
    marked.push_str(&json[copied..]);
    serde_json::from_str(&marked).ok()
}

pub fn written(value: &Value) -> String {
    let text = value.to_string();
    match text.contains(MARK) {
        true => text.replace(&format!("\"{MARK}"), "").replace(&format!("{MARK}\""), ""),
        false => text,
    }
}

pub fn is_number(value: &Value) -> bool {
    value.is_number() || value.as_str().is_some_and(|text| text.starts_with(MARK))
}

/// Where a text has ended that begins here. `None`: it does not end, or has a mark in it.
fn after_text(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => {
                let escaped = bytes.get(at..at + MARK_ESCAPED.len()).unwrap_or_default();
                if escaped.eq_ignore_ascii_case(MARK_ESCAPED) {
                    return None;
                }
                at += 2;
            }
            _ => at += 1,
        }
    }
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Whether this is a number that would be written otherwise.
fn is_changed(number: &str) -> bool {
    let kept = serde_json::from_str::<Number>(number).is_ok_and(|read| read.to_string() == number);
    !kept && serde_json::from_str::<IgnoredAny>(number).is_ok()
}
