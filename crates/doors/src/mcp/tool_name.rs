//! What the name of a tool says: what is done, to what, and where.

use super::tools::Tools;
use std::collections::HashMap;

/// The words of a name, in lower case.
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for character in name.chars().take(200) {
        let begins = character.is_uppercase() && !before.is_uppercase();
        if !character.is_alphanumeric() || begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            word.extend(character.to_lowercase());
        }
        before = character;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A name, taken apart. Its nouns are reduced to what they have in common in all their forms ([`stem`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolName {
    /// What is done, in one of the words that say it of anything (`create`, `list`).
    pub verb: Option<String>,
    /// What is done, in a word of its own: what it leaves behind may be called after it, as `book` leaves bookings.
    pub act: Option<String>,
    /// What it is done to. The last is the thing itself, those before it say of what kind: a payment link.
    pub things: Vec<String>,
    /// What stands behind a `to` or an `in`.
    pub place: Vec<String>,
}

/// Words that say nothing of a tool, since all tools of its server have them.
#[derive(Debug, Clone, Default)]
pub struct Surname {
    prefix: Option<String>,
    of_server: Vec<String>,
}

impl Surname {
    /// A word that three of four names begin with, and the words of the server's own name.
    pub fn of(server: &str, tools: &Tools) -> Surname {
        let mut begins: HashMap<String, usize> = HashMap::new();
        for first in tools.iter().filter_map(|tool| words(&tool.name).into_iter().next()) {
            *begins.entry(first).or_default() += 1;
        }
        let all: usize = begins.values().sum();
        let is_shared = |(word, having): &(String, usize)| {
            !VERBS.contains(&word.as_str()) && *having > 1 && having * 4 >= all * 3
        };
        let prefix = begins.into_iter().find(is_shared).map(|(word, _)| word);
        Surname { prefix, of_server: words(server) }
    }

    fn is_of(&self, at: usize, word: &String) -> bool {
        (at == 0 && self.prefix.as_ref() == Some(word)) || self.of_server.contains(word)
    }
}

impl ToolName {
    pub fn read(name: &str, surname: &Surname) -> ToolName {
        let all = words(name);
        let own: Vec<String> = (all.iter().enumerate())
            .filter(|(at, word)| !surname.is_of(*at, word))
            .map(|(_, word)| word.clone())
            .collect();
        let is_namespace = own.len() == 1 && name.contains(['.', '/', ':']);
        match own.as_slice() {
            // `payments.charge`: what is common to all is the thing.
            [act] if is_namespace && !VERBS.contains(&act.as_str()) => {
                let things = all.iter().filter(|word| *word != act).map(|word| stem(word)).collect();
                ToolName { act: Some(stem(act)), things, ..ToolName::default() }
            }
            _ => {
                let read = ToolName::of_words(&own);
                if read.things.is_empty() { ToolName::of_words(&all) } else { read }
            }
        }
    }

    fn of_words(all: &[String]) -> ToolName {
        let is_in = |list: &[&str], word: &String| list.contains(&word.as_str());
        let all: Vec<&String> = all.iter().filter(|word| !is_in(&EMPTY, word)).collect();
        let turn = all.iter().position(|word| is_in(&PREPOSITIONS, word)).filter(|at| *at > 0);
        let (mut said, behind) = match turn {
            Some(at) => (all[..at].to_vec(), &all[at..]),
            None => (all, &[][..]),
        };
        let mut verb = None;
        // `create_or_update_file`; but the last word is the thing, though it is a verb elsewhere: `list_updates`.
        while said.len() > 1 && is_in(&VERBS, said[0]) {
            verb = Some(said.remove(0).clone());
        }
        let found = match (verb.is_some(), said.as_slice()) {
            (false, [.., last]) if is_in(&VERBS, last) => Some(said.len() - 1),
            (false, words) => words.iter().position(|word| is_in(&VERBS, word)),
            (true, _) => None,
        };
        if let Some(at) = found {
            verb = Some(said.remove(at).clone());
        }
        let place: Vec<String> = match behind.split_first() {
            Some((turn, place)) if says_where(turn, verb.as_deref()) => {
                place.iter().filter(|word| !is_in(&PREPOSITIONS, word)).map(|word| stem(word)).collect()
            }
            _ => Vec::new(),
        };
        let act = (verb.is_none() && said.len() > 1).then(|| stem(said[0]));
        let things: Vec<String> =
            said.iter().skip(usize::from(act.is_some())).map(|word| stem(word)).collect();
        match things.is_empty() {
            // `add_to_favorites`.
            true => ToolName { verb, act, things: place, place: Vec::new() },
            false => ToolName { verb, act, things, place },
        }
    }

    /// The same as a read's name: that does nothing, so all its words are things.
    pub fn of_read(mut self) -> ToolName {
        self.things.splice(..0, self.act.take());
        self
    }
}

/// `create_issue_from_template` makes an issue, and `remove_issue_from_cycle` is about the cycle too.
fn says_where(preposition: &str, verb: Option<&str>) -> bool {
    match preposition {
        "from" => matches!(verb, Some("remove" | "delete")),
        "by" | "with" | "as" | "for" => false,
        _ => true,
    }
}

pub fn is_plural(word: &str) -> bool {
    word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end))
}

/// A word without what its forms differ in: `branches`, `booking` and `starred` become `branch`, `book` and `star`.
pub fn stem(word: &str) -> String {
    let singular = match word {
        _ if !is_plural(word) || word.len() < 4 => word.to_owned(),
        _ if word.ends_with("ies") => format!("{}y", &word[..word.len() - 3]),
        _ if ["ches", "shes", "sses", "xes", "tuses"].iter().any(|end| word.ends_with(end)) => {
            word[..word.len() - 2].to_owned()
        }
        _ => word[..word.len() - 1].to_owned(),
    };
    let bare = ["ing", "ed"].iter().find_map(|end| singular.strip_suffix(end)).filter(|bare| bare.len() > 2);
    let Some(bare) = bare else { return singular };
    let mut ends = bare.chars().rev();
    match (ends.next(), ends.next()) {
        (Some(last), Some(before)) if last == before => bare[..bare.len() - last.len_utf8()].to_owned(),
        _ => bare.to_owned(),
    }
}

/// What can be said of anything. Other words that say what is done are known by their place.
const VERBS: [&str; 36] = [
    "add",
    "archive",
    "check",
    "count",
    "create",
    "delete",
    "describe",
    "edit",
    "fetch",
    "find",
    "get",
    "insert",
    "list",
    "lookup",
    "make",
    "manage",
    "modify",
    "new",
    "patch",
    "post",
    "put",
    "query",
    "read",
    "remove",
    "retrieve",
    "save",
    "search",
    "send",
    "set",
    "show",
    "submit",
    "unarchive",
    "update",
    "upsert",
    "view",
    "write",
];

/// Words that say nothing.
const EMPTY: [&str; 10] = ["a", "all", "an", "and", "batch", "bulk", "my", "of", "or", "the"];

const PREPOSITIONS: [&str; 10] = ["to", "into", "in", "on", "at", "from", "by", "with", "as", "for"];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> (Option<String>, Option<String>, String, String) {
        let surname = Surname { prefix: Some("linear".into()), of_server: vec!["tracker".into()] };
        let ToolName { verb, act, things, place, .. } = ToolName::read(name, &surname);
        (verb, act, things.join(" "), place.join(" "))
    }

    #[test]
    fn a_name_says_what_is_done_to_what_and_where() {
        for (name, verb, act, things, place) in [
            ("linear_createProjectUpdate", "create", "", "project update", ""),
            ("linear_issues", "", "", "issue", ""),
            ("linear_list", "list", "", "linear", ""),
            ("linear.charge", "", "charge", "linear", ""),
            ("get_tracker_issue", "get", "", "issue", ""),
            ("create_or_update_file", "update", "", "file", ""),
            ("issue_write", "write", "", "issue", ""),
            ("conversations_add_message", "add", "", "conversation message", ""),
            ("book_flight", "", "book", "flight", ""),
            ("add-contact-to-segment", "add", "", "contact", "segment"),
            ("createIssueFromTemplate", "create", "", "issue", ""),
            ("removeIssueFromCycle", "remove", "", "issue", "cycle"),
            ("addToFavorites", "add", "", "favorite", ""),
            ("getIssueById", "get", "", "issue", ""),
            ("API-create-a-comment", "create", "", "api comment", ""),
            ("list_updates", "list", "", "update", ""),
            ("get", "get", "", "", ""),
            ("", "", "", "", ""),
        ] {
            let said = |word: &str| Some(word.to_owned()).filter(|word| !word.is_empty());
            assert_eq!(read(name), (said(verb), said(act), things.into(), place.into()), "{name}");
        }
    }

    #[test]
    fn the_forms_of_a_word_are_one() {
        for forms in [
            ["branch", "branches"],
            ["reply", "replies"],
            ["status", "statuses"],
            ["book", "bookings"],
            ["star", "starred"],
            ["need", "needs"],
            ["address", "addresses"],
        ] {
            assert_eq!(stem(forms[0]), stem(forms[1]));
        }
    }
}
