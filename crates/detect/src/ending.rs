//! How a call ended, as its answer tells. The core reads the answer as the guard's doors do.

use crate::shell;
use crate::transcript::ToolAnswer;
use semel_core::class::Class;
use semel_core::digest::Secret;
use semel_core::identity::value_mark;
use semel_core::ids::EffectId;
use semel_core::json::{self, Json};
use semel_core::judgement::error_text;
use semel_core::judgement::failure::{FailureMeaning, weigh};
use semel_core::judgement::superseded;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It reported a success.
    Applied,
    /// It certainly did nothing.
    Refused,
    /// It reported a failure, and nothing more is known.
    Failed,
    /// The answer was lost or is ambiguous.
    InDoubt,
    /// No answer is in the transcript.
    Unanswered,
    /// semel answered that it may have happened. semel itself decides about its repeats.
    HeldInDoubt,
}

impl Ending {
    pub fn of(answer: Option<&ToolAnswer<'_>>, action: &str, class: Class) -> Ending {
        let Some(answer) = answer else { return Ending::Unanswered };
        let text = answer.text.read();
        if let Some(ending) = of_guard(&text) {
            return ending;
        }
        let text = text.trim();
        if answer.is_error != Some(false) && says_not_run(text) {
            return Ending::Refused;
        }
        if answer.interrupted {
            return Ending::InDoubt;
        }
        let is_failure = match answer.is_error {
            Some(true) => true,
            _ => says_failure(text),
        };
        if !is_failure {
            return Ending::Applied;
        }
        // The output of a command may hold anything; only a lost answer is read from it.
        if action.starts_with("cli:") {
            return if error_text::lost(text).is_some() { Ending::InDoubt } else { Ending::Failed };
        }
        if error_text::is_about_arguments(text) || shell::says_never_sent(text) {
            return Ending::Refused;
        }
        match weigh(&error_text::read(text), class == Class::Consequential) {
            FailureMeaning::Refused => Ending::Refused,
            FailureMeaning::Reported => Ending::Failed,
            FailureMeaning::InDoubt => Ending::InDoubt,
        }
    }

    /// Nobody knows whether it happened.
    pub fn is_open(self) -> bool {
        matches!(self, Ending::InDoubt | Ending::Unanswered)
    }

    /// It happened, or may have.
    pub fn may_have_happened(self) -> bool {
        matches!(self, Ending::Applied | Ending::HeldInDoubt) || self.is_open()
    }

    pub fn word(self) -> &'static str {
        match self {
            Ending::Applied => "succeeded",
            Ending::Refused => "was refused",
            Ending::Failed => "failed",
            Ending::InDoubt => "ended in doubt",
            Ending::Unanswered => "got no answer",
            Ending::HeldInDoubt => "is held in doubt by semel",
        }
    }
}

/// An answer of semel itself: it names an effect, and says that nothing was sent or that nobody knows.
fn of_guard(text: &str) -> Option<Ending> {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let says = |any: &[&str]| any.iter().any(|said| text.contains(said));
    if !text.contains("ef_") || !words.any(|word| EffectId::parse(word).is_some()) {
        return None;
    }
    match () {
        () if says(&["not run again", "Not run", "has not reported its end"]) => Some(Ending::Refused),
        () if says(&["may have been carried out"]) => Some(Ending::HeldInDoubt),
        () => None,
    }
}

/// How Claude Code, Codex and Gemini CLI say that they did not run a tool. Claude Code's "STOP what you are doing" is not
/// among them: it writes that also after the user stopped a tool that ran.
const NOT_RUN: [&str; 8] = [
    "but you haven't granted it yet",
    "To tell you how to proceed, the user said:",
    "<tool_use_error>InputValidationError",
    "<tool_use_error>Sibling tool call errored",
    "<tool_use_error>Error: No such tool available",
    "exec command rejected by user",
    "user rejected MCP tool call",
    "User did not allow tool call",
];

/// Those texts stand at the beginning.
const NOT_RUN_WITHIN: usize = 300;

fn says_not_run(text: &str) -> bool {
    let head = &text[..text.floor_char_boundary(NOT_RUN_WITHIN)];
    NOT_RUN.iter().any(|said| head.contains(said))
}

/// An answer without an error mark that is nothing but an error.
fn says_failure(text: &str) -> bool {
    text.starts_with("Error:")
        || (text.starts_with('{')
            && json::parse_bounded(text.as_bytes()).is_ok_and(|value| error_text::is_failure(&value)))
}

/// The values by which a result names what it made, hashed: equal ones name one thing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultNames {
    /// The thing's own name: the one `id`, or the like, of the outermost object that has any.
    own: Option<u64>,
    /// Sorted.
    all: Vec<u64>,
}

/// Whether two results name one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedThings {
    One,
    Two,
    /// One of them names nothing, or they have some names in common: a customer's, or that of a request.
    Unclear,
}

impl ResultNames {
    pub fn of(text: &str, secret: &Secret) -> ResultNames {
        let (mut found, mut own) = (Vec::new(), None);
        match json::parse_bounded(text.trim().as_bytes()) {
            Ok(value) => {
                collect(&value, secret, &mut found);
                own = own_name(&value).map(|name| value_mark(secret, &name.canonical()));
            }
            Err(_) => found = names_in_words(text, secret),
        }
        found.sort_unstable();
        found.dedup();
        found.truncate(NAMES_MAX);
        ResultNames { own, all: found }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn has(&self, name: u64) -> bool {
        self.all.binary_search(&name).is_ok()
    }

    pub fn compare(&self, other: &ResultNames) -> NamedThings {
        let is_common = |name: &u64| other.has(*name);
        match (self.own, other.own) {
            (Some(own), Some(others)) if own == others => NamedThings::One,
            (Some(_), Some(_)) => NamedThings::Two,
            _ if self.all.is_empty() || other.all.is_empty() => NamedThings::Unclear,
            _ if self.all == other.all => NamedThings::One,
            _ if self.all.iter().any(is_common) => NamedThings::Unclear,
            _ => NamedThings::Two,
        }
    }
}

/// A thing in a list, by what it holds.
#[derive(Debug, Clone)]
pub struct ListedThing {
    /// Its own name.
    pub own: u64,
    /// All in it by which a call may name it.
    pub marks: Vec<u64>,
}

/// Of a longer list the first things are looked at.
const LISTED_MAX: usize = 100;
/// A thing names itself and its owners at its beginning.
const MARKS_OF_THING_MAX: usize = 64;

impl ListedThing {
    /// The things with names in the lists of a JSON document.
    pub fn all_in(text: &str, secret: &Secret) -> Vec<ListedThing> {
        let mut things = Vec::new();
        if let Ok(value) = json::parse_bounded(text.trim().as_bytes()) {
            list(&value, secret, &mut things);
        }
        things.truncate(LISTED_MAX);
        things
    }
}

fn list(value: &Json, secret: &Secret, things: &mut Vec<ListedThing>) {
    match value {
        Json::Array(elements) => elements.iter().for_each(|element| match own_name(element) {
            Some(own) => {
                let text = element.canonical();
                let marks = superseded::marks_in_reply(secret, &text).take(MARKS_OF_THING_MAX).collect();
                things.push(ListedThing { own: value_mark(secret, &own.canonical()), marks });
            }
            None => list(element, secret, things),
        }),
        Json::Object(members) => members.iter().for_each(|(name, value)| match value {
            // MCP results carry their document as a text.
            Json::String(text) if name == "text" => things.extend(ListedThing::all_in(text, secret)),
            value => list(value, secret, things),
        }),
        _ => {}
    }
}

fn names_in_words(text: &str, secret: &Secret) -> Vec<u64> {
    let words = text.split(|c: char| c.is_whitespace() || "\"'(),;<>[]{}".contains(c));
    let words = words.map(|word| word.trim_matches(['.', ':'])).filter(|word| looks_like_id(word));
    words.map(|word| value_mark(secret, &Json::str(word).canonical())).collect()
}

/// Members by which an object names itself, the surest first.
const OWN_NAMES: [&str; 10] =
    ["id", "number", "iid", "sid", "uuid", "key", "ts", "reference", "confirmation", "url"];

/// Objects of one depth are equals: of several with a name none is the thing.
fn own_name(value: &Json) -> Option<&Json> {
    let mut level = vec![value.as_object()?];
    while !level.is_empty() {
        let own = level.iter().filter_map(|object| OWN_NAMES.iter().find_map(|name| object.get(name)));
        let own: Vec<&Json> = own.filter(|name| matches!(name, Json::String(_) | Json::Number(_))).collect();
        match own.as_slice() {
            [] => {
                level = level
                    .iter()
                    .flat_map(|object| object.iter())
                    .filter_map(|(_, value)| value.as_object())
                    .collect()
            }
            [one] => return Some(one),
            _ => return None,
        }
    }
    None
}

/// A result that lists more than this many things names nothing new by them.
const NAMES_MAX: usize = 32;

fn collect(value: &Json, secret: &Secret, names: &mut Vec<u64>) {
    match value {
        Json::Object(members) => {
            for (name, value) in members.iter() {
                match value {
                    // MCP results carry their document as a text.
                    Json::String(text) if name == "text" => names.extend(ResultNames::of(text, secret).all),
                    Json::String(_) | Json::Number(_) if is_id_name(name) => {
                        names.push(value_mark(secret, &value.canonical()));
                    }
                    _ => collect(value, secret, names),
                }
            }
        }
        Json::Array(elements) => elements.iter().for_each(|element| collect(element, secret, names)),
        _ => {}
    }
}

fn is_id_name(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let is_own = plain == "htmlurl" || OWN_NAMES.contains(&plain.as_str());
    let is_transport =
        ["requestid", "traceid", "spanid", "sessionid", "correlationid"].contains(&plain.as_str());
    is_own || (plain.ends_with("id") && !is_transport)
}

/// In plain text an id is a word with both a digit and a letter, or a number after `#`.
fn looks_like_id(word: &str) -> bool {
    let has = |test: fn(&char) -> bool| word.chars().any(|c| test(&c));
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    // A time, a span or a size is no name.
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_measured =
        unit.len() <= 3 && unit.len() < word.len() && unit.chars().all(|c| c.is_ascii_alphabetic());
    let is_time = is_measured || (word.contains(':') && !word.contains('/'));
    word.len() >= 4 && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic) && !is_time
        || word.strip_prefix('#').is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn answer(is_error: Option<bool>, text: &str) -> ToolAnswer<'_> {
        ToolAnswer { id: Cow::Borrowed("1"), is_error, text: text.into(), interrupted: false }
    }

    #[test]
    fn an_answer_ends_a_call_as_the_guard_would_read_it() {
        for (is_error, text, class, expected) in [
            (Some(false), "ok", Class::Consequential, Ending::Applied),
            (None, "charged", Class::Consequential, Ending::Applied),
            (Some(true), "card declined", Class::Consequential, Ending::Refused),
            (Some(true), "request timed out", Class::Act, Ending::InDoubt),
            (Some(true), "failed", Class::Act, Ending::Failed),
            (Some(true), "failed", Class::Consequential, Ending::InDoubt),
            (None, "Error: 404 Not Found", Class::Act, Ending::Refused),
            (None, r#"{"success":false,"error":"timeout"}"#, Class::Act, Ending::InDoubt),
            (None, r#"{"ok":true,"id":7}"#, Class::Act, Ending::Applied),
        ] {
            assert_eq!(Ending::of(Some(&answer(is_error, text)), "mcp:s/tool", class), expected, "{text}");
        }
        assert_eq!(Ending::of(None, "mcp:s/tool", Class::Act), Ending::Unanswered);
        let failed = answer(Some(true), "error: test failed; 3 passed, 1 created");
        assert_eq!(Ending::of(Some(&failed), "cli:cargo", Class::Act), Ending::Failed);
        let replayed =
            answer(Some(false), "done 4 s ago; it was not run again (ef_01ARZ3NDEKTSV4RRFFQ69G5FAV)");
        assert_eq!(Ending::of(Some(&replayed), "mcp:s/charge", Class::Consequential), Ending::Refused);
        let held = answer(
            Some(true),
            "[semel] in_doubt ef_01ARZ3NDEKTSV4RRFFQ69G5FAV: mcp:s/charge may have been carried out: timed out",
        );
        assert_eq!(Ending::of(Some(&held), "mcp:s/charge", Class::Consequential), Ending::HeldInDoubt);
        let foreign = answer(Some(false), "ref_1a was charged; the export is still running");
        assert_eq!(Ending::of(Some(&foreign), "mcp:s/charge", Class::Consequential), Ending::Applied);
    }

    #[test]
    fn results_that_name_other_things_are_told_apart() {
        let secret = Secret::new([0; 32]);
        let things =
            |one: &str, other: &str| ResultNames::of(one, &secret).compare(&ResultNames::of(other, &secret));
        for (one, other, expected) in [
            (r#"{"id":"ch_1","amount":5}"#, r#"{"id":"ch_2","amount":5}"#, NamedThings::Two),
            ("Created issue #41", "Created issue #42", NamedThings::Two),
            ("charge ch_1a made", "charge ch_2b made", NamedThings::Two),
            (r#"{"id":"ch_1","at":1}"#, r#"{"id":"ch_1","at":2}"#, NamedThings::One),
            (r#"{"id":"ch_1","event_id":"e1"}"#, r#"{"id":"ch_1","event_id":"e2"}"#, NamedThings::One),
            (r#"{"id":"ch_1","customer_id":"c"}"#, r#"{"id":"ch_2","customer_id":"c"}"#, NamedThings::Two),
            (
                r#"{"data":{"id":"1","owner":{"id":"a"}}}"#,
                r#"{"data":{"id":"1","owner":{"id":"b"}}}"#,
                NamedThings::One,
            ),
            (
                r#"{"a":{"id":"1"},"b":{"id":"x"}}"#,
                r#"{"a":{"id":"1"},"b":{"id":"y"}}"#,
                NamedThings::Unclear,
            ),
            (r#"{"a":{"id":"1"},"b":{"id":"x"}}"#, r#"{"a":{"id":"2"},"b":{"id":"y"}}"#, NamedThings::Two),
            ("charge ch_1a (request req_8f3)", "charge ch_1a (request req_9z1)", NamedThings::Unclear),
            ("Mail sent at 12:01", "Mail sent at 12:05", NamedThings::Unclear),
            ("sent in 120ms", "sent in 134ms", NamedThings::Unclear),
            ("Message sent successfully", "Message sent successfully", NamedThings::Unclear),
        ] {
            assert_eq!(things(one, other), expected, "{one} and {other}");
        }
    }
}
