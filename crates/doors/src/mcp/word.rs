//! The effect of a success, in one word.

use super::classify::{READ_BYTES_MAX, all_words, words};
use super::message::{Message, text};
use crate::wire::members::Members;
use semel_core::answer::EffectWord;
use semel_core::json::{self, Json};
use semel_core::policy::rule::{EffectWording, Rule};
use semel_core::words::words as words_of;

/// From the rule, else from what the tool itself says, else from its name.
pub fn effect_word(answer: &Message, rule: &Rule, tool: &str) -> EffectWord {
    if let Some(EffectWording::Word(word)) = &rule.effect {
        return *word;
    }
    let result = answer.body.as_ref().and_then(|body| Members::parse(text(body))).unwrap_or_default();
    of_reply(&value(&result), rule, tool)
}

/// The same of a reply as rules see it.
pub fn of_reply(reply: &Json, rule: &Rule, tool: &str) -> EffectWord {
    let said = match &rule.effect {
        Some(EffectWording::Word(word)) => Some(*word),
        Some(EffectWording::Expression(expression)) => {
            let said = expression.eval(&[("reply", reply)]).ok();
            said.and_then(|said| EffectWord::parse(said.as_str()?))
        }
        None => reply.get("effect").and_then(Json::as_str).and_then(EffectWord::parse),
    };
    said.unwrap_or_else(|| by_verb(tool))
}

/// The same without an answer to read.
pub fn by_name(rule: &Rule, tool: &str) -> EffectWord {
    match &rule.effect {
        Some(EffectWording::Word(word)) => *word,
        _ => by_verb(tool),
    }
}

fn by_verb(tool: &str) -> EffectWord {
    let words = words_of(tool);
    // `unpublish` is no publication and `address` no addition: words begin with their verb, and short ones are it.
    let is = |word: &str, verb: &str| if verb.len() > 3 { word.starts_with(verb) } else { word == verb };
    let says = |verbs: &[&str]| verbs.iter().any(|verb| words.iter().any(|word| is(word, verb)));
    let posts = says(&["post"]) && says(&["message"]);
    if posts || says(&["send", "resend", "publish", "notify", "reply", "email"]) {
        EffectWord::Sent
    } else if says(&["delete", "remove", "destroy"]) {
        EffectWord::Deleted
    } else if says(&["create", "add", "insert", "charge", "book", "order", "new"]) {
        EffectWord::Created
    } else {
        EffectWord::Updated
    }
}

/// A result as expressions see it: its structured content, else its text as JSON, else the text itself. A text
/// that is one in JSON is taken out of its quotes.
pub fn value(result: &Members<'_>) -> Json {
    structure(result).unwrap_or_else(|| of_words(&words(result)))
}

/// The same, if it can be read whole: whoever looks for something and is shown a part would find nothing.
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

    #[test]
    fn a_verb_tells_what_nobody_else_does() {
        assert_eq!(by_verb("send_mail"), EffectWord::Sent);
        assert_eq!(by_verb("deleteIssue"), EffectWord::Deleted);
        assert_eq!(by_verb("create_issue"), EffectWord::Created);
        assert_eq!(by_verb("merge"), EffectWord::Updated);
        assert_eq!(by_verb("slack_post_message"), EffectWord::Sent);
        assert_eq!(by_verb("unpublish_page"), EffectWord::Updated);
        assert_eq!(by_verb("update_address"), EffectWord::Updated);
        assert_eq!(by_verb("renew_domain"), EffectWord::Updated);
    }
}
