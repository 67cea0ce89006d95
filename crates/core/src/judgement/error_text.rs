//! Reads an error for whether its work was done. `spec/judgement.md`, section 3, is the normative page.
//!
//! Short tables of words and no grammar: the reading prefers doubt, because a doubt is looked at and a refusal is run
//! again. Rules and packs say what the words of a known server mean.

use crate::json::{self, Json, Number, Object};
use std::ops::RangeInclusive;

/// The reading of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorReading {
    /// That its answer was lost, that a server failed, or that code broke.
    Lost(String),
    /// That something was done.
    Done(String),
    /// That the request was looked at and turned away.
    Refused,
    /// Nothing of these.
    Nothing,
}

impl ErrorReading {
    /// The reading of two parts of one error: a doubt in either is one.
    pub fn and(self, other: ErrorReading) -> ErrorReading {
        match (&self, &other) {
            (ErrorReading::Lost(_) | ErrorReading::Done(_), _)
            | (ErrorReading::Refused, ErrorReading::Refused | ErrorReading::Nothing) => self,
            _ => other,
        }
    }
}

/// Phrases of a lost answer. The output of a command is read for these alone.
const LOST: &str = "\
    timed out, timeout, timedout, gateway time out, deadline exceeded, connection reset, connection closed, connection lost, \
    connection aborted, connection terminated, connection error, connection unexpectedly, terminating connection, \
    lost connection, closed the connection, server disconnected, server closed, unexpected disconnect, hung up, hang up, broken pipe, \
    econnreset, econnaborted, epipe, bad gateway, service unavailable, server error, unexpected eof, eof occurred, \
    eof detected, empty reply, network error, fetch failed, unable to fetch, premature close, other side closed";

/// Words of something done.
const DONE: &str = "\
    accepted, activated, added, approved, archived, assigned, billed, booked, bought, canceled, cancelled, captured, \
    changed, charged, closed, committed, complete, completed, confirmed, created, credited, debited, deleted, \
    delivered, deployed, dispatched, done, emailed, executed, filed, generated, ignored, initiated, inserted, \
    invited, is live, issued, launched, made, merged, moved, notified, ok, opened, ordered, paid, partial, \
    partially, pending, placed, posted, processed, processing, published, purchased, pushed, queued, refunded, \
    registered, removed, resent, reserved, saved, scheduled, sent, shared, shipped, skipped, started, stored, \
    submitted, succeeded, success, successful, successfully, transferred, triggered, updated, uploaded, went out, \
    went through, wired, written";

/// Words of a lost answer that are too common in the output of a command, and of code that broke: it breaks over an
/// answer as well as over arguments.
const BROKEN: &str = "\
    aborted, interrupted, terminated, temporarily, unreachable, connection, gateway, disconnected, eof, panic, \
    runtime error, traceback, nonetype, undefined, unmarshal, invalid literal, invalid character, expecting value, \
    unexpected token, unexpected end, has no attribute, is not a function, is not iterable, cannot read, could not \
    convert, out of range, out of bounds, output validation, output schema, structured content, json response, parse \
    response, parsing response, read response, reading response, decode response, decoding response, response body, \
    after sending, after creating, after posting, while waiting, while polling, while reading, validation error for, \
    validation errors for";

/// Phrases of a refusal.
const REFUSED: &str = "\
    invalid, not valid, not found, could not find, does not exist, no such, already exists, denied, declined, \
    forbidden, unauthorized, not authenticated, authentication required, bad credentials, not allowed, not \
    permitted, not accessible, not supported, unsupported, is required, are required, field required, missing \
    required, required parameter, must be, validation, malformed, bad request, unprocessable, rate limit, \
    ratelimited, too many requests, quota, insufficient, unknown tool";

/// Statuses of HTTP: of a success, of a refusal, of a server that failed.
const DONE_STATUS: [&str; 4] = ["200", "201", "202", "204"];
const REFUSED_STATUS: [&str; 6] = ["400", "401", "403", "404", "422", "429"];
const LOST_STATUS: [&str; 4] = ["500", "502", "503", "504"];
const AMBIGUOUS_STATUS: [&str; 3] = ["408", "409", "425"];

/// Members that describe a failure, in lower case and without `_` and `-`. One of another name may be a result.
const FAILURE_MEMBERS: &str = "\
    cause, code, correlationid, declinecode, detail, details, documentationurl, docurl, error, errorcode, \
    errordescription, errorid, errormessage, errors, errortype, field, hint, iserror, message, msg, object, ok, \
    param, path, reason, requestid, retryable, retryafter, stack, status, statuscode, statustext, success, \
    suggestion, timestamp, traceback, traceid, type";

/// Reads an error, in words or as JSON.
pub fn read(text: &str) -> ErrorReading {
    match json::parse(text.trim()) {
        Ok(value @ (Json::Object(_) | Json::Array(_))) => read_value(&value),
        _ => read_words(text),
    }
}

/// The same of a value: it refuses only if every member that is not empty describes a failure.
pub fn read_value(value: &Json) -> ErrorReading {
    let mut words = String::new();
    match spell(value, &mut words) {
        Some(member) => ErrorReading::Done(member),
        None => read_words(&words),
    }
}

/// Reads the output of a command for a lost answer. It may hold anything else, so nothing else in it counts.
pub fn lost(text: &str) -> Option<&'static str> {
    let words = words_of(text).replace('_', " ");
    let status = || LOST_STATUS.into_iter().find(|status| has_status(text, status));
    entries(LOST).find(|phrase| words.contains(phrase)).or_else(status)
}

/// Whether a framework says that it looked at the arguments and did not run the tool. It quotes them, and they may say
/// anything.
pub fn is_about_arguments(text: &str) -> bool {
    let lower = text.trim().to_lowercase();
    let mut said = lower.as_str();
    // The SDK's own prefix of an error of the protocol, and that of a tool.
    if let Some((_, rest)) = said.strip_prefix("mcp error ").and_then(|rest| rest.split_once(": ")) {
        said = rest;
    }
    let mut tool = None;
    if let Some((name, rest)) =
        said.strip_prefix("error executing tool ").and_then(|rest| rest.split_once(": "))
    {
        (tool, said) = (Some(name), rest);
    }
    // The official SDKs; then pydantic below them: `2 validation errors for chargeArguments`, `… for call[charge]`. Any
    // other name is that of the result, or of a model within the tool.
    let model = said.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(" validation error");
    let model = model.map(|rest| rest.trim_start_matches('s')).and_then(|rest| rest.strip_prefix(" for "));
    let name =
        model.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default().trim_end_matches(':');
    let of_the_tool = |whose: &str| tool.is_none_or(|tool| tool == whose);
    said.starts_with("input validation error")
        || name.starts_with("call[")
        || name.strip_suffix("arguments").is_some_and(of_the_tool)
}

/// Whether an answer that is not marked as an error is nothing but one: an object that says that it failed, and has no
/// member which could be a result.
pub fn is_failure(value: &Json) -> bool {
    let Some(members) = value.as_object() else { return false };
    let says_yes = |value: &Json| value.as_bool() == Some(true);
    let is_error = |value: &Json| {
        let word = value.as_str().unwrap_or_default().to_lowercase();
        matches!(word.as_str(), "error" | "failed" | "failure") || is_between(value, 400..=599)
    };
    members.iter().all(|(name, value)| is_empty(value) || describes_failure(name))
        && !any(members, &["ok", "success"], says_yes)
        && !any(members, &["status", "statuscode", "code"], |value| is_between(value, 200..=299))
        && (any(members, &["error", "errors"], |value| !is_empty(value))
            || any(members, &["iserror"], says_yes)
            || any(members, &["ok", "success"], |value| value.as_bool() == Some(false))
            || any(members, &["status", "statuscode", "object"], is_error))
}

/// Finds words of a lost answer, or of code that broke.
pub fn broke(text: &str) -> Option<String> {
    let words = words_of(text);
    let phrase = || entries(BROKEN).find(|phrase| has(&words, phrase));
    // `TypeError`, `NullPointerException`.
    let is_exception = |word: &&str| {
        let names = |end| word.strip_suffix(end).is_some_and(|name| !name.is_empty() && !name.contains('_'));
        names("error") || names("exception")
    };
    lost(text).or_else(phrase).or_else(|| words.split(' ').find(is_exception)).map(str::to_owned)
}

fn read_words(text: &str) -> ErrorReading {
    if let Some(phrase) = broke(text) {
        return ErrorReading::Lost(phrase);
    }
    let words = words_of(text);
    let has = |phrase: &str| has(&words, phrase);
    let status =
        |wanted: &'static [&'static str]| wanted.iter().find(|status| has_status(text, status)).copied();
    if let Some(done) = entries(DONE).find(|word| has(word)).or_else(|| status(&DONE_STATUS)) {
        return ErrorReading::Done(done.to_owned());
    }
    let lost = LOST_STATUS.iter().find(|status| has(status)).copied();
    if let Some(status) = lost.or_else(|| status(&AMBIGUOUS_STATUS)) {
        return ErrorReading::Lost(status.to_owned());
    }
    let spaced = words.replace('_', " ");
    match entries(REFUSED).any(|phrase| self::has(&spaced, phrase)) || status(&REFUSED_STATUS).is_some() {
        true => ErrorReading::Refused,
        false => ErrorReading::Nothing,
    }
}

/// A status, and not a count: it follows a word for it, stands in brackets, or before a capital letter as its own words
/// do.
fn has_status(text: &str, status: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).map_or("", |before| words[before]).to_lowercase();
        let name = before.trim_matches(|c: char| !c.is_alphanumeric());
        // `Error: 404 rows` counts rows; `returned error: 503` ends with its status.
        let names = ["http", "http/1.1", "http/2", "status", "statuscode", "code"];
        let is_last = at + 1 == words.len();
        let is_named = names.contains(&name) || before == "error" || (name == "error" && is_last);
        let has_words = words.get(at + 1).is_some_and(|next| next.starts_with(|c: char| c.is_uppercase()));
        word.trim_matches(|c: char| !c.is_ascii_alphanumeric()) == status
            && (is_named || has_words || word.starts_with('(') && word.contains(')'))
    })
}

/// The words of a text, in lower case, one space apart and around all of them. A name with `_` in it is one word.
fn words_of(text: &str) -> String {
    let plain = text.to_lowercase().replace(|c: char| !c.is_alphanumeric() && c != '_', " ");
    format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Writes a value's members as words, or names the one that describes no failure.
fn spell(value: &Json, words: &mut String) -> Option<String> {
    match value {
        Json::Object(members) => {
            members.iter().filter(|(_, value)| !is_empty(value)).find_map(|(name, value)| {
                let yes = matches!(plain(name).as_str(), "ok" | "success") && value.as_bool() == Some(true);
                if yes || !describes_failure(name) {
                    return Some(format!("{name}: {}", value.canonical()));
                }
                words.push_str(&format!(" {}", plain(name)));
                spell(value, words)
            })
        }
        Json::Array(items) => items.iter().find_map(|item| spell(item, words)),
        scalar => {
            let text = scalar.as_str().map_or_else(|| scalar.canonical(), str::to_owned);
            words.push_str(&format!(" {text}\n"));
            None
        }
    }
}

fn has(words: &str, phrase: &str) -> bool {
    words.contains(&format!(" {phrase} "))
}

fn entries(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.split(", ")
}

fn describes_failure(name: &str) -> bool {
    let name = plain(name);
    entries(FAILURE_MEMBERS).any(|member| member == name)
}

fn any(members: &Object, names: &[&str], holds: impl Fn(&Json) -> bool) -> bool {
    members.iter().any(|(name, value)| names.contains(&plain(name).as_str()) && holds(value))
}

fn is_between(value: &Json, statuses: RangeInclusive<i64>) -> bool {
    value.as_number().and_then(Number::as_i64).is_some_and(|number| statuses.contains(&number))
}

/// Languages write the same member in their own ways.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::Bool(true) => false,
        Json::Number(_) => value.canonical() == "0",
        Json::String(text) => text.trim().is_empty(),
        Json::Array(items) => items.iter().all(is_empty),
        Json::Object(members) => members.iter().all(|(_, value)| is_empty(value)),
    }
}
