//! How a call ended, as its answer tells. The core reads the answer as the guard's doors do.

use crate::shell;
use crate::transcript::ToolAnswer;
use semel_core::class::Class;
use semel_core::digest::Secret;
use semel_core::identity::value_mark;
use semel_core::json::{self, Json};
use semel_core::judgement::error_text;
use semel_core::judgement::failure::{FailureMeaning, weigh};
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
}

impl Ending {
    pub fn of(answer: Option<&ToolAnswer<'_>>, action: &str, class: Class) -> Ending {
        let Some(answer) = answer else { return Ending::Unanswered };
        let text = answer.text.read();
        if is_of_guard(&text) {
            return Ending::Refused;
        }
        if answer.interrupted {
            return Ending::InDoubt;
        }
        let text = text.trim();
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
        self == Ending::Applied || self.is_open()
    }

    pub fn word(self) -> &'static str {
        match self {
            Ending::Applied => "succeeded",
            Ending::Refused => "was refused",
            Ending::Failed => "failed",
            Ending::InDoubt => "ended in doubt",
            Ending::Unanswered => "got no answer",
        }
    }
}

/// An answer of semel itself that nothing was sent: it names an effect and says so.
fn is_of_guard(text: &str) -> bool {
    const SAYS: [&str; 4] = ["not run again", "Not run", "may have been carried out", "is still running"];
    text.contains("ef_") && SAYS.iter().any(|said| text.contains(said))
}

/// An answer without an error mark that is nothing but an error.
fn says_failure(text: &str) -> bool {
    text.starts_with("Error:")
        || (text.starts_with('{')
            && json::parse_bounded(text.as_bytes()).is_ok_and(|value| error_text::is_failure(&value)))
}

/// The values by which a result names what it made, hashed: equal ones name one thing.
pub fn names_in_result(text: &str, secret: &Secret) -> Vec<u64> {
    let mut names = Vec::new();
    match json::parse_bounded(text.trim().as_bytes()) {
        Ok(value) => collect(&value, secret, &mut names),
        Err(_) => {
            let words = text.split(|c: char| c.is_whitespace() || "\"'(),;<>[]{}".contains(c));
            for word in words.map(|word| word.trim_matches(['.', ':'])).filter(|word| looks_like_id(word)) {
                names.push(value_mark(secret, &Json::str(word).canonical()));
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    names.truncate(NAMES_MAX);
    names
}

/// A result that lists more than this many things names nothing new by them.
const NAMES_MAX: usize = 32;

fn collect(value: &Json, secret: &Secret, names: &mut Vec<u64>) {
    match value {
        Json::Object(members) => {
            for (name, value) in members.iter() {
                match value {
                    // MCP results carry their document as a text.
                    Json::String(text) if name == "text" => names.extend(names_in_result(text, secret)),
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
    let is_own =
        ["id", "number", "url", "htmlurl", "ts", "sid", "key", "uuid", "reference", "confirmation", "iid"]
            .contains(&plain.as_str());
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
    }

    #[test]
    fn results_that_name_other_things_are_told_apart() {
        let secret = Secret::new([0; 32]);
        let names = |text: &str| names_in_result(text, &secret);
        let differ = |one: &str, other: &str| names(one) != names(other);
        assert!(differ(r#"{"id":"ch_1","amount":5}"#, r#"{"id":"ch_2","amount":5}"#));
        assert!(differ("Created issue #41", "Created issue #42"));
        assert!(differ("charge ch_1a made", "charge ch_2b made"));
        assert!(!differ(r#"{"id":"ch_1","at":1}"#, r#"{"id":"ch_1","at":2}"#));
        assert!(!differ("Mail sent at 12:01", "Mail sent at 12:05"));
        assert!(!differ("sent in 120ms", "sent in 134ms"));
        assert!(names("Message sent successfully").is_empty());
    }
}
