//! What a server's answer to `tools/call` means: one table, and which line of it applied.

use super::afterwards;
use super::members::{Members, NotMembers};
use super::message::{Message, text};
use super::said_done::Asked;
use super::spoken::Spoken;
use super::unmarked::{self, Told};
use semel_core::breakdown;
use semel_core::class::Class;
use semel_core::policy::graphql;
use semel_core::policy::rule::{Failure, Rule, Unmarked};

/// The reading of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub meaning: Meaning,
    /// The line of the table, in words.
    pub line: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    Succeeded,
    /// The server took it, and has not done it yet.
    Accepted,
    Refused,
    Ambiguous,
    /// The server asks the client something first (2026-07-28).
    AwaitingInput,
    /// The server works on it, under this handle.
    Task(Handle),
}

/// Where a task is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
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

/// How tools tell of an answer that was lost on the way, beside what everybody says: without colons and brackets.
const LOST_BY_A_TOOL: &[&str] = &[
    // The reference server for GitHub, of an answer that has no message: a gateway's page.
    "github api error  github api error",
    // Go, of a request: `Post "https://…": EOF`.
    "\"  eof",
];

/// Codes of HTTP by which a server says that it failed.
const SERVER_FAILED: &[&str] = &["500", "502", "503", "504"];

/// Words of refusal: whoever says them has looked at the request and not carried it out.
const REFUSED: &[&str] = &[
    "invalid",
    "not found",
    "no permission",
    "have permission",
    "insufficient permission",
    "missing permission",
    "is required",
    "are required",
    "field required",
    "required field",
    "required parameter",
    "required argument",
    "required property",
    "missing required",
    "missing parameter",
    "missing argument",
    "missing field",
    "is missing",
    "unknown tool",
    "unknown argument",
    "unknown parameter",
    "unknown field",
    "unknown option",
    "unknown property",
    "unknown method",
    "unknown action",
    "unknown recipient",
    "unknown customer",
    "unknown account",
    "unknown user",
    "unknown channel",
    "expected a",
    "expected type",
    "has expired",
    "is expired",
    "is disabled",
    "denied",
    "declined",
    "rate limit",
    "ratelimit",
    "too many requests",
    "unauthorized",
    "unauthorised",
    "not authenticated",
    "authentication required",
    "authentication failed",
    "bad credentials",
    "forbidden",
    "not allowed",
    "not permitted",
    "must be",
    "must not",
    "does not exist",
    "doesn't exist",
    "no such",
    "unsupported",
    "not supported",
    "bad request",
    "validation",
    "already exists",
    "insufficient",
    "malformed",
    "quota",
    "not a valid",
    "cannot be empty",
    "out of range",
    "unprocessable",
    "refused to",
    "rejected",
    "enoent",
    "eacces",
    "eperm",
    " 400",
    " 401",
    " 403",
    " 404",
    " 422",
    " 429",
    "unrecognized",
];

/// Words by which a status says that the work is still to be done.
const ACCEPTED: &[&str] = &["queued", "accepted", "pending", "processing", "scheduled", "in_progress"];

/// JSON-RPC codes with which a request is turned away before any tool runs.
const TURNED_AWAY: &[i64] = &[-32700, -32600, -32601, -32602, -32020, -32021, -32022];

/// 2025-11-25: an address must be visited first, then the call is made again.
const URL_ELICITATION: i64 = -32042;

/// A larger result is mostly a file or a picture: it is passed on, and held once. Only the ends of it are read.
pub const READ_BYTES_MAX: usize = 1 << 20;

/// Blocks of such a result that are read, of either end.
const BLOCKS_MAX: usize = 8;

/// Errors are words; nobody needs more of them, of either end, to read one.
const WORDS_BYTES_MAX: usize = 16 * 1024;

/// `asked` is the call that it answers.
pub fn read(answer: &Message, rule: &Rule, asked_for_task: bool, asked: Asked<'_>) -> Reading {
    let body = answer.body.as_ref().map_or("null", text);
    match &answer.kind {
        super::message::Kind::Response { failed: true, .. } => error(body, rule, asked),
        _ => result(body, rule, asked_for_task, asked),
    }
}

fn reading(meaning: Meaning, line: impl Into<String>) -> Reading {
    Reading { meaning, line: line.into() }
}

fn error(body: &str, rule: &Rule, asked: Asked<'_>) -> Reading {
    let members = Members::parse(body).unwrap_or_default();
    let code: Option<i64> = members.get("code").and_then(|code| code.parse().ok());
    let message = ends(members.text("message").unwrap_or_default().into_owned());
    if code == Some(URL_ELICITATION) {
        return reading(Meaning::AwaitingInput, "the server wants an address to be visited first");
    }
    if rule.failure == Failure::InDoubt {
        return ambiguous_by_rule(&message);
    }
    let lower = message.to_lowercase();
    let lost = || breakdown::surely_lost(&lower).is_some();
    let spoken = Spoken::by_error(message.clone(), members.get("data"));
    let after = || afterwards::said(&spoken, asked).is_some();
    let belies = !afterwards::is_about_arguments(&lower) && (after() || lost());
    if !belies && code.is_some_and(|code| TURNED_AWAY.contains(&code)) {
        let line = format!("error {}: {message}", code.unwrap_or_default());
        return reading(Meaning::Refused, line);
    }
    by_words("an error", &spoken, rule, asked)
}

fn result(body: &str, rule: &Rule, asked_for_task: bool, asked: Asked<'_>) -> Reading {
    let members = match Members::read(body) {
        Ok(members) => members,
        Err(NotMembers::NotAnObject) => {
            return reading(Meaning::Ambiguous, "the result is not an object");
        }
        Err(NotMembers::Twice(name)) => {
            let line = format!("the result can be read in two ways: {:?} is named twice", short(&name));
            return reading(Meaning::Ambiguous, line);
        }
    };
    match members.text("resultType").as_deref() {
        None | Some("complete") => {}
        Some("input_required") => return reading(Meaning::AwaitingInput, "the server asks for input first"),
        Some("task") => {
            return match handle(&members, TaskEra::Inline) {
                Some(handle) => reading(Meaning::Task(handle), "the server works on it as a task"),
                None => reading(Meaning::Ambiguous, "the server speaks of a task without an id"),
            };
        }
        Some(other) => {
            return reading(Meaning::Ambiguous, format!("the result is of an unknown type, {other}"));
        }
    }
    if asked_for_task && let Some(handle) = handle(&members.object("task"), TaskEra::Result) {
        return reading(Meaning::Task(handle), "the server works on it as a task");
    }
    if members.is_true("isError") {
        let spoken = Spoken::by_result(&members);
        return match rule.failure {
            Failure::InDoubt => ambiguous_by_rule(&spoken.words),
            Failure::Table => by_words("a tool error", &spoken, rule, asked),
        };
    }
    if members.get("content").is_none() && members.get("structuredContent").is_none() {
        return reading(Meaning::Ambiguous, "the result has no content");
    }
    match rule.refuses(&graphql::Asked::Unknown, || super::word::value(&members)) {
        Ok(false) => {}
        Ok(true) if rule.failure == Failure::InDoubt => return ambiguous_by_rule(&words(&members)),
        Ok(true) => return reading(Meaning::Refused, short(&words(&members))),
        Err(error) => {
            let line =
                format!("an answer that does not say whether it ran: {} ({error})", short(&words(&members)));
            return reading(Meaning::Ambiguous, line);
        }
    }
    if rule.unmarked == Unmarked::Read
        && let Some(told) = unmarked::failure(&members, asked.arguments)
    {
        return match (told, rule.failure) {
            (Told::Failure(words) | Told::Both(words), Failure::InDoubt) => ambiguous_by_rule(&words),
            (Told::Failure(words), Failure::Table) => {
                by_words("a result that only tells of an error", &Spoken::by_text(words), rule, asked)
            }
            (Told::Both(words), Failure::Table) => {
                let line =
                    format!("a result that tells of an error and of something else: {}", short(&words));
                reading(Meaning::Ambiguous, line)
            }
        };
    }
    match status(&members) {
        Some(status) if ACCEPTED.contains(&status.as_str()) => {
            reading(Meaning::Accepted, format!("the status is {status}"))
        }
        _ => reading(Meaning::Succeeded, "a result without isError"),
    }
}

fn ambiguous_by_rule(words: &str) -> Reading {
    let line = format!("an error, and the rule reads every failure as ambiguous: {}", short(words));
    reading(Meaning::Ambiguous, line)
}

fn by_words(what: &str, spoken: &Spoken, rule: &Rule, asked: Asked<'_>) -> Reading {
    let words = &spoken.words;
    let lower = words.to_lowercase();
    if afterwards::is_about_arguments(&lower) {
        return reading(Meaning::Refused, short(words));
    }
    let after = afterwards::said(spoken, asked);
    // A code stands after a space, a bracket or at the front alike.
    let lower: String =
        format!(" {lower}").chars().map(|c| if c == '(' || c == ':' { ' ' } else { c }).collect();
    let by_a_tool = || LOST_BY_A_TOOL.iter().find(|phrase| lower.contains(*phrase)).copied();
    let lost =
        || breakdown::lost(&lower).or_else(by_a_tool).or_else(|| server_failed(&lower)).map(str::to_owned);
    if let Some(phrase) = after.or_else(lost) {
        return reading(Meaning::Ambiguous, format!("{what} that says \"{}\"", short(&phrase)));
    }
    // Neither says that anybody looked at the request.
    let lower = lower.replace("unexpected", "").replace("unknown error", "");
    if REFUSED.iter().any(|phrase| lower.contains(phrase)) {
        return reading(Meaning::Refused, short(words));
    }
    match rule.class {
        Class::Consequential => {
            let line = format!(
                "{what} of a consequential action that does not say whether it ran: {}",
                short(words)
            );
            reading(Meaning::Ambiguous, line)
        }
        _ => reading(Meaning::Refused, short(words)),
    }
}

/// The code of a server that failed: not `500 emails`, which are counted.
fn server_failed(lower: &str) -> Option<&'static str> {
    let is_part = |c: char| c.is_alphanumeric();
    let mut words = lower.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let code = SERVER_FAILED
            .iter()
            .find(|code| word.strip_prefix(**code).is_some_and(|end| !end.starts_with(is_part)));
        let counts = |next: &str| {
            word.ends_with(is_part) && next.ends_with('s') && !matches!(next, "errors" | "status")
        };
        if let Some(code) = code.filter(|_| !words.peek().is_some_and(|next| counts(next))) {
            return Some(code);
        }
    }
    None
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

pub fn handle_in(result: &str) -> Option<Handle> {
    let members = Members::parse(result)?;
    let inline = members.text("resultType").is_some_and(|kind| kind == "task");
    match inline {
        true => handle(&members, TaskEra::Inline),
        false => handle(&members.object("task"), TaskEra::Result),
    }
}

fn handle(members: &Members<'_>, era: TaskEra) -> Option<Handle> {
    let number = |names: [&str; 2]| names.iter().find_map(|name| members.get(name)?.parse::<f64>().ok());
    let millis = |value: f64| (value.is_finite() && value >= 0.0).then_some(value as u64);
    Some(Handle {
        id: members.text("taskId")?.into_owned(),
        poll_every_ms: number(["pollIntervalMs", "pollInterval"]).and_then(millis),
        lives_ms: number(["ttlMs", "ttl"]).and_then(millis),
        era,
    })
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
    joined(&texts(result).into_iter().flatten().collect::<Vec<_>>())
}

/// Where one block ends, so does a sentence.
pub fn joined(texts: &[String]) -> String {
    texts.iter().flat_map(|text| [text, "\n"]).collect()
}

/// The text of each block of a result, of those that have one. Some servers write JSON where a text belongs. Of a large
/// result only the outer blocks count as texts, and of those only the ends are read.
pub fn texts(result: &Members<'_>) -> Vec<Option<String>> {
    #[derive(serde::Deserialize)]
    struct Block<'a> {
        #[serde(borrow)]
        text: Option<&'a serde_json::value::RawValue>,
    }
    let content = result.get("content").unwrap_or("[]");
    let blocks: Vec<Block<'_>> = serde_json::from_str(content).unwrap_or_default();
    let large = content.len() > READ_BYTES_MAX;
    let outer = |index: usize| index < BLOCKS_MAX || index + BLOCKS_MAX >= blocks.len();
    let text = |json: &str| match large && json.len() > 2 * WORDS_BYTES_MAX {
        true => ends_of_json(json),
        false => serde_json::from_str(json).unwrap_or_else(|_| json.to_owned()),
    };
    let read = |(index, block): (usize, &Block<'_>)| {
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

/// What a result says about itself in `status`.
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
    use semel_core::json::Json;
    use semel_core::policy::{ActionFacts, Policy};

    const NOBODY: Asked<'static> = Asked { tool: "", arguments: &Json::Null };

    fn rule(class: Class) -> Rule {
        let facts = ActionFacts { class_override: Some(class), ..ActionFacts::new("mcp:s/t", &Json::Null) };
        Policy::default().rule_for(&facts)
    }

    fn meaning(body: &str, class: Class) -> Meaning {
        let message = Message::parse(Bytes::from(format!(r#"{{"id":1,{body}}}"#))).unwrap();
        read(&message, &rule(class), true, NOBODY).meaning
    }

    fn tool_error(words: &str) -> String {
        format!(r#""result":{{"isError":true,"content":[{{"type":"text","text":"{words}"}}]}}"#)
    }

    /// Wherever the cuts fall.
    #[test]
    fn of_a_large_error_both_ends_are_read() {
        for pad in ["x", "\u{e4}", "\\n", "\\u00e4", "\\ud83d\\ude00", "\\\\"] {
            for shift in 0..pad.len() {
                let pad = format!("{}{}", "y".repeat(shift), pad.repeat((2 << 20) / pad.len()));
                let of = |words: String| meaning(&tool_error(&words), Class::Consequential);
                assert_eq!(of(format!("title invalid {pad}")), Meaning::Refused);
                assert_eq!(of(format!("{pad} title invalid")), Meaning::Refused);
                assert_eq!(of(format!("order created; {pad}; title invalid")), Meaning::Ambiguous);
                assert_eq!(of(format!("title invalid; {pad}; order created")), Meaning::Ambiguous);
            }
        }
    }

    #[test]
    fn of_a_large_result_of_many_blocks_the_outer_ones_are_read() {
        let block = |words: &str| format!(r#"{{"type":"text","text":"{words}"}}"#);
        let many = vec![block(&"x".repeat(1000)); 2000].join(",");
        let result = format!(r#""result":{{"isError":true,"content":[{many},{}]}}"#, block("order created"));
        assert_eq!(meaning(&result, Class::Act), Meaning::Ambiguous);
    }

    #[test]
    fn results_are_successes_unless_they_say_otherwise() {
        let of = |result: &str| meaning(&format!(r#""result":{result}"#), Class::Act);
        assert_eq!(of(r#"{"content":[]}"#), Meaning::Succeeded);
        assert_eq!(
            of(r#"{"resultType":"complete","content":[{"type":"text","text":"failed to find"}]}"#),
            Meaning::Succeeded
        );
        assert_eq!(of(r#"{"resultType":"input_required","inputRequests":{}}"#), Meaning::AwaitingInput);
        assert_eq!(of(r#"{"resultType":"dream"}"#), Meaning::Ambiguous);
        assert_eq!(of("7"), Meaning::Ambiguous);
        assert_eq!(of("{}"), Meaning::Ambiguous);
        assert_eq!(of(r#"{"structuredContent":{"status":"Queued"},"content":[]}"#), Meaning::Accepted);
        assert_eq!(
            of(r#"{"content":[{"type":"text","text":"{\"status\":\"pending\"}"}]}"#),
            Meaning::Accepted
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
            read(&message, &rule, false, NOBODY).meaning
        };
        assert_eq!(of("table", r#"{"ok": true}"#), Meaning::Succeeded);
        assert_eq!(of("table", r#"{"ok": false, "error": "channel_not_found"}"#), Meaning::Refused);
        assert_eq!(of("table", r#"{"ok": false, "error": "internal_error"}"#), Meaning::Ambiguous);
        assert_eq!(of("table", "<html>"), Meaning::Ambiguous);
        assert_eq!(of("in_doubt", r#"{"ok": false, "error": "channel_not_found"}"#), Meaning::Ambiguous);
        assert_eq!(of("in_doubt", r#"{"ok": true}"#), Meaning::Succeeded);
    }

    #[test]
    fn errors_are_read_by_their_words() {
        for class in [Class::Act, Class::Consequential] {
            for refused in [
                "Invalid amount",
                "card_declined: card declined",
                "HTTP 404",
                "Daily quota exceeded. You have sent 500 emails",
                "Rate limit is 5000 per hour",
                "Error (422): x",
                "ENOENT: no such file",
                "Issue was not created: invalid title",
                "Error executing tool charge: 1 validation error for chargeArguments: timeout is required",
            ] {
                assert_eq!(meaning(&tool_error(refused), class), Meaning::Refused, "{refused}");
            }
            for after in [
                "Output validation error: 'id' is a required property",
                "KeyError: missing field x",
                "Payment captured but receipt address is invalid",
                "Error executing tool charge: 1 validation error for Charge: Input should be a valid integer",
                "invalid literal for int() with base 10: 'T-17'",
                "invalid json response body at https://api.x/charges",
                "list index out of range",
                "Expecting value: line 1 column 1 (char 0), invalid",
                "Email was sent, but its folder was not found",
            ] {
                assert_eq!(meaning(&tool_error(after), class), Meaning::Ambiguous, "{after}");
                let error = format!(r#""error":{{"code":-32602,"message":"{after}"}}"#);
                assert_eq!(meaning(&error, class), Meaning::Ambiguous, "{after}");
            }
            for lost in [
                "Request timed out",
                "connection reset while not found",
                "502 Bad Gateway",
                "status 503",
                "not found (500)",
                "quota, 500: errors",
            ] {
                assert_eq!(meaning(&tool_error(lost), class), Meaning::Ambiguous, "{lost}");
            }
            for (says, expected) in [
                ("Request timed out while charging", Meaning::Ambiguous),
                ("fetch failed", Meaning::Ambiguous),
                ("Invalid arguments: timeout must be a number", Meaning::Refused),
                ("connection is a required property", Meaning::Refused),
            ] {
                let error = format!(r#""error":{{"code":-32602,"message":"{says}"}}"#);
                assert_eq!(meaning(&error, class), expected, "{says}");
            }
            let long = |says: &str| tool_error(&format!("not found {} {says}", "x ".repeat(100_000)));
            assert_eq!(meaning(&long("and then it timed out"), class), Meaning::Ambiguous);
            assert_eq!(meaning(&long("in the end"), class), Meaning::Refused);
            assert_eq!(meaning(r#""error":{"code":-32602,"message":"oops"}"#, class), Meaning::Refused);
            assert_eq!(
                meaning(r#""error":{"code":-32001,"message":"Request timed out"}"#, class),
                Meaning::Ambiguous
            );
        }
        assert_eq!(meaning(&tool_error("oops"), Class::Act), Meaning::Refused);
        assert_eq!(meaning(&tool_error("oops"), Class::Consequential), Meaning::Ambiguous);
        assert_eq!(
            meaning(r#""error":{"code":-32603,"message":"oops"}"#, Class::Consequential),
            Meaning::Ambiguous
        );
    }

    #[test]
    fn a_rule_can_read_every_failure_as_ambiguous() {
        let strict = Rule { failure: Failure::InDoubt, ..rule(Class::Act) };
        let message =
            Message::parse(Bytes::from(format!(r#"{{"id":1,{}}}"#, tool_error("invalid")))).unwrap();
        assert_eq!(read(&message, &strict, false, NOBODY).meaning, Meaning::Ambiguous);
    }

    #[test]
    fn task_handles_of_both_eras_are_seen() {
        let legacy =
            meaning(r#""result":{"task":{"taskId":"t","ttl":60000,"pollInterval":500}}"#, Class::Act);
        let handle =
            Handle { id: "t".into(), poll_every_ms: Some(500), lives_ms: Some(60000), era: TaskEra::Result };
        assert_eq!(legacy, Meaning::Task(handle.clone()));
        let modern = meaning(
            r#""result":{"resultType":"task","taskId":"t","ttlMs":60000,"pollIntervalMs":500}"#,
            Class::Act,
        );
        assert_eq!(modern, Meaning::Task(Handle { era: TaskEra::Inline, ..handle }));
    }
}
