//! What an error says in members instead of sentences: `{"error": "label not found", "created": true}`. Its texts are
//! read as texts are; a member that is named by a word of something done, or that has the id or the address of
//! something the call did not name, says that something is there.

use super::classify::ends;
use super::done_words::{Tool, Whose};
use super::said_done::{self, Asked, REFUSES};
use super::tool_name::words as words_of;
use semel_core::json::{self, Json, Object};

/// Members that repeat what was asked for, or say how to ask for it.
const OF_THE_REQUEST: &[&str] = &[
    "request",
    "config",
    "input",
    "arguments",
    "args",
    "params",
    "parameters",
    "headers",
    "path",
    "expected",
    "received",
    "allowed",
    "options",
    "hint",
    "suggestion",
    "jsonrpc",
];

/// Members with the fault: an id in there is part of it.
const OF_THE_FAULT: &[&str] = &["error", "errors", "failure", "exception", "cause"];

/// Members that say in one word how it is.
const SAYS_HOW_IT_IS: &[&str] =
    &["status", "state", "result", "outcome", "message", "msg", "text", "detail", "data"];

/// What leads to a thing.
const LEADS_TO_IT: &[&str] =
    &["id", "url", "uri", "href", "link", "permalink", "self", "uuid", "guid", "sid", "ts", "number"];

/// Whose id or address says nothing of what was made, unless the tool makes just that.
const OF_SOMETHING_ELSE: &[&str] = &[
    "request",
    "trace",
    "correlation",
    "error",
    "span",
    "log",
    "session",
    "event",
    "documentation",
    "docs",
    "doc",
    "help",
    "support",
    "info",
    "client",
    "call",
    "user",
    "account",
    "tenant",
    "org",
    "organization",
    "workspace",
    "project",
    "team",
    "owner",
];

/// What of the value says that something was done.
pub fn member(said: &Json, asked: Asked<'_>) -> Option<String> {
    Reader { asked, tool: Tool::named(asked.tool) }.value("data", said, false)
}

/// A text, or the value that it is in JSON.
pub fn as_structure(text: &str) -> Option<Json> {
    let text = text.trim();
    let may_be = text.starts_with(['{', '[']);
    may_be.then(|| json::parse(text).ok()).flatten()
}

#[derive(Debug)]
struct Reader<'a> {
    asked: Asked<'a>,
    tool: Tool,
}

impl Reader<'_> {
    fn value(&self, name: &str, value: &Json, in_fault: bool) -> Option<String> {
        match value {
            Json::Object(members) => self.members(members, in_fault),
            Json::Array(items) => items.iter().find_map(|item| self.value(name, item, in_fault)),
            Json::String(text) => self.text(name, text, in_fault),
            Json::Null | Json::Bool(_) | Json::Number(_) => None,
        }
    }

    fn members(&self, members: &Object, in_fault: bool) -> Option<String> {
        let is_envelope = members.get("jsonrpc").is_some();
        members.iter().filter(|(_, value)| !is_empty(value)).find_map(|(name, value)| {
            let lower = name.to_lowercase();
            if OF_THE_REQUEST.contains(&lower.as_str()) {
                return None;
            }
            let words = words_of(name);
            let is_of_the_envelope = is_envelope && lower == "id";
            let leads = !in_fault && !is_of_the_envelope && self.leads_to_it(&words, value);
            if leads || self.is_named_for_it(&lower, &words) && !complains(value) {
                return Some(format!("{name}: {}", value.canonical()));
            }
            let in_fault =
                in_fault || words.first().is_some_and(|word| OF_THE_FAULT.contains(&word.as_str()));
            self.value(&lower, value, in_fault)
        })
    }

    fn text(&self, name: &str, text: &str, in_fault: bool) -> Option<String> {
        if let Some(inner) = as_structure(text) {
            return self.value(name, &inner, in_fault);
        }
        let is_word = text.trim().chars().all(char::is_alphanumeric);
        let lower = ends(text.trim().to_owned()).to_lowercase();
        match is_word {
            _ if is_given(text, self.asked.arguments, &|given| given == name) => None,
            true if !SAYS_HOW_IT_IS.contains(&name) => None,
            true => self.is_named_done(&lower).then_some(lower),
            false => said_done::clause(&lower, self.asked),
        }
    }

    /// A state in the words of another kind of work is how something was found.
    fn is_named_done(&self, name: &str) -> bool {
        matches!(name, "success" | "ok") || self.tool.whose(name).is_some_and(|whose| whose != Whose::Foreign)
    }

    /// `created`, and also `is_paid`, `amount_charged` and `createdAt`.
    fn is_named_for_it(&self, name: &str, words: &[String]) -> bool {
        let verb = match words {
            [verb, at] if matches!(at.as_str(), "at" | "on") => verb,
            [_, .., verb] => verb,
            _ => return self.is_named_done(name),
        };
        self.tool.whose(verb).is_some_and(|whose| whose != Whose::Foreign)
    }

    fn leads_to_it(&self, words: &[String], value: &Json) -> bool {
        let Some((last, of)) = words.split_last() else { return false };
        let is_scalar = matches!(value, Json::String(_) | Json::Number(_));
        let else_ =
            of.iter().any(|word| OF_SOMETHING_ELSE.contains(&word.as_str()) && !self.tool.is_about(word));
        let written = value.as_str().map_or_else(|| value.canonical(), str::to_owned);
        is_scalar
            && LEADS_TO_IT.contains(&last.as_str())
            && !else_
            && !is_given(&written, self.asked.arguments, &|given| names_a_thing(given) || is_of(given, of))
            // A number may be that of something else by chance.
            && !(of.is_empty() && value.as_str().is_some() && is_given(&written, self.asked.arguments, &|_| true))
    }
}

/// What names a thing in a call.
fn names_a_thing(argument: &str) -> bool {
    let words = words_of(argument);
    words
        .last()
        .is_some_and(|last| LEADS_TO_IT.contains(&last.as_str()) || matches!(last.as_str(), "ids" | "number"))
}

/// Whether an argument is the thing whose id this is: `card`, and `card_id` in the answer.
fn is_of(argument: &str, of: &[String]) -> bool {
    !of.is_empty() && words_of(argument) == of
}

/// Whether a member of a field's name says what is wrong with it: `{"created": ["must be a date"]}`.
fn complains(value: &Json) -> bool {
    let refuses = |text: &str| {
        let lower = text.to_lowercase();
        REFUSES.iter().chain(&["must", "should", "expected", "not a"]).any(|phrase| lower.contains(phrase))
    };
    match value {
        Json::String(text) => refuses(text),
        Json::Array(items) => items.iter().all(|item| item.as_str().is_some_and(refuses)),
        _ => false,
    }
}

/// Whether the call itself has it, in an argument of such a name.
fn is_given(said: &str, arguments: &Json, named: &dyn Fn(&str) -> bool) -> bool {
    let equals = |given: &Json| match given {
        Json::String(given) => given.trim().eq_ignore_ascii_case(said.trim()),
        Json::Number(_) => given.canonical() == said,
        _ => false,
    };
    match arguments {
        Json::Array(items) => items.iter().any(|item| is_given(said, item, named)),
        Json::Object(members) => members.iter().any(|(name, value)| {
            let is_it = || match value {
                Json::Array(items) => items.iter().any(equals),
                value => equals(value),
            };
            named(&name.to_lowercase()) && is_it() || is_given(said, value, named)
        }),
        _ => false,
    }
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::String(text) => {
            matches!(text.trim().to_lowercase().as_str(), "" | "no" | "none" | "false" | "null" | "0")
        }
        Json::Array(items) => items.iter().all(is_empty),
        Json::Object(members) => members.iter().all(|(_, value)| is_empty(value)),
        Json::Number(_) => value.canonical() == "0",
        Json::Bool(true) => false,
    }
}
