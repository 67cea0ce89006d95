//! A tool's result, read: its text blocks, its structure, and both as rules see them.

use crate::wire::members::Members;
use semel_core::json::{self, Json};
use serde_json::value::RawValue;

/// A larger result is mostly a file or a picture: it is passed on, and held once. Only the ends of it are read.
pub const READ_BYTES_MAX: usize = 1 << 20;

/// Blocks of such a result that are read, of either end.
const BLOCKS_MAX: usize = 8;

/// Errors are words; no more of them, of either end, is needed to read one.
const WORDS_BYTES_MAX: usize = 16 * 1024;

/// A result as expressions see it: its structured content, else its text as JSON, else the text itself. A text
/// that is one in JSON is taken out of its quotes.
pub fn value(result: &Members<'_>) -> Json {
    structure(result).unwrap_or_else(|| of_words(&words(result)))
}

/// The same, if it can be read whole: a search in a part of it would find nothing.
pub fn whole(result: &Members<'_>) -> Option<Json> {
    if result.get("structuredContent").is_some_and(|value| value.len() > READ_BYTES_MAX) {
        return None;
    }
    structure(result).or_else(|| all_words(result).map(|words| of_words(&words)))
}

pub fn structure(result: &Members<'_>) -> Option<Json> {
    let structured = result.get("structuredContent").filter(|value| value.len() <= READ_BYTES_MAX);
    structured.and_then(|value| json::parse(value).ok()).filter(|value| *value != Json::Null)
}

fn of_words(words: &str) -> Json {
    let words = words.trim();
    match json::parse(words) {
        Ok(value @ (Json::Object(_) | Json::Array(_))) => value,
        Ok(Json::String(text)) => Json::object([("text", Json::String(text))]),
        _ => Json::object([("text", Json::str(words))]),
    }
}

/// The text blocks of a result, of a long one the ends.
pub fn words(result: &Members<'_>) -> String {
    ends(of_blocks(result))
}

/// The text blocks of a result, unless that is too large to be read whole.
pub fn all_words(result: &Members<'_>) -> Option<String> {
    let is_small = result.get("content").is_none_or(|content| content.len() <= READ_BYTES_MAX);
    is_small.then(|| of_blocks(result))
}

fn of_blocks(result: &Members<'_>) -> String {
    texts(result).into_iter().flatten().flat_map(|text| [text, "\n".to_owned()]).collect()
}

/// The text of each block of a result, of those that have one. Some servers write JSON where a text belongs. Of a large
/// result only the outer blocks count as texts, and of those only the ends are read.
pub fn texts(result: &Members<'_>) -> Vec<Option<String>> {
    #[derive(serde::Deserialize)]
    struct TextBlock<'a> {
        #[serde(borrow)]
        text: Option<&'a RawValue>,
    }
    let content = result.get("content").unwrap_or("[]");
    let blocks: Vec<TextBlock<'_>> = serde_json::from_str(content).unwrap_or_default();
    let large = content.len() > READ_BYTES_MAX;
    let outer = |index: usize| index < BLOCKS_MAX || index + BLOCKS_MAX >= blocks.len();
    let text = |json: &str| match large && json.len() > 2 * WORDS_BYTES_MAX {
        true => ends_of_json(json),
        false => serde_json::from_str(json).unwrap_or_else(|_| json.to_owned()),
    };
    let read = |(index, block): (usize, &TextBlock<'_>)| {
        let written = block.text.filter(|_| !large || outer(index))?;
        Some(text(written.get()))
    };
    blocks.iter().enumerate().map(read).collect()
}

/// The beginning and the end of a text that stands in JSON, without the whole of it.
fn ends_of_json(json: &str) -> String {
    /// The longest escape is a pair of `\u1234`.
    const ESCAPE_BYTES_MAX: usize = 12;
    let decoded = |part: &str| serde_json::from_str::<String>(&format!("\"{part}\"")).ok();
    let Some(inner) = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')) else {
        return ends(json.to_owned());
    };
    // A cut may fall into an escape.
    let head = (0..=ESCAPE_BYTES_MAX)
        .find_map(|back| decoded(&inner[..inner.floor_char_boundary(WORDS_BYTES_MAX - back)]));
    let tail = (0..=ESCAPE_BYTES_MAX)
        .find_map(|on| decoded(&inner[inner.ceil_char_boundary(inner.len() - WORDS_BYTES_MAX + on)..]));
    format!("{} … {}", head.unwrap_or_default(), tail.unwrap_or_default())
}

/// The beginning and the end of a long text: what went wrong is often said last.
pub fn ends(words: String) -> String {
    if words.len() <= 2 * WORDS_BYTES_MAX {
        return words;
    }
    let head = &words[..words.floor_char_boundary(WORDS_BYTES_MAX)];
    let tail = &words[words.ceil_char_boundary(words.len() - WORDS_BYTES_MAX)..];
    format!("{head} … {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_see_structure_before_text() {
        let of = |result: &str| value(&Members::parse(result).unwrap()).canonical();
        assert_eq!(
            of(r#"{"structuredContent":{"a":1},"content":[{"type":"text","text":"x"}]}"#),
            r#"{"a":1}"#
        );
        assert_eq!(of(r#"{"content":[{"type":"text","text":"[1, 2]"}]}"#), "[1,2]");
        assert_eq!(of(r#"{"content":[{"type":"text","text":"done"}]}"#), r#"{"text":"done"}"#);
        assert_eq!(
            of(r#"{"content":[{"type":"text","text":"\"Failed to pay\""}]}"#),
            r#"{"text":"Failed to pay"}"#
        );
        assert_eq!(of(r#"{"content":[{"type":"text","text":{"error":7}}]}"#), r#"{"error":7}"#);
        assert_eq!(of("{}"), r#"{"text":""}"#);
    }

    #[test]
    fn whoever_looks_for_something_is_shown_all_of_it_or_nothing() {
        let long = |bytes: usize| format!("{}needle{}", "a".repeat(bytes / 2), "z".repeat(bytes / 2));
        let in_text = |bytes| format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, long(bytes));
        let in_structure = |bytes| format!(r#"{{"structuredContent":{{"text":"{}"}}}}"#, long(bytes));
        for result in [in_text(100_000), in_structure(100_000)] {
            let seen = whole(&Members::parse(&result).unwrap()).unwrap();
            assert!(seen.get("text").and_then(Json::as_str).unwrap().contains("needle"));
        }
        for result in [in_text(READ_BYTES_MAX), in_structure(READ_BYTES_MAX)] {
            assert_eq!(whole(&Members::parse(&result).unwrap()), None);
        }
    }
}
