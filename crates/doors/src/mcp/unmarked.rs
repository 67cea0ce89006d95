//! Failures that a server reports as ordinary results: `{"error": "fetch failed"}`, `Error: connection lost`. Many
//! servers catch whatever goes wrong and answer with its words, without `isError`.
//!
//! A success may quote the word, so only an answer that says nothing else counts: a text that begins by saying so, or
//! an object that says so and has no member which could be a result.

use super::afterwards;
use super::classify::texts;
use super::members::Members;
use super::said_done;
use super::word;
use semel_core::json::{self, Json, Object};

/// How a text begins that is about a failure. `Failed to` is left out: what was not found may be what was asked for.
const BEGINNING: &str = "error:";

/// Members that describe a failure, in lower case and without `_` and `-`. One of another name may be a result.
const OF_A_FAILURE: &[&str] = &[
    "cause",
    "code",
    "correlationid",
    "detail",
    "details",
    "documentationurl",
    "error",
    "errorcode",
    "errordescription",
    "errorid",
    "errormessage",
    "errors",
    "errortype",
    "hint",
    "iserror",
    "message",
    "msg",
    "object",
    "ok",
    "path",
    "reason",
    "requestid",
    "retryable",
    "retryafter",
    "stack",
    "status",
    "statuscode",
    "statustext",
    "success",
    "suggestion",
    "timestamp",
    "traceback",
    "traceid",
    "type",
];

/// Members of them that tell in words how it went.
const IN_WORDS: &[&str] = &["message", "msg", "detail", "details", "statustext"];

/// Members of them that may be a status of HTTP.
const HTTP_STATUS: &[&str] = &["status", "statuscode", "code"];

/// What a state is called that is no failure, beside what [`afterwards`] knows.
const DONE: &[&str] = &[
    "ok",
    "success",
    "successful",
    "succeeded",
    "done",
    "complete",
    "partial",
    "accepted",
    "updated",
    "deleted",
];

/// What stands where a failure would, if there is none.
const NOTHING: &[&str] = &["", "0", "none", "null", "no error", "no errors", "ok", "success"];

/// What a state is called that is a failure.
const FAILED: &[&str] = &["error", "failed", "failure"];

/// What a result that is not marked says all the same.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    /// That it failed, in these words.
    Failure(String),
    /// That something failed, and something else beside it that may be a success.
    Both(String),
}

/// What it tells of a failure, if it is one. `arguments` are those of the call: many tools answer with what they
/// were given, and a title may begin in any way.
pub fn failure(result: &Members<'_>, arguments: &Json) -> Option<Told> {
    let told = of_what_counts(result, arguments)?;
    let says_more = |text: &Option<String>| match text {
        Some(text) => !text.trim().is_empty() && in_words(text, arguments).is_none(),
        None => true,
    };
    let beside = has_structure(result) && texts(result).iter().any(says_more);
    Some(match told {
        Told::Failure(words) if beside => Told::Both(words),
        told => told,
    })
}

/// The same of its structure, or else of its text.
fn of_what_counts(result: &Members<'_>, arguments: &Json) -> Option<Told> {
    let in_words = |text: &str| in_words(text, arguments);
    let said = word::value(result);
    // What is no JSON stands in an object of its own, and so may a tool's own object.
    let text = said.as_object().filter(|whole| whole.len() == 1).and(said.get("text")).and_then(Json::as_str);
    // The SDK of Python puts what is no object into one: a text, or the blocks of the content once more.
    let wrapped = said.as_object().filter(|whole| whole.len() == 1).and(said.get("result"));
    match (text, wrapped) {
        (Some(text), _) => alone(result).then(|| in_words(text)).flatten(),
        (None, Some(Json::String(text))) => in_words(text),
        (None, Some(Json::Array(blocks))) => match blocks.as_slice() {
            [block] => block.get("text").and_then(Json::as_str).and_then(in_words),
            _ => None,
        },
        (None, Some(inner)) => in_members(inner),
        (None, None) => (alone(result) || has_structure(result)).then(|| in_members(&said)).flatten(),
    }
}

/// Whether one text is all that there is: a picture or a second text may be the result.
fn alone(result: &Members<'_>) -> bool {
    matches!(texts(result).as_slice(), [Some(_)])
}

fn has_structure(result: &Members<'_>) -> bool {
    result.get("structuredContent").is_some_and(|structure| structure != "null")
}

fn in_words(text: &str, arguments: &Json) -> Option<Told> {
    let text = text.trim();
    if let Ok(inner @ Json::Object(_)) = json::parse(text) {
        return in_members(&inner);
    }
    let beginning = text.get(..BEGINNING.len())?;
    let failed = beginning.eq_ignore_ascii_case(BEGINNING) && !is_echo(text, arguments);
    failed.then(|| Told::Failure(text.to_owned()))
}

/// Whether the text is what the call was given: an argument, or the beginning of one. An argument with more behind it
/// is one too if it is a line by itself. Tools lay it out and escape it in their own ways.
fn is_echo(text: &str, given: &Json) -> bool {
    match given {
        Json::String(argument) => {
            let argument = laid_out(argument);
            argument.starts_with(&laid_out(text))
                || text.lines().next().is_some_and(|line| laid_out(line) == argument)
        }
        Json::Array(items) => items.iter().any(|item| is_echo(text, item)),
        Json::Object(members) => members.iter().any(|(_, value)| is_echo(text, value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

/// A text in one layout: its words one space apart, nothing escaped, and not saying that it goes on.
fn laid_out(text: &str) -> String {
    let cut = text.trim_end().trim_end_matches("...").trim_end_matches('\u{2026}');
    let mut one = cut.split_whitespace().collect::<Vec<_>>().join(" ");
    for (escaped, plain) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")] {
        one = one.replace(escaped, plain);
    }
    one
}

fn in_members(said: &Json) -> Option<Told> {
    let members = said.as_object()?;
    let about_it = |name: &str| OF_A_FAILURE.contains(&plain(name).as_str());
    let nothing_else = members.iter().all(|(name, value)| about_it(name) || is_empty(value));
    if !nothing_else || done(members) {
        return None;
    }
    match () {
        () if failed_as_a_whole(members) => Some(Told::Failure(said.canonical())),
        () if !any(members, &["error", "errors"], |value| !is_empty(value)) => None,
        () if may_say_done(members) => Some(Told::Both(said.canonical())),
        () => Some(Told::Failure(said.canonical())),
    }
}

/// Languages write the same member in their own ways.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect()
}

fn any(members: &Object, names: &[&str], holds: impl Fn(&Json) -> bool) -> bool {
    members.iter().any(|(name, value)| names.contains(&plain(name).as_str()) && holds(value))
}

fn is(value: &Json, words: &[&str]) -> bool {
    value.as_str().is_some_and(|said| words.iter().any(|word| said.eq_ignore_ascii_case(word)))
}

/// Whether it says so of itself, and not only of a part.
fn failed_as_a_whole(members: &Object) -> bool {
    any(members, &["object"], |value| is(value, &["error"]))
        || any(members, &["status"], |value| is(value, FAILED))
        || any(members, &["ok", "success"], |value| value.as_bool() == Some(false))
        || any(members, &["error", "errors"], |value| !is_empty(value))
            && any(members, HTTP_STATUS, |value| matches!(http_status(value), Some(400..=599)))
}

/// Whether a word of how it went may mean that it was done: in another language, say.
fn may_say_done(members: &Object) -> bool {
    let is_open = |value: &Json| {
        value.as_str().is_some_and(|said| !is_empty(value) && !afterwards::says_that_it_was_not_done(said))
    };
    any(members, IN_WORDS, is_open) || any(members, &["status", "result"], is_open)
}

/// Whether it says in any way that it was done, with a fault in one part.
fn done(members: &Object) -> bool {
    let is_one = |value: &Json| matches!(value, Json::Number(_)) && value.canonical() == "1";
    let says_yes = |value: &Json| {
        value.as_bool() == Some(true) || is(value, &["true", "yes", "ok", "1"]) || is_one(value)
    };
    let says_so = |value: &Json| value.as_str().is_some_and(said_done::is_said);
    any(members, &["ok", "success"], says_yes)
        || any(members, &["status", "result", "code", "type"], |value| is(value, DONE) || says_so(value))
        || any(members, HTTP_STATUS, |value| matches!(http_status(value), Some(200..=299)))
        || any(members, IN_WORDS, says_so)
}

/// `200`, `"201 Created"`, `"HTTP 204"`.
fn http_status(value: &Json) -> Option<u16> {
    let written = match value {
        Json::Number(_) => value.canonical(),
        Json::String(text) => {
            let text = text.strip_prefix("HTTP").unwrap_or(text);
            text.split_whitespace().next().unwrap_or_default().to_owned()
        }
        _ => return None,
    };
    written.parse().ok().filter(|status| (100..=599).contains(status))
}

/// Whether a member says no more than that there is nothing to say.
fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::String(text) => NOTHING.iter().any(|word| text.trim().eq_ignore_ascii_case(word)),
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.iter().all(|(_, value)| is_empty(value)),
        Json::Number(_) => value.canonical() == "0",
        Json::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(result: &str) -> bool {
        failure(&Members::parse(result).expect("an object"), &Json::Null).is_some()
    }

    fn says(text: &str) -> String {
        format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, super::super::members::quoted(text))
    }

    #[test]
    fn what_says_only_that_it_failed_has_failed() {
        for text in [
            "Error: connection lost",
            "  ERROR: no\n",
            r#"{"error": "fetch failed"}"#,
            r#"{"error": {"type": "API_ERROR"}, "status": 502, "request_id": "r"}"#,
            r#"{"object": "error", "status": 404, "message": "Could not find page"}"#,
            r#"{"success": false, "message": "no", "data": null}"#,
            r#"{"ok": false}"#,
            r#"{"status": "error", "message": "no"}"#,
            r#"{"status": 404, "message": "The issue was not created", "error": "not found"}"#,
            r#"{"message": "0 of 3 mails sent", "error": "invalid address"}"#,
            r#"{"code": 20001, "error": "invalid parameter"}"#,
            r#"{"errors": [{"message": "no"}], "data": null}"#,
            r#""Error: no""#,
            r#"{"Error": "no"}"#,
            r#"{"ERROR": {"Message": "no"}}"#,
            r#"{"status": "failed"}"#,
            r#"{"Status": "Failed", "Reason": "no", "Data": null}"#,
            r#"{"OK": false}"#,
        ] {
            assert!(fails(&says(text)), "{text}");
            let quoted = super::super::members::quoted(text);
            let by_python = format!(r#"{{"content":[],"structuredContent":{{"result":{quoted}}}}}"#);
            assert!(fails(&by_python) || text.starts_with('"'), "{text}");
        }
        assert!(fails(r#"{"content":[{"type":"text","text":{"error":{"message":"no"}}}]}"#));
        assert!(fails(r#"{"content":[],"structuredContent":{"error":"no"}}"#));
        assert!(fails(r#"{"content":[],"structuredContent":{"status":"failed"}}"#));
        assert!(fails(r#"{"content":[],"structuredContent":{"result":{"error":"no"}}}"#));
        assert!(fails(
            r#"{"content":[],"structuredContent":{"result":[{"type":"text","text":"Error: no"}]}}"#
        ));
    }

    #[test]
    fn what_quotes_the_word_or_has_a_result_beside_it_has_not() {
        for text in [
            "",
            "Error",
            "Error handling was added",
            "Done. Error: none",
            "Failed to find a cached copy; made a new one",
            r#"{"id": "t1", "title": "Error: fetch failed"}"#,
            r#"{"id": "t1", "error": "no avatar"}"#,
            r#"{"error": null, "message": "sent"}"#,
            r#"{"error": "", "code": 0}"#,
            r#"{"error": false}"#,
            r#"{"errors": [], "message": "sent"}"#,
            r#"{"errors": [{"message": "no"}], "data": {"issue": {"id": "i"}}}"#,
            r#"{"status": "ok"}"#,
            r#"{"id": "j1", "status": "error"}"#,
            r#"{"success": true}"#,
            r#"{"success": true, "message": "Sent to 2 of 3", "errors": ["invalid address: foo@"]}"#,
            r#"{"message": "Issue created", "errors": ["label not found"]}"#,
            r#"{"error": "label not found", "message": "Created"}"#,
            r#"{"status": 200, "message": "Mail is on its way", "errors": ["invalid tag ignored"]}"#,
            r#"{"statusCode": "201 Created", "errors": ["invalid cc ignored"]}"#,
            r#"{"code": 200, "errors": ["invalid cc"]}"#,
            r#"{"status": "delivered", "errors": ["cc not found"]}"#,
            r#"{"status": "complete", "errors": ["not found: 1 cc"]}"#,
            r#"{"success": "true", "errors": ["invalid cc"]}"#,
            r#"{"ok": 1, "error": "invalid"}"#,
            r#"{"ok": "ok", "error": "invalid"}"#,
            r#"{"code": "SUCCESS", "error": "invalid cc"}"#,
            r#"{"type": "success", "errors": ["invalid cc"]}"#,
            r#"{"status": "HTTP 200", "error": "invalid cc"}"#,
            r#"{"type": "mail", "message": "Queued", "errors": [{"detail": "cc denied"}]}"#,
            r#"{"status": "success", "errors": [{"message": "invalid tag ignored"}]}"#,
            r#"{"error": 0, "message": "Success"}"#,
            r#"{"ok": true, "errors": 0}"#,
            r#"{"success": true, "error": "No error"}"#,
            r#"{"code": "0", "error": {"code": 0, "message": "OK"}}"#,
            r#"{"message": "error"}"#,
            r#"{"id": "j1", "status": "failed"}"#,
            r#"{"Error": ""}"#,
            r#"{"Success": true, "Error": "one of 3 was left out"}"#,
            r#"{"status": "failed", "ok": true}"#,
            r#"[{"error": "no"}]"#,
            r#"[]"#,
        ] {
            assert!(!fails(&says(text)), "{text}");
        }
        assert!(!fails(r#"{"content":[{"type":"text","text":"Error: 1"},{"type":"text","text":"made"}]}"#));
        assert!(!fails(r#"{"content":[{"type":"text","text":"Error: 1"},{"type":"image","data":""}]}"#));
        let structure = r#"{"content":[{"type":"text","text":"Error: 1"}],"structuredContent":{"id":"t1"}}"#;
        assert!(!fails(structure), "what has a structure is judged by it");
        assert!(!fails(
            r#"{"content":[],"structuredContent":{"result":[{"text":"Error: 1"},{"text":"made"}]}}"#
        ));
        assert!(!fails(r#"{"content":[]}"#));
    }

    /// Nobody can read every language; what speaks of an error and of something else is left open.
    #[test]
    fn a_word_of_how_it_went_that_cannot_be_read_leaves_it_open() {
        let told = |text: &str| failure(&Members::parse(&says(text)).expect("an object"), &Json::Null);
        for text in [
            r#"{"message": "Nachricht gesendet", "error": "invalid cc"}"#,
            r#"{"message": "\u9001\u4fe1\u3057\u307e\u3057\u305f", "errors": ["invalid cc"]}"#,
            r#"{"detail": "Invoice 12 drawn up", "error": "invalid cc"}"#,
            r#"{"status": "partial_success", "error": "invalid cc"}"#,
        ] {
            assert!(matches!(told(text), Some(Told::Both(_))), "{text}");
        }
        for text in [
            r#"{"message": "Nachricht nicht gesendet", "error": "invalid cc", "success": false}"#,
            r#"{"message": "title should be longer", "error": "Bad Request", "statusCode": 400}"#,
            r#"{"message": "Could not find page", "error": "not found"}"#,
            r#"{"message": "Token expired", "error": "unauthorized"}"#,
            r#"{"message": "Access denied", "error": "forbidden", "code": "E7"}"#,
            r#"{"message": "Rate limit exceeded", "error": "too many requests"}"#,
        ] {
            assert!(matches!(told(text), Some(Told::Failure(_))), "{text}");
        }
    }

    #[test]
    fn a_structure_that_failed_beside_something_else_says_both() {
        let told = |content: &str| {
            let result =
                format!(r#"{{"content":[{content}],"structuredContent":{{"error":"label not found"}}}}"#);
            failure(&Members::parse(&result).expect("an object"), &Json::Null).expect("its structure failed")
        };
        let words = || r#"{"error":"label not found"}"#.to_owned();
        let json = super::super::members::quoted(&words());
        for alone in ["", r#"{"type":"text","text":""}"#, r#"{"type":"text","text":"Error: no"}"#] {
            assert_eq!(told(alone), Told::Failure(words()), "{alone}");
        }
        assert_eq!(told(&format!(r#"{{"type":"text","text":{json}}}"#)), Told::Failure(words()));
        for more in [
            r#"{"type":"text","text":"Created issue 1"}"#,
            r#"{"type":"resource_link","uri":"issue://1","name":"issue"}"#,
            r#"{"type":"text","text":"Error: no"},{"type":"image","data":""}"#,
        ] {
            assert_eq!(told(more), Told::Both(words()), "{more}");
        }
    }

    #[test]
    fn what_the_call_was_given_may_come_back() {
        let given = |text: &str, arguments: &str| {
            let arguments = json::parse(arguments).expect("JSON");
            failure(&Members::parse(&says(text)).expect("an object"), &arguments).is_some()
        };
        let title = r#"{"args":{"issue":{"title":"Error: login fails with 502"},"labels":["bug"]}}"#;
        assert!(!given("Error: login fails with 502", title));
        assert!(!given("Error: login fails", title), "it was made shorter");
        assert!(!given("Error: login fails with 502\nhttps://issues.example/12", title));
        assert!(!given("Error: login  fails\twith 502", title), "it was laid out anew");
        assert!(!given("Error: login fails\u{2026}", title), "it was cut");
        assert!(!given("Error: &quot;a&quot; &amp; b", r#"{"args":{"title":"Error: \"a\" & b"}}"#));
        assert!(!given("Error: one", r#"{"args":{"titles":["Error: one","two"]}}"#));
        assert!(given("Error: login fails with 502 while saving", title), "it says more in the same breath");
        assert!(given("Error: connection lost", title));
        assert!(given("Error: connection lost", r#"{"args":{"body":"It says Error: connection lost"}}"#));
        assert!(given("Error: connection lost", r#"{"args":{"title":"Error:"}}"#));
        assert!(given("Error: 500", r#"{"args":{"title":"Error 500 when saving a draft"}}"#));
        assert!(given("Error:\nconnection refused", r#"{"args":{"level":"Error"}}"#));
        assert!(given(r#"{"error": "no"}"#, r#"{"args":{"error":"no"}}"#));
    }
}
