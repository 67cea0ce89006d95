//! Clauses of an error that say that something was done: `Label invalid; issue created`. Whoever says so may have
//! done what was asked for, so an error that refuses and says it as well is no refusal.
//!
//! The principle: a word of something done counts wherever it stands. It does not count if
//! - its own clause denies it **before** it ([`Clause::is_denied`]): `no issue was created`, `could not be sent`.
//!   What is denied behind it is something else: `message posted cannot be pinned`;
//! - it is a name, a value or a field and no verb ([`Clause::is_a_name`]): `unknown column created`;
//! - it describes what the call brought along, or a kind of thing ([`Clause::describes`]): `the token sent has
//!   expired`;
//! - it tells how something was found, in a word that is not the tool's own ([`Clause::is_a_state_found`]): `invoice
//!   has been paid`, of a tool that voids;
//! - it tells of another time ([`Clause::is_history`]): `you have sent 500 emails`, where a quota is exceeded.
//!
//! Whatever is left open is counted: a doubt is looked at by somebody, and a refusal is run again.

use super::done_words::{Tool, Whose};
use semel_core::json::Json;

/// The call that an error answers.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub tool: &'a str,
    pub arguments: &'a Json,
}

/// Words of refusal.
pub const REFUSES: &[&str] = &[
    "rate limit",
    "too many",
    "quota",
    "exceeded",
    "not found",
    "invalid",
    "denied",
    "forbidden",
    "unauthorized",
    "declined",
    "rejected",
    "must be",
    "required",
    "not allowed",
    "does not exist",
];

/// Behind `not` these refuse, and the clause is over: `label not found issue created`.
const IS_NOT: &[&str] = &[
    "found",
    "allowed",
    "exist",
    "valid",
    "supported",
    "permitted",
    "available",
    "authorized",
    "authorised",
    "authenticated",
    "recognized",
];

/// Words that end a clause.
const TURNS: &[&str] =
    &["but", "however", "although", "though", "so", "yet", "after", "while", "because", "since", "whereas"];

/// What may stand between a denial, or a subject, and its verb.
const AUXILIARY: &[&str] = &[
    "is", "are", "was", "were", "be", "been", "being", "has", "have", "had", "get", "gets", "got", "yet",
    "ever", "also", "just", "already", "newly", "now",
];

const PASSIVE: &[&str] = &["is", "are", "was", "were", "been", "being", "already"];

/// Deny the verb that follows right behind them, as do words that end in `n't`.
const NOT: &[&str] = &["not", "never", "cannot"];

/// Deny what is done to the few words behind them.
const NONE_OF: &[&str] = &["no", "nothing", "none", "neither", "nor", "without", "0"];

/// With `be`, `have` or `get` behind them these say what may come, should be or cannot be.
const MODAL: &[&str] = &[
    "can", "could", "cannot", "may", "might", "must", "should", "would", "to", "unable", "failed", "fails",
    "required", "need", "needs",
];

/// What the modal verbs have behind them where something is done to somebody.
const TO_BE: &[&str] = &["be", "have", "get", "been", "being"];

/// Lead on to something else than what is denied.
const PREPOSITIONS: &[&str] = &["of", "to", "for", "on", "from", "in", "with"];

/// Begin to speak of what was done, whatever was denied before.
const SPEAKS_OF_IT: &[&str] = &["that", "which", "we"];

/// A clause that has one of these before the verb does not say that it was done.
const CONDITION: &[&str] = &[
    "if", "unless", "until", "whether", "before", "once", "ensure", "sure", "verify", "please", "check",
    "try", "who", "unknown",
];

/// Before a word of something done and with a noun behind it: `failed to label the created issue`.
const BEFORE_AN_ATTRIBUTE: &[&str] =
    &["a", "an", "the", "this", "that", "your", "of", "to", "for", "on", "from", "in", "with"];

/// Behind a word of something done these make it the name of something: `created date`, `in sent items`.
const PROPERTY: &[&str] = &[
    "date",
    "time",
    "timestamp",
    "amount",
    "field",
    "column",
    "status",
    "state",
    "items",
    "folder",
    "property",
    "parameter",
    "value",
];

/// Before it, these do.
const NAMES: &[&str] = &["field", "column", "property", "parameter", "option", "argument", "filter"];

/// So do these, if the clause finds fault with them; else they say how it is: `"status": "sent"`.
const NAMES_IF_WRONG: &[&str] = &["status", "state", "type", "value", "event", "key"];
const WRONG: &[&str] = &["unknown", "invalid", "unsupported", "bad", "no", "unrecognized"];

/// What comes before a list of values.
const LISTS: &[&str] = &[
    "one",
    "allowed",
    "values",
    "options",
    "choices",
    "possible",
    "supported",
    "available",
    "expected",
    "use",
    "be",
    "either",
];

/// What a field may be asked to be.
const SHAPES: &[&str] =
    &["date", "time", "timestamp", "format", "type", "string", "number", "boolean", "integer", "value"];

/// Words for handing over what a call brings along.
const HANDED_OVER: &[&str] = &["sent", "posted", "submitted", "made", "uploaded", "generated"];

/// What a call brings along, and is refused for. A tool whose name has the noun may have made one.
const BROUGHT: &[&str] = &[
    "request",
    "requests",
    "body",
    "payload",
    "header",
    "headers",
    "data",
    "form",
    "json",
    "file",
    "key",
    "token",
    "secret",
    "credential",
    "credentials",
    "certificate",
    "session",
    "signature",
    "webhook",
];
const OF_ACCESS: &[&str] = &[
    "denied",
    "forbidden",
    "unauthorized",
    "signature",
    "token",
    "key",
    "credential",
    "credentials",
    "secret",
];

const OF_A_QUOTA: &[&str] = &["quota", "limit", "limits", "exceeded", "many", "throttled"];

const SPANS: &[&str] = &["second", "minute", "hour", "day", "night", "week", "month", "year"];

/// Words that say that it was done now, whatever went wrong.
const ALL_THE_SAME: &[&str] = &["anyway", "nevertheless", "nonetheless", "regardless", "still"];

/// How far back a clause is explained by others: a sentence or a list is not longer, and a text may have thousands.
const CLAUSES_BACK_MAX: usize = 100;

/// The clause of an error that says that something was done. Expects it in lower case.
pub fn clause(lower: &str, asked: Asked<'_>) -> Option<String> {
    let tool = Tool::named(asked.tool);
    let text = without_addresses(&without_arguments(lower.replace('\u{2019}', "'"), asked.arguments));
    let clauses = clauses(&text);
    (0..clauses.len())
        .find(|at| Clause { all: &clauses, at: *at, tool: &tool }.says_done())
        .map(|at| clauses[at].words.join(" "))
}

/// Whether a word about how it went says that something was done: `Created`, `Mail sent to 2 of 3`. One that refuses
/// as well leaves it open, unless it says that it was done all the same.
pub fn is_said(message: &str) -> bool {
    let lower = message.to_lowercase();
    let anyway = || words(&lower).iter().any(|word| ALL_THE_SAME.contains(word));
    let plain = !REFUSES.iter().any(|phrase| lower.contains(phrase));
    clause(&lower, Asked { tool: "", arguments: &Json::Null }).is_some() && (plain || anyway())
}

/// A part of a text between two marks, or two words that end a clause.
#[derive(Debug)]
struct Part<'a> {
    words: Vec<&'a str>,
    /// What stands before it and behind it; `&` is an `and`.
    mark: char,
    end: char,
}

fn clauses(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut open = Part { words: Vec::new(), mark: '.', end: '.' };
    for (piece, end) in pieces(text) {
        for word in words(piece) {
            let denied = open.words.last().is_some_and(|last| *last == "not" || last.ends_with("n't"));
            match word {
                "and" => open.close('&', &mut parts),
                _ if TURNS.contains(&word) => open.close(';', &mut parts),
                _ => open.words.push(word),
            }
            if denied && IS_NOT.contains(&word) {
                open.close(';', &mut parts);
            }
        }
        open.close(end, &mut parts);
    }
    parts
}

impl<'a> Part<'a> {
    /// Ends here, and begins anew behind the mark.
    fn close(&mut self, end: char, parts: &mut Vec<Part<'a>>) {
        let next = Part { words: Vec::new(), mark: end, end };
        let part = std::mem::replace(self, next);
        if !part.words.is_empty() {
            parts.push(Part { end, ..part });
        }
    }
}

/// The text between marks, each with the mark behind it.
fn pieces(text: &str) -> Vec<(&str, char)> {
    let mut pieces = Vec::new();
    let (mut from, mut before) = (0, ' ');
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let next = rest.peek().map_or(' ', |(_, next)| *next);
        let hyphen = c == '-' && (before.is_whitespace() || matches!(next, ' ' | '-' | '>'));
        let part = c.is_alphanumeric()
            || matches!(c, ' ' | '\'' | '"' | '`' | '_' | '#' | '@' | '$' | '%' | '*' | '+');
        let is_mark = hyphen || !part && c != '-' && c != '\\';
        if is_mark {
            pieces.push((&text[from..at], if c == '=' { ':' } else { c }));
            from = at + c.len_utf8();
        }
        before = c;
    }
    pieces.push((&text[from..], '.'));
    pieces
}

fn words(clause: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
    let bare = |word: &'_ str| -> bool { !word.is_empty() };
    clause.split(|c| !is_part(c)).map(|word| word.trim_matches('\'')).filter(|word| bare(word)).collect()
}

/// Addresses and paths have words in them that nobody says.
fn without_addresses(text: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | ']' | '}' | '>' | '|');
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let scheme = rest[..at].strip_suffix(':').filter(|_| rest[at..].starts_with("//"));
        let begins = match scheme {
            Some(before) => {
                Some(before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '+').len())
            }
            None => {
                let free =
                    rest[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || "\"'`(=".contains(c));
                let named = rest[at + 1..].starts_with(|c: char| c.is_alphanumeric());
                (free && named).then_some(at)
            }
        };
        let Some(begins) = begins else {
            kept.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        };
        kept.push_str(&rest[..begins]);
        let address = &rest[begins..];
        let address = &address[..address.find(is_end).unwrap_or(address.len())];
        let address = address.trim_end_matches(['.', ',', ';', ':', '!', '?', '\u{2026}']);
        rest = &rest[begins + address.len()..];
    }
    kept.push_str(rest);
    kept
}

/// What is quoted from the call's own arguments is not what the tool says.
fn without_arguments(text: String, arguments: &Json) -> String {
    match arguments {
        Json::String(given) if given.len() <= text.len() && given.chars().any(char::is_alphabetic) => {
            let given = given.to_lowercase();
            ['\'', '"', '`']
                .iter()
                .fold(text, |text, quote| text.replace(&format!("{quote}{given}{quote}"), "''"))
        }
        Json::Array(items) => items.iter().fold(text, without_arguments),
        Json::Object(members) => members.iter().fold(text, |text, (_, value)| without_arguments(text, value)),
        _ => text,
    }
}

/// One clause among those of its text.
#[derive(Debug, Clone, Copy)]
struct Clause<'a> {
    all: &'a [Part<'a>],
    at: usize,
    tool: &'a Tool,
}

/// A word of something done, and what stands before and behind it in its clause.
#[derive(Debug)]
struct Verb<'a> {
    word: &'a str,
    whose: Whose,
    first: Vec<&'a str>,
    last: &'a [&'a str],
}

impl Verb<'_> {
    /// `The created issue`; also `created issue 12 was not labelled`, where another verb follows.
    fn is_attribute(&self) -> bool {
        let described = self.first.last().is_some_and(|word| BEFORE_AN_ATTRIBUTE.contains(word));
        let another_verb = || has(self.last.get(1..).unwrap_or_default(), AUXILIARY);
        !self.last.is_empty() && (described || self.first.is_empty() && another_verb())
    }

    /// The noun of `the key was created`, if it is only one: a friend request is something that is sent.
    fn subject(&self) -> Option<&str> {
        const BESIDE: &[&str] = &["the", "a", "your", "this", "you"];
        let mut nouns = self.first.iter().filter(|word| !BESIDE.contains(word) && !AUXILIARY.contains(word));
        let noun = nouns.next();
        noun.filter(|_| nouns.next().is_none()).copied()
    }
}

impl<'a> Clause<'a> {
    fn part(&self) -> &'a Part<'a> {
        &self.all[self.at]
    }

    fn before(&self) -> Option<&'a Part<'a>> {
        self.at.checked_sub(1).map(|at| &self.all[at])
    }

    /// Whether a clause before this one has one of the words.
    fn comes_after(&self, words: &[&str]) -> bool {
        self.all[..self.at].iter().rev().take(CLAUSES_BACK_MAX).any(|part| has(&part.words, words))
    }

    fn says_done(&self) -> bool {
        (0..self.part().words.len()).filter_map(|at| self.verb(at)).any(|verb| self.counts(&verb))
    }

    fn verb(&self, at: usize) -> Option<Verb<'a>> {
        let words = &self.part().words;
        let (word, last) = (words[at], &words[at + 1..]);
        let goes =
            word == "went" && last.first().is_some_and(|word| matches!(*word, "through" | "out" | "ahead"));
        let live = word == "live" && has(&words[..at], &["is", "now"]);
        let whose = if goes || live { Whose::Own } else { self.tool.whose(word)? };
        // `Cannot be created and sent`, `was closed and merged`: what is said of the one is said of the other.
        let shared = self.before().filter(|_| at == 0 && self.part().mark == '&');
        let first = shared.map_or(&words[..at], |before| &before.words).to_vec();
        Some(Verb { word, whose, first, last })
    }

    fn counts(&self, verb: &Verb<'_>) -> bool {
        !Self::is_denied(verb)
            && !self.is_asked()
            && !self.is_denied_behind(verb)
            && !self.is_a_name(verb)
            && !self.describes(verb)
            && !Self::is_a_state_found(verb)
            && !self.is_history(verb)
    }

    /// Denied by what stands before it and belongs to it.
    fn is_denied(verb: &Verb<'_>) -> bool {
        // `Failed to label the created issue`: what is denied is the other verb.
        if verb.is_attribute() {
            return false;
        }
        // `Could not be added to the issue that was created`: behind such a word something else is spoken of.
        let speaks_of_it = verb.first.iter().rposition(|word| SPEAKS_OF_IT.contains(word));
        let first = &verb.first[speaks_of_it.map_or(0, |at| at + 1)..];
        let between = |at: usize| &first[at + 1..];
        let only_auxiliaries =
            |words: &[&str]| words.iter().all(|word| AUXILIARY.contains(word) || word.ends_with("ly"));
        let to_be = |words: &[&str]| {
            let passive = words.iter().rposition(|word| TO_BE.contains(word));
            // `Failed to get the label for the issue created`: that is about something else.
            passive.is_some_and(|at| !has(&words[at + 1..], PREPOSITIONS))
        };
        let counts_some = |words: &[&str]| words.first().is_some_and(|word| is_number(word) && *word != "0");
        // `Please note that`, and yet `verify that`.
        let is_condition =
            |word: &&str| CONDITION.contains(word) && (speaks_of_it.is_none() || *word != "please");
        if verb.first.iter().any(is_condition) {
            return true;
        }
        first.iter().enumerate().any(|(at, word)| {
            let not = NOT.contains(word) || word.ends_with("n't");
            let few = || between(at).iter().filter(|word| !AUXILIARY.contains(word)).count() <= 4;
            not && only_auxiliaries(between(at))
                || NONE_OF.contains(word) && few() && !has(between(at), &["to"])
                || (MODAL.contains(word) || not) && to_be(between(at))
                || *word == "only" && !counts_some(between(at)) && !has(between(at), &["was", "were"])
        })
    }

    /// `Has it been created?`
    fn is_asked(&self) -> bool {
        const ASKS: &[&str] = &[
            "is", "are", "was", "were", "has", "have", "did", "do", "does", "can", "could", "may", "who",
            "why", "how", "what", "which", "where",
        ];
        self.part().end == '?' && self.part().words.first().is_some_and(|word| ASKS.contains(word))
    }

    /// `Created: no`, `created 0 issues`.
    fn is_denied_behind(&self, verb: &Verb<'_>) -> bool {
        const NO: &[&str] = &["no", "false", "none", "null", "0", "never", "nothing"];
        let value = self.all.get(self.at + 1).filter(|_| self.part().end == ':' && verb.last.is_empty());
        let is_no = value.is_some_and(|value| value.words.len() == 1 && has(&value.words, NO));
        is_no || verb.last.first().is_some_and(|word| matches!(*word, "0" | "nothing"))
    }

    /// A field, a value or another name: no verb.
    fn is_a_name(&self, verb: &Verb<'_>) -> bool {
        let Verb { first, last, .. } = verb;
        let (words, before) = (&self.part().words, self.before());
        let named = |names: &[&str], word: Option<&&str>| {
            word.is_some_and(|word| names.contains(word) && !self.tool.is_about(word))
        };
        let alone = words.len() == 1;
        let name_before = match before {
            Some(before) if alone && self.part().mark == ':' => &before.words,
            _ => first,
        };
        let is_named = named(NAMES, name_before.last())
            || has(name_before, WRONG) && named(NAMES_IF_WRONG, name_before.last());
        // `Created must be a date`, `created: invalid date`.
        let asked_to_be =
            |words: &[&str]| words.first().is_some_and(|word| matches!(*word, "must" | "should" | "is"));
        let behind =
            self.all.get(self.at + 1).filter(|_| self.part().end == ':').map(|part| part.words.as_slice());
        let is_label = last.is_empty() || last.len() == 1 && matches!(last[0], "at" | "by" | "on");
        let is_field = first.is_empty()
            && (asked_to_be(last)
                || is_label && behind.is_some_and(|behind| asked_to_be(behind) || has(behind, SHAPES)));
        is_named || is_field || named(PROPERTY, last.first()) || self.is_listed(verb)
    }

    /// One of some values: `must be one of: draft, sent or paid`.
    fn is_listed(&self, verb: &Verb<'_>) -> bool {
        let Verb { first, last, .. } = verb;
        let goes_on = |part: &&Part<'_>| !matches!(part.end, '.' | ';' | '!' | '?');
        let sentence = self.all[..self.at].iter().rev().take(CLAUSES_BACK_MAX).take_while(goes_on);
        let listed_before = || sentence.clone().any(|part| has(&part.words, LISTS));
        let begins = first.last().is_none_or(|word| *word == "or" || LISTS.contains(word));
        let ends = last.first().is_none_or(|word| *word == "or");
        begins && ends && (has(first, LISTS) || listed_before())
    }

    /// What the call brought along, or a kind of thing.
    fn describes(&self, verb: &Verb<'_>) -> bool {
        let Verb { word, whose, first, last } = verb;
        let is_brought = |noun: &str| BROUGHT.contains(&noun) && !self.tool.is_about(noun);
        let handed_over = HANDED_OVER.contains(word);
        // `The message sent is too long`, `the uploaded file exceeds 5 MB`.
        let too_much = handed_over
            && has(last, &["too", "exceeds", "empty"])
            && has(last, &["is", "was", "are", "exceeds"]);
        let how = &["with", "without", "in", "from", "is", "was", "has"];
        let came_with_the_call = handed_over
            && (last.first().is_some_and(|noun| is_brought(noun))
                || verb.subject().is_some_and(is_brought) && has(last, how));
        // `Permission denied. The key was created without write scope`: it is about who asks.
        let access_before = self.comes_after(OF_ACCESS);
        let meant = match (verb.subject(), self.before()) {
            (Some("it"), Some(before)) if self.part().mark == ':' => {
                before.words.iter().find(|noun| is_brought(noun)).copied()
            }
            (subject, _) => subject.filter(|noun| is_brought(noun)),
        };
        let who_asks = access_before && meant.is_some() && !last.is_empty();
        // `Messages sent by others are not editable`: any of them.
        let relative = first.iter().position(|word| matches!(*word, "that" | "which"));
        let noun = relative.map_or(first.as_slice(), |at| &first[..at]).last();
        let plural =
            noun.is_some_and(|noun| noun.ends_with('s') && !noun.ends_with("ss") && !PASSIVE.contains(noun));
        let specific = first.iter().any(|word| is_number(word) || matches!(*word, "the" | "your" | "all"));
        let now = &["are", "have", "can", "cannot", "can't", "aren't", "must", "may"];
        let kind = plural && !specific && has(last, now);
        // `Issue created by bob can't be edited`.
        let others = &["another", "other", "others", "someone", "else"];
        let by = last.first() == Some(&"by") && (has(last, others) || *whose != Whose::Own && has(last, now));
        too_much || came_with_the_call || who_asks || kind || by
    }

    /// How something was found, in the words of another kind of work: `invoice has been paid`. Only the tool's own
    /// words may be about this call; a bare report, `card charged`, is one in any words.
    fn is_a_state_found(verb: &Verb<'_>) -> bool {
        let numbered = verb.last.iter().take(2).any(|word| is_number(word));
        match verb.whose {
            Whose::Own => false,
            Whose::Open => verb.is_attribute() && !numbered || verb.first.last() == Some(&"already"),
            Whose::Foreign => verb.is_attribute() || has(&verb.first, PASSIVE),
        }
    }

    /// What was done at another time, or counts against a quota.
    fn is_history(&self, verb: &Verb<'_>) -> bool {
        let Verb { first, last, .. } = verb;
        let is_span = |word: &str| SPANS.contains(&word.strip_suffix('s').unwrap_or(word));
        let pair = |holds: &dyn Fn(&str, &str) -> bool| last.windows(2).any(|pair| holds(pair[0], pair[1]));
        let ago = pair(&|span, ago| ago == "ago" && is_span(span) && !span.starts_with("second"));
        let last_week = pair(&|of, span| matches!(of, "last" | "past") && (is_span(span) || is_number(span)));
        let exists = self.comes_after(&["exists", "taken"]);
        let dated = exists
            && pair(&|on, year| matches!(on, "on" | "in" | "since") && year.len() == 4 && is_number(year));
        let quota = self.comes_after(OF_A_QUOTA) || has(first, OF_A_QUOTA);
        let per_day = pair(&|per, span| matches!(per, "per" | "this") && is_span(span));
        let you_have =
            first.windows(2).any(|pair| pair[0] == "you" && pair[1] == "have") || has(first, &["you've"]);
        let counted = has(first, &["many"]) || first.iter().chain(*last).any(|word| is_number(word));
        let all = [first.as_slice(), last].concat();
        let partly =
            all.windows(3).any(|w| w[1] == "of" && is_number(w[0]) && is_number(w[2]) && w[0] != w[2]);
        let against_a_quota = quota && counted && !partly && (has(last, &["today"]) || per_day || you_have);
        ago || has(last, &["yesterday"])
            || last_week
            || dated
            || against_a_quota
            || has(first, &["many"]) && quota
    }
}

fn has(words: &[&str], one_of: &[&str]) -> bool {
    words.iter().any(|word| one_of.contains(word))
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}
