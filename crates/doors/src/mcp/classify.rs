//! The meaning of a server's answer to `tools/call`: one table, and which line of it applied.

use super::message::{Message, text};
use super::result::{READ_BYTES_MAX, ends, structure, texts, value, words};
use crate::wire::members::{Members, NotMembers};
use semel_core::json::{self, Json};
use semel_core::judgement::error_text::{self, ErrorReading};
use semel_core::judgement::failure::{FailureMeaning, weigh};
use semel_core::policy::graphql;
use semel_core::policy::rule::{Failure, Rule, Unmarked};
use serde_json::value::RawValue;

/// The reading of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerReading {
    pub meaning: AnswerMeaning,
    /// The line of the table, in words.
    pub line: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerMeaning {
    Succeeded,
    /// The server took it, and has not done it yet.
    Accepted,
    Refused,
    /// The tool says that it failed, and nothing says that it must happen only once.
    Reported,
    Ambiguous,
    /// The server asks the client something first (2026-07-28).
    AwaitingInput,
    /// The server works on it, under this handle.
    Task(TaskHandle),
}

/// Where a task is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskHandle {
    pub id: String,
    pub poll_every_ms: Option<u64>,
    /// How long the server keeps the task.
    pub lives_ms: Option<u64>,
    pub era: TaskEra,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEra {
    /// 2025-11-25: the result is asked for with `tasks/result`.
    Result,
    /// 2026-07-28: the result comes with `tasks/get`.
    Inline,
}

/// Words by which a status says that the work is still to be done.
const ACCEPTED: &[&str] = &["queued", "accepted", "pending", "processing", "scheduled", "in_progress"];

/// JSON-RPC codes with which a request is turned away before any tool runs.
const TURNED_AWAY: &[i64] = &[-32700, -32600, -32601, -32602, -32020, -32021, -32022];

/// 2025-11-25: an address must be visited first, then the call is made again.
const URL_ELICITATION: i64 = -32042;

/// How an answer is read.
#[derive(Debug, Clone, Copy)]
pub struct ReadContext<'a> {
    pub rule: &'a Rule,
    pub must_happen_once: bool,
    pub asked_for_task: bool,
}

pub fn read(answer: &Message, by: ReadContext<'_>) -> AnswerReading {
    let body = answer.body.as_ref().map_or("null", text);
    match &answer.kind {
        super::message::MessageKind::Response { failed: true, .. } => error(body, by),
        _ => result(body, by),
    }
}

fn reading(meaning: AnswerMeaning, line: impl Into<String>) -> AnswerReading {
    AnswerReading { meaning, line: line.into() }
}

fn error(body: &str, by: ReadContext<'_>) -> AnswerReading {
    let members = Members::parse(body).unwrap_or_default();
    let code: Option<i64> = members.get("code").and_then(|code| code.parse().ok());
    let message = ends(members.text("message").unwrap_or_default().into_owned());
    if code == Some(URL_ELICITATION) {
        return reading(AnswerMeaning::AwaitingInput, "the server first wants a web page to be visited");
    }
    let turned_away = code.filter(|code| TURNED_AWAY.contains(code));
    // The protocol has details of its own there.
    let data = members.get("data").filter(|data| turned_away.is_none() && data.len() <= READ_BYTES_MAX);
    let data = data.and_then(|data| json::parse(data).ok()).as_ref().map(error_text::read_value);
    let says = error_text::read(&message).and(data.unwrap_or(ErrorReading::Nothing));
    failed(&message, says, turned_away, by)
}

fn result(body: &str, by: ReadContext<'_>) -> AnswerReading {
    let rule = by.rule;
    let members = match Members::read(body) {
        Ok(members) => members,
        Err(NotMembers::NotAnObject) => {
            return reading(AnswerMeaning::Ambiguous, "the result is not an object");
        }
        Err(NotMembers::Twice(name)) => {
            let line = format!("the result is ambiguous: {:?} is named twice", short(&name));
            return reading(AnswerMeaning::Ambiguous, line);
        }
    };
    match members.text("resultType").as_deref() {
        None | Some("complete") => {}
        Some("input_required") => {
            return reading(AnswerMeaning::AwaitingInput, "the server asks for input first");
        }
        Some("task") => {
            return match handle(&members, TaskEra::Inline) {
                Some(handle) => reading(AnswerMeaning::Task(handle), "the server works on it as a task"),
                None => reading(AnswerMeaning::Ambiguous, "the server named a task without an id"),
            };
        }
        Some(other) => {
            return reading(AnswerMeaning::Ambiguous, format!("the result is of an unknown type, {other}"));
        }
    }
    if by.asked_for_task
        && let Some(handle) = handle(&members.object("task"), TaskEra::Result)
    {
        return reading(AnswerMeaning::Task(handle), "the server works on it as a task");
    }
    if members.is_true("isError") {
        return failed(&words(&members), said(&members), None, by);
    }
    if members.get("content").is_none() && members.get("structuredContent").is_none() {
        return reading(AnswerMeaning::Ambiguous, "the result has no content");
    }
    match rule.refuses(&graphql::GraphqlRequest::Unknown, || value(&members)) {
        Ok(false) => {}
        Ok(true) if rule.failure == Failure::InDoubt => return ambiguous_by_rule(&words(&members)),
        Ok(true) => return reading(AnswerMeaning::Refused, short(&words(&members))),
        Err(error) => {
            let line =
                format!("an answer that leaves open whether it ran: {} ({error})", short(&words(&members)));
            return reading(AnswerMeaning::Ambiguous, line);
        }
    }
    if rule.unmarked == Unmarked::Read && is_unmarked_failure(&members) {
        return failed(&words(&members), said(&members), None, by);
    }
    match status(&members) {
        Some(status) if ACCEPTED.contains(&status.as_str()) => {
            reading(AnswerMeaning::Accepted, format!("the status is {status}"))
        }
        _ => reading(AnswerMeaning::Succeeded, "a result without isError"),
    }
}

/// Whether a result that is not marked is nothing but an error: one block that begins with `Error:`, or an object that
/// only tells of a failure. A success may quote the word, and what has anything else in it is one.
fn is_unmarked_failure(result: &Members<'_>) -> bool {
    let structure = structure(result);
    match (&structure, texts(result).as_slice()) {
        (Some(structure), _) if wrapped(structure).is_none() => error_text::is_failure(structure),
        (_, [Some(text)]) => {
            let begins = text.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("error:"));
            begins || json::parse(text.trim()).is_ok_and(|value| error_text::is_failure(&value))
        }
        (Some(structure), _) => wrapped(structure).is_some_and(error_text::is_failure),
        (None, _) => false,
    }
}

/// The SDK of Python wraps what is no object.
fn wrapped(structure: &Json) -> Option<&Json> {
    structure.as_object().filter(|members| members.len() == 1)?.get("result")
}

fn of_structure(structure: &Json) -> ErrorReading {
    let of_block = |block: &Json| match block.get("text").and_then(Json::as_str) {
        Some(text) => error_text::read(text),
        None => error_text::read_value(block),
    };
    match wrapped(structure) {
        Some(Json::String(text)) => error_text::read(text),
        Some(Json::Array(blocks)) => {
            blocks.iter().map(of_block).fold(ErrorReading::Nothing, ErrorReading::and)
        }
        inner => error_text::read_value(inner.unwrap_or(structure)),
    }
}

/// An error: the rule decides, then its form, then its words and what stands beside them, then the class.
fn failed(words: &str, says: ErrorReading, turned_away: Option<i64>, by: ReadContext<'_>) -> AnswerReading {
    if by.rule.failure == Failure::InDoubt {
        return ambiguous_by_rule(words);
    }
    if error_text::is_about_arguments(words) {
        return reading(AnswerMeaning::Refused, short(words));
    }
    match (weigh(&says, by.must_happen_once), says, turned_away) {
        (_, ErrorReading::Lost(phrase) | ErrorReading::Done(phrase), _) => {
            let line = format!("an error that says \"{}\": {}", short(&phrase), short(words));
            reading(AnswerMeaning::Ambiguous, line)
        }
        (_, _, Some(code)) => reading(AnswerMeaning::Refused, format!("error {code}: {}", short(words))),
        (FailureMeaning::Refused, ..) => reading(AnswerMeaning::Refused, short(words)),
        (FailureMeaning::Reported, ..) => reading(AnswerMeaning::Reported, short(words)),
        (FailureMeaning::InDoubt, ..) => {
            let line = format!("an error that leaves open whether it ran: {}", short(words));
            reading(AnswerMeaning::Ambiguous, line)
        }
    }
}

/// The words of an error, all parts together: its texts, resources that it shows or links to, and its structure.
fn said(result: &Members<'_>) -> ErrorReading {
    #[derive(serde::Deserialize)]
    struct ContentBlock<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<&'a RawValue>,
        #[serde(borrow)]
        resource: Option<&'a RawValue>,
    }
    let blocks: Vec<ContentBlock<'_>> =
        serde_json::from_str(result.get("content").unwrap_or("[]")).unwrap_or_default();
    let of_block = |block: &ContentBlock<'_>| match block.kind.map(RawValue::get) {
        Some("\"resource_link\"") => Some(ErrorReading::Done("a link".to_owned())),
        Some("\"resource\"") => {
            let resource = Members::parse(block.resource?.get())?;
            Some(error_text::read(&ends(resource.text("text")?.into_owned())))
        }
        _ => None,
    };
    let structure = match result.get("structuredContent") {
        Some(large) if large.len() > READ_BYTES_MAX => {
            Some(ErrorReading::Done("too large to be read".to_owned()))
        }
        _ => structure(result).as_ref().map(of_structure),
    };
    let texts = texts(result).into_iter().flatten().map(|text| error_text::read(&ends(text)));
    texts
        .chain(blocks.iter().filter_map(of_block))
        .chain(structure)
        .fold(ErrorReading::Nothing, ErrorReading::and)
}

fn ambiguous_by_rule(words: &str) -> AnswerReading {
    let line = format!("an error, and its rule makes every failure a doubt: {}", short(words));
    reading(AnswerMeaning::Ambiguous, line)
}

/// One line for people.
fn short(words: &str) -> String {
    const CHARS_MAX: usize = 200;
    let line: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(CHARS_MAX).collect();
    line.trim().to_owned()
}

/// The task that a result is the handle of.
pub fn task_in(result: &str) -> Option<String> {
    handle_in(result).map(|handle| handle.id)
}

pub fn handle_in(result: &str) -> Option<TaskHandle> {
    let members = Members::parse(result)?;
    let inline = members.text("resultType").is_some_and(|kind| kind == "task");
    match inline {
        true => handle(&members, TaskEra::Inline),
        false => handle(&members.object("task"), TaskEra::Result),
    }
}

fn handle(members: &Members<'_>, era: TaskEra) -> Option<TaskHandle> {
    let number = |names: [&str; 2]| names.iter().find_map(|name| members.get(name)?.parse::<f64>().ok());
    let millis = |value: f64| (value.is_finite() && value >= 0.0).then_some(value as u64);
    Some(TaskHandle {
        id: members.text("taskId")?.into_owned(),
        poll_every_ms: number(["pollIntervalMs", "pollInterval"]).and_then(millis),
        lives_ms: number(["ttlMs", "ttl"]).and_then(millis),
        era,
    })
}

/// The `status` of a result.
fn status(result: &Members<'_>) -> Option<String> {
    let structured = result.object("structuredContent");
    match structured.text("status") {
        Some(status) => Some(status.to_lowercase()),
        None => {
            let words = words(result);
            let own = Members::parse(words.trim())?;
            own.text("status").map(|status| status.to_lowercase())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use semel_core::class::Class;
    use semel_core::policy::{ActionFacts, Policy};
    use std::sync::Arc;

    fn rule(class: Class) -> Arc<Rule> {
        let facts = ActionFacts { class_override: Some(class), ..ActionFacts::new("mcp:s/t", &Json::Null) };
        Policy::default().rule_for(&facts)
    }

    fn by(rule: &Rule) -> ReadContext<'_> {
        ReadContext { rule, must_happen_once: rule.class == Class::Consequential, asked_for_task: true }
    }

    fn meaning(body: &str, class: Class) -> AnswerMeaning {
        let message = Message::parse(Bytes::from(format!(r#"{{"id":1,{body}}}"#))).unwrap();
        read(&message, by(&rule(class))).meaning
    }

    fn tool_error(words: &str) -> String {
        format!(r#""result":{{"isError":true,"content":[{{"type":"text","text":"{words}"}}]}}"#)
    }

    fn rpc_error(code: i64, message: &str) -> String {
        format!(r#""error":{{"code":{code},"message":"{message}"}}"#)
    }

    /// Wherever the cuts fall.
    #[test]
    fn of_a_large_error_both_ends_are_read() {
        for pad in ["x", "\u{e4}", "\\n", "\\u00e4", "\\ud83d\\ude00", "\\\\"] {
            for shift in 0..pad.len() {
                let pad = format!("{}{}", "y".repeat(shift), pad.repeat((2 << 20) / pad.len()));
                let of = |words: String| meaning(&tool_error(&words), Class::Consequential);
                assert_eq!(of(format!("title invalid {pad}")), AnswerMeaning::Refused);
                assert_eq!(of(format!("{pad} title invalid")), AnswerMeaning::Refused);
                assert_eq!(of(format!("order created; {pad}; title invalid")), AnswerMeaning::Ambiguous);
                assert_eq!(of(format!("title invalid; {pad}; order created")), AnswerMeaning::Ambiguous);
            }
        }
    }

    #[test]
    fn of_a_large_result_of_many_blocks_the_outer_ones_are_read() {
        let block = |words: &str| format!(r#"{{"type":"text","text":"{words}"}}"#);
        let many = vec![block(&"x".repeat(1000)); 2000].join(",");
        let result = format!(r#""result":{{"isError":true,"content":[{many},{}]}}"#, block("order created"));
        assert_eq!(meaning(&result, Class::Act), AnswerMeaning::Ambiguous);
    }

    #[test]
    fn results_are_successes_unless_they_say_otherwise() {
        let of = |result: &str| meaning(&format!(r#""result":{result}"#), Class::Act);
        assert_eq!(of(r#"{"content":[]}"#), AnswerMeaning::Succeeded);
        assert_eq!(
            of(r#"{"resultType":"complete","content":[{"type":"text","text":"failed to find"}]}"#),
            AnswerMeaning::Succeeded
        );
        assert_eq!(of(r#"{"resultType":"input_required","inputRequests":{}}"#), AnswerMeaning::AwaitingInput);
        assert_eq!(of(r#"{"resultType":"dream"}"#), AnswerMeaning::Ambiguous);
        assert_eq!(of("7"), AnswerMeaning::Ambiguous);
        assert_eq!(of("{}"), AnswerMeaning::Ambiguous);
        assert_eq!(of(r#"{"structuredContent":{"status":"Queued"},"content":[]}"#), AnswerMeaning::Accepted);
        assert_eq!(
            of(r#"{"content":[{"type":"text","text":"{\"status\":\"pending\"}"}]}"#),
            AnswerMeaning::Accepted
        );
    }

    #[test]
    fn a_success_that_refuses_in_its_body_is_read_as_the_rule_says() {
        let of = |failure: &str, words: &str| {
            let text = format!(
                "[[rule]]\nmatch = \"mcp:s/t\"\nclass = \"consequential\"\nfailure = \"{failure}\"\n\
                 refused = \"reply.ok ? false : reply.error == 'internal_error' ? reply.unclear : true\"\n"
            );
            let file = semel_core::policy::PolicyFile { path: "semel.toml".into(), text };
            let rule = Policy::load(vec![file]).unwrap().rule_for(&ActionFacts::new("mcp:s/t", &Json::Null));
            let body = format!(r#""result":{{"content":[{{"type":"text","text":{words:?}}}]}}"#);
            let message = Message::parse(Bytes::from(format!(r#"{{"id":1,{body}}}"#))).unwrap();
            read(&message, by(&rule)).meaning
        };
        assert_eq!(of("table", r#"{"ok": true}"#), AnswerMeaning::Succeeded);
        assert_eq!(of("table", r#"{"ok": false, "error": "channel_not_found"}"#), AnswerMeaning::Refused);
        assert_eq!(of("table", r#"{"ok": false, "error": "internal_error"}"#), AnswerMeaning::Ambiguous);
        assert_eq!(of("table", "<html>"), AnswerMeaning::Ambiguous);
        assert_eq!(
            of("in_doubt", r#"{"ok": false, "error": "channel_not_found"}"#),
            AnswerMeaning::Ambiguous
        );
        assert_eq!(of("in_doubt", r#"{"ok": true}"#), AnswerMeaning::Succeeded);
    }

    /// What the words say is the matter of `error_text`; here, that they are asked, and the class after them.
    #[test]
    fn an_error_is_read_by_its_words_and_then_by_what_is_at_stake() {
        for (words, act, consequential) in [
            ("Invalid amount", AnswerMeaning::Refused, AnswerMeaning::Refused),
            ("Label invalid; issue created", AnswerMeaning::Ambiguous, AnswerMeaning::Ambiguous),
            ("Request timed out", AnswerMeaning::Ambiguous, AnswerMeaning::Ambiguous),
            ("oops", AnswerMeaning::Reported, AnswerMeaning::Ambiguous),
            ("An unexpected error occurred", AnswerMeaning::Reported, AnswerMeaning::Ambiguous),
            (
                "Input validation error: 'Invoice sent' is too long",
                AnswerMeaning::Refused,
                AnswerMeaning::Refused,
            ),
        ] {
            for error in [tool_error(words), rpc_error(-32603, words)] {
                assert_eq!(meaning(&error, Class::Act), act, "{words}");
                assert_eq!(meaning(&error, Class::Consequential), consequential, "{words}");
            }
        }
    }

    #[test]
    fn a_code_turns_away_unless_the_words_say_that_something_was_done() {
        for class in [Class::Act, Class::Consequential] {
            for (message, means) in [
                ("oops", AnswerMeaning::Refused),
                ("Tool not found", AnswerMeaning::Refused),
                ("Email was sent, but its folder was not found", AnswerMeaning::Ambiguous),
                ("Request timed out", AnswerMeaning::Ambiguous),
            ] {
                assert_eq!(meaning(&rpc_error(-32602, message), class), means, "{message}");
            }
        }
    }

    #[test]
    fn what_stands_beside_the_text_is_read_too() {
        let of = |rest: &str| meaning(&format!(r#""result":{{"isError":true,{rest}}}"#), Class::Act);
        let refused = r#"{"type":"text","text":"Label not found"}"#;
        for doubtful in [
            format!(r#""content":[{{"type":"text","text":"Issue created"}},{refused}]"#),
            format!(r#""content":[{refused},{{"type":"text","text":"{{\"id\":12}}"}}]"#),
            format!(r#""content":[{refused}],"structuredContent":{{"issue":{{"id":12}}}}"#),
            format!(r#""content":[{refused},{{"type":"resource","resource":{{"text":"Issue created"}}}}]"#),
            format!(r#""content":[{refused},{{"type":"resource_link","uri":"https://x/12"}}]"#),
        ] {
            assert_eq!(of(&doubtful), AnswerMeaning::Ambiguous, "{doubtful}");
        }
        for plain in [
            format!(r#""content":[{refused}],"structuredContent":{{"error":"label not found"}}"#),
            format!(r#""content":[{refused}],"structuredContent":{{"created":false,"id":null}}"#),
            format!(r#""content":[{refused},{{"type":"image","data":""}}],"structuredContent":null"#),
        ] {
            assert_eq!(of(&plain), AnswerMeaning::Refused, "{plain}");
        }
        let error = |code: i64| {
            let error =
                format!(r#""error":{{"code":{code},"message":"not found","data":{{"created":[12]}}}}"#);
            meaning(&error, Class::Act)
        };
        assert_eq!((error(-32603), error(-32602)), (AnswerMeaning::Ambiguous, AnswerMeaning::Refused));
    }

    #[test]
    fn a_result_that_is_nothing_but_an_error_is_one() {
        let of = |rest: &str| meaning(&format!(r#""result":{{{rest}}}"#), Class::Consequential);
        let text =
            |text: &str| format!(r#""content":[{{"type":"text","text":{}}}]"#, Json::str(text).canonical());
        for (words, means) in [
            ("Error: connection lost", AnswerMeaning::Ambiguous),
            ("error: invalid title", AnswerMeaning::Refused),
            (r#"{"error": "label not found"}"#, AnswerMeaning::Refused),
            (r#"{"error": "oops"}"#, AnswerMeaning::Ambiguous),
            (r#"{"message": "Issue created", "errors": ["label not found"]}"#, AnswerMeaning::Ambiguous),
            ("Done. Error: none", AnswerMeaning::Succeeded),
            ("Error handling was added", AnswerMeaning::Succeeded),
            (r#"{"id": "t1", "error": "no avatar"}"#, AnswerMeaning::Succeeded),
            (r#"{"success": true, "errors": ["invalid cc"]}"#, AnswerMeaning::Succeeded),
        ] {
            assert_eq!(of(&text(words)), means, "{words}");
        }
        let error = text("Error: not found");
        let wrapped = |inner: &str| format!(r#"{error},"structuredContent":{{"result":{inner}}}"#);
        assert_eq!(of(&wrapped(r#"[{"type":"text","text":"Error: not found"}]"#)), AnswerMeaning::Refused);
        assert_eq!(of(&wrapped(r#"[{"type":"text","text":"created"}]"#)), AnswerMeaning::Ambiguous);
        assert_eq!(of(&wrapped(r#""Error: not found""#)), AnswerMeaning::Refused);
        assert_eq!(of(&format!(r#"{error},"structuredContent":{{"id":1}}"#)), AnswerMeaning::Succeeded);
        assert_eq!(of(r#""content":[],"structuredContent":{"error":"not found"}"#), AnswerMeaning::Refused);
        let created = text("Created issue 1");
        let both = format!(r#"{created},"structuredContent":{{"error":"label not found"}}"#);
        assert_eq!(of(&both), AnswerMeaning::Ambiguous);
    }

    #[test]
    fn a_rule_can_read_every_failure_as_ambiguous() {
        let strict = Rule { failure: Failure::InDoubt, ..Arc::unwrap_or_clone(rule(Class::Act)) };
        let message =
            Message::parse(Bytes::from(format!(r#"{{"id":1,{}}}"#, tool_error("invalid")))).unwrap();
        assert_eq!(read(&message, by(&strict)).meaning, AnswerMeaning::Ambiguous);
    }

    #[test]
    fn task_handles_of_both_eras_are_seen() {
        let legacy =
            meaning(r#""result":{"task":{"taskId":"t","ttl":60000,"pollInterval":500}}"#, Class::Act);
        let handle = TaskHandle {
            id: "t".into(),
            poll_every_ms: Some(500),
            lives_ms: Some(60000),
            era: TaskEra::Result,
        };
        assert_eq!(legacy, AnswerMeaning::Task(handle.clone()));
        let modern = meaning(
            r#""result":{"resultType":"task","taskId":"t","ttlMs":60000,"pollIntervalMs":500}"#,
            Class::Act,
        );
        assert_eq!(modern, AnswerMeaning::Task(TaskHandle { era: TaskEra::Inline, ..handle }));
    }
}
