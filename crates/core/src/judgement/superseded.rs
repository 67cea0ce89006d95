//! Whether a success is still so. A later effect of the same server that removed what it made supersedes it: its repeat
//! is neither answered with the old success nor run.

use super::recognise::{Annotations, class};
use crate::class::Class;
use crate::digest::Secret;
use crate::effect::{Effect, State};
use crate::identity::{Marks, PathKind, value_mark};
use crate::json::{Json, Number};
use crate::words::words;
use std::collections::HashSet;

/// Verbs of a call that removes something.
const REMOVE: &[&str] = &["delete", "remove", "cancel", "void", "revoke", "archive", "close"];

/// So much of a kept reply is read for the names of what was removed.
const REPLY_BYTES_READ: usize = 64 * 1024;
const NAMES_READ: usize = 4_096;

/// The server that an action belongs to. A command belongs to none.
pub fn server(action: &str) -> Option<&str> {
    let (door, name) = action.split_once(':')?;
    match door {
        "mcp" => Some(&action[..action.find('/')?]),
        "http" => name.split_once(' ')?.1.split('/').next(),
        "fn" => Some(door),
        _ => None,
    }
}

/// Whether an action removes something, by its verb or method.
pub fn removes(action: &str) -> bool {
    let name = match action.split_once(':') {
        Some(("http", request)) if request.starts_with("DELETE ") => return true,
        Some(("http", request)) => request.rsplit('/').next().unwrap_or_default(),
        Some((_, name)) => name.rsplit('/').next().unwrap_or_default(),
        None => action,
    };
    let words = words(name);
    let removes = |word: &String| REMOVE.contains(&word.as_str());
    // `order_cancel` cancels, and `send_close_notice` sends.
    let does_more = || class(action, Annotations::default(), false).0 == Class::Consequential;
    words.first().is_some_and(removes)
        || words.last().is_some_and(removes)
        || (words.iter().any(removes) && !does_more())
}

/// Whether `later`, which removes something, removed what `success` made.
pub fn supersedes(secret: &Secret, later: &Effect, success: &Effect, reply: Option<&[u8]>) -> bool {
    let State::Applied(made) = &success.state else { return false };
    // A removal whose outcome is not known may have removed it.
    let may_be_done = matches!(later.state, State::Applied(_) | State::InDoubt(_));
    let begun = later.newest_attempt().map_or(later.opened_at, |attempt| attempt.claimed_at);
    if !may_be_done || begun < made.at {
        return false;
    }
    let reply = reply.unwrap_or_default();
    let text = String::from_utf8_lossy(&reply[..reply.len().min(REPLY_BYTES_READ)]);
    is_named(&naming_marks(secret, &later.marks), &success.marks, marks_in_reply(secret, &text))
}

/// The marks by which a call names the thing that it is about: those of its arguments but content and headers.
pub fn naming_marks(secret: &Secret, call: &Marks) -> Vec<u64> {
    // They say how it is done, not to what.
    let how = [Json::Null, Json::Bool(true), Json::Bool(false), Json::str("")];
    let how: HashSet<u64> =
        REMOVE.iter().map(|verb| Json::str(verb)).chain(how).map(|json| mark(secret, &json)).collect();
    let named = call.paths.iter().filter(|leaf| {
        leaf.kind != PathKind::Content && !leaf.path.starts_with("headers") && !how.contains(&leaf.mark)
    });
    named.map(|leaf| leaf.mark).collect()
}

/// Whether a removal names the thing that another call made: each of its marks stands in the arguments or in the reply of
/// that call.
pub fn is_named(removal: &[u64], made: &Marks, in_reply: impl IntoIterator<Item = u64>) -> bool {
    let is_known =
        |mark: &u64| made.paths.iter().chain(made.content_paths.iter()).any(|leaf| leaf.mark == *mark);
    let mut missing: HashSet<u64> = removal.iter().copied().filter(|mark| !is_known(mark)).collect();
    let mut in_reply = in_reply.into_iter();
    while !missing.is_empty() {
        let Some(mark) = in_reply.next() else { return false };
        missing.remove(&mark);
    }
    !removal.is_empty()
}

/// The marks of all in a reply that may name the thing that was made.
pub fn marks_in_reply<'t>(secret: &'t Secret, text: &'t str) -> impl Iterator<Item = u64> + 't {
    names_in(text).take(NAMES_READ).flat_map(|name| {
        let number = Number::parse(name).ok().map(|number| mark(secret, &Json::Number(number)));
        [mark(secret, &Json::str(name))].into_iter().chain(number)
    })
}

fn mark(secret: &Secret, json: &Json) -> u64 {
    value_mark(secret, &json.canonical())
}

/// Everything in a text that may be an id or a name: what stands in quotes, each run of characters that ids are made of,
/// and each part of an address.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let part_of_id = |c: char| c.is_alphanumeric() || "_-.@+:/#".contains(c);
    let quoted = text.split('"').map(|part| part.trim_end_matches('\\'));
    // A line end inside a JSON text is a backslash and a letter.
    let lines = text.split("\\n").flat_map(move |line| line.split(move |c: char| !part_of_id(c)));
    let parts = lines.clone().flat_map(|run| run.split(['/', '#']));
    let trimmed = lines.chain(parts).map(|run| run.trim_matches(['.', ':']));
    quoted.chain(trimmed).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removals_are_known_by_verb_or_method() {
        for action in [
            "mcp:gh/delete_issue",
            "mcp:gh/issueClose",
            "mcp:slack/slack_archive_channel",
            "http:DELETE api.example.com/v1/customers/cus_1",
            "http:POST api.example.com/v1/charges/ch_1/cancel",
            "fn:void_invoice",
        ] {
            assert!(removes(action), "{action}");
        }
        for action in [
            "mcp:gh/create_issue",
            "http:POST api.example.com/closures",
            "mcp:delete/list_all",
            "mcp:x/send_close_notice",
        ] {
            assert!(!removes(action), "{action}");
        }
        assert_eq!(server("mcp:gh/delete_issue"), Some("mcp:gh"));
        assert_eq!(server("http:DELETE api.example.com/v1/x"), Some("api.example.com"));
        assert_eq!(server("cli:kubectl"), None);
    }

    #[test]
    fn names_are_found_in_json_in_text_and_in_addresses() {
        let text = r#"{"content":[{"text":"{\"id\":\"iss_1\",\"n\":7}\nCreated #42: https://h.io/o/r/issues/9."}],"name":"good first"}"#;
        let found: Vec<&str> = names_in(text).collect();
        for name in ["iss_1", "7", "42", "9", "good first", "h.io", "o"] {
            assert!(found.contains(&name), "{name} in {found:?}");
        }
    }
}
