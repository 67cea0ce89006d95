//! Clauses of an error that say that something was done: `Label invalid; issue created`. Whoever says so may have
//! done what was asked for, so an error that refuses and says it as well is no refusal.
//!
//! The same words also describe things (`the message sent is too long`), and explain a refusal by what was done earlier
//! (`rate limit exceeded: 5 mails sent today`). What can only mean that is passed over; the rest counts.

/// Words by which a tool says what it has done. `Scheduled`, `uploaded` and `deleted` are left out: in errors they
/// mostly describe a thing (`the uploaded file`).
const DONE: &[&str] = &[
    "sent",
    "created",
    "posted",
    "opened",
    "published",
    "charged",
    "paid",
    "refunded",
    "processed",
    "transferred",
    "placed",
    "booked",
    "ordered",
    "submitted",
    "deployed",
    "delivered",
    "merged",
    "invited",
    "confirmed",
    "completed",
    "executed",
    "triggered",
    "dispatched",
    "shipped",
    "queued",
    "added",
    "filed",
    "emailed",
    "forwarded",
    "launched",
    "provisioned",
];

/// Right before a word of [`DONE`] these make it a state, a place or a name: `the invoice is paid`, `in sent items`,
/// `unknown status sent`, `draft or sent`.
const IN_A_STATE: &[&str] = &[
    "is",
    "are",
    "already",
    "being",
    "a",
    "an",
    "the",
    "of",
    "in",
    "to",
    "from",
    "for",
    "recently",
    "newly",
    "previously",
    "or",
    "field",
    "column",
    "property",
    "parameter",
    "status",
    "state",
    "type",
    "value",
    "key",
    "option",
    "argument",
    "event",
];

/// Words that make of it something that was not done, or that is yet to be done. `Without` and `only` do so before it
/// alone: `sent without its copy`, `sent to ann only`.
const NOT_DONE: &[&str] = &[
    "not", "no", "never", "nothing", "none", "neither", "nor", "cannot", "can", "could", "be", "must",
    "should", "would", "unable", "fails", "failed", "if", "unless", "until", "before", "when", "once", "too",
    "need", "needs", "invalid", "missing", "required", "requires", "expected", "limit", "maximum", "denied",
    "declined", "rejected", "0",
];

/// Words that ask for it, or ask whether it was done, and do not say so: `make sure that a mail was sent`.
const ASKED_FOR: &[&str] = &["unknown", "ensure", "sure", "whether", "please", "verify"];

/// After a word of [`DONE`] these make it the description of a thing: `the message sent is too long`.
const OF_THE_THING: &[&str] =
    &["is", "are", "was", "were", "has", "have", "does", "do", "exceeds", "contains", "by"];

/// Behind these stands what was left out, or how it is: `sent with no copy`, `created without a required label`.
const WITH: &[&str] = &["with", "without", "except", "because"];

/// Words of refusal. What was done may explain them.
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

/// Words that say that it was done now, whatever went wrong.
const ALL_THE_SAME: &[&str] = &["anyway", "nevertheless", "nonetheless", "regardless", "still"];

/// When something was done that is history.
const EARLIER: &[&str] = &["ago", "last", "yesterday", "today", "earlier", "previously", "per"];

/// What carries a call. How it was made or sent says nothing of what the call asked for, where access is refused.
const CARRIES_A_CALL: &[&str] =
    &["request", "key", "token", "secret", "credential", "credentials", "certificate", "session", "webhook"];
const OF_ACCESS: &[&str] =
    &["denied", "forbidden", "unauthorized", "signature", "token", "key", "credential", "secret"];

/// What comes before a list of values.
const LISTS: &[&str] =
    &["one of", "allowed", "values", "options", "choices", "possible", "supported", "available", "expected"];

/// What names a field whose value alone says it: `"status": "sent"`.
const SAYS_HOW_IT_IS: &[&str] = &["status", "state", "result"];

/// The clause of an error that says that something was done. Expects it in lower case.
pub fn clause(lower: &str) -> Option<String> {
    find(lower, |clause| clause.says_done() && !clause.explains())
}

/// Whether a word about how it went says that something was done: `Created`, `Mail sent to 2 of 3`. One that refuses
/// first leaves it open, or says that it was done all the same.
pub fn is_said(message: &str) -> bool {
    let one_of_two = format!("{}: {}; and", SAYS_HOW_IT_IS[0], message.to_lowercase());
    let is_plain = |clause: &Clause<'_>| clause.refused_in.is_none() && clause.goes_on;
    find(&one_of_two, |clause| clause.says_done() && (clause.is_done_now() || is_plain(clause))).is_some()
}

/// Whether one of the words denies that something was done.
pub fn is_denied(lower: &str) -> bool {
    words(lower).iter().any(|word| denies(word) || *word == "only")
}

fn denies(word: &str) -> bool {
    NOT_DONE.contains(&word) || word.ends_with("n't")
}

/// A part of a text between two marks of punctuation.
#[derive(Debug)]
struct Clause<'a> {
    words: Vec<&'a str>,
    /// The first word of them that is one of [`DONE`].
    at: Option<usize>,
    /// What stands before it, and the mark between them; `&` is an `and`.
    before: &'a str,
    mark: char,
    /// A colon follows: `created:` or `sent at:` is the name of a field.
    label: bool,
    goes_on: bool,
    /// An earlier clause refuses: this one.
    refused_in: Option<&'a str>,
    /// It is one of a list of values.
    listed: bool,
}

fn find(lower: &str, counts: impl Fn(&Clause<'_>) -> bool) -> Option<String> {
    let mut text = lower.replace('\u{2019}', "'");
    for turn in [" but ", " however ", " although ", " though ", " so "] {
        text = text.replace(turn, "; ");
    }
    text = text.replace(" and ", " & ");
    for dash in [" - ", " \u{2013} ", " \u{2014} "] {
        text = text.replace(dash, ", ");
    }
    let text = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    let (mut rest, mut before, mut mark) = (text, "", '.');
    let (mut refused_in, mut listed) = (None, false);
    loop {
        let end = rest.find(['.', ',', ';', ':', '!', '\n', '&', '(', '[', '{']);
        let (this, next) = rest.split_at(end.unwrap_or(rest.len()));
        let words = words(this);
        let at = words.iter().position(|word| DONE.contains(word));
        listed &= !matches!(mark, '.' | ';' | '!');
        let label = next.starts_with(':');
        let clause = Clause { words, at, before, mark, label, goes_on: end.is_some(), refused_in, listed };
        if counts(&clause) {
            return Some(this.trim().to_owned());
        }
        listed |= LISTS.iter().any(|phrase| this.contains(phrase));
        if REFUSES.iter().any(|phrase| this.contains(phrase)) {
            refused_in = Some(this);
        }
        (before, mark) = (this, next.chars().next()?);
        rest = &next[1..];
    }
}

impl Clause<'_> {
    fn says_done(&self) -> bool {
        let Some(at) = self.at else { return false };
        let (first, last) = (&self.words[..at], &self.words[at + 1..]);
        let field =
            self.label && (last.is_empty() && at == 0 || matches!(last.last(), Some(&("at" | "by" | "on"))));
        let state = first.last().is_some_and(|word| IN_A_STATE.contains(word));
        let alternative = last.first() == Some(&"or");
        // `Cannot be created and sent`: what denies the one denies the other.
        let goes_on_with_a_verb = self.mark == '&' && at == 0 && !self.is_done_now();
        !field
            && !self.is_value()
            && !Self::is_denied(first, last)
            && !state
            && !alternative
            && !goes_on_with_a_verb
            && !self.is_a_request_with_something()
            && !describes_a_thing(last)
    }

    /// One word alone is one of a list, mostly.
    fn is_value(&self) -> bool {
        let alone = self.words.len() == 1 && !matches!(self.mark, '.' | ';' | '!');
        (alone || self.listed) && !words(self.before).last().is_some_and(|name| SAYS_HOW_IT_IS.contains(name))
    }

    fn is_denied(first: &[&str], last: &[&str]) -> bool {
        let counts_some = |rest: &[&str]| rest.first().is_some_and(|word| is_number(word) && *word != "0");
        let only =
            first.iter().position(|word| *word == "only").is_some_and(|at| !counts_some(&first[at + 1..]));
        let mut before_what_is_left_out = last.iter().take_while(|word| !WITH.contains(word));
        first.contains(&"without")
            || only
            || first.iter().any(|word| denies(word) || ASKED_FOR.contains(word))
            || before_what_is_left_out.any(|word| denies(word))
    }

    /// Whether it says that it was done now, whatever refused before.
    fn is_done_now(&self) -> bool {
        let without_it = self.words.windows(2).any(|pair| {
            pair[0] == "without" && matches!(pair[1], "it" | "them" | "him" | "her" | "this" | "that" | "its")
        });
        let partly =
            self.words.windows(3).any(|words| is_number(words[0]) && words[1] == "of" && is_number(words[2]));
        self.words.iter().any(|word| ALL_THE_SAME.contains(word))
            || without_it
            || partly
            || self.names_what_was_made()
    }

    /// A number behind a noun is a name, `issue 12`; before one it only counts, `12 mails`.
    fn names_what_was_made(&self) -> bool {
        self.words[..self.at.unwrap_or_default()].iter().skip(1).any(|word| is_number(word))
    }

    /// The noun of `the key was created`, if it is only one: a friend request is something that is sent.
    fn subject(&self) -> Option<&str> {
        const BESIDE: &[&str] = &["the", "your", "this", "was", "were", "has", "have", "been"];
        let mut nouns = self.words[..self.at?].iter().filter(|word| !BESIDE.contains(word));
        let noun = nouns.next();
        noun.filter(|_| nouns.next().is_none()).copied()
    }

    /// `Request sent with invalid token`: that a request was sent, everybody knows.
    fn is_a_request_with_something(&self) -> bool {
        self.subject() == Some("request") && self.words.iter().any(|word| WITH.contains(word))
    }

    /// Whether it only says why an earlier clause refuses, by what was done before: `branch not found: it was merged`.
    fn explains(&self) -> bool {
        let (Some(refusal), Some(at)) = (self.refused_in, self.at) else { return false };
        if self.is_done_now() {
            return false;
        }
        let first = &self.words[..at];
        let tail = &self.words[at + 1..];
        let starts_with = |words: &[&str]| self.words.first().is_some_and(|word| words.contains(word));
        let passive = first.iter().any(|word| matches!(*word, "was" | "were" | "been"));
        let about_who_asks = !tail.is_empty()
            && self.subject().is_some_and(|word| CARRIES_A_CALL.contains(&word))
            && OF_ACCESS.iter().any(|word| refusal.contains(word));
        // A colon right behind the refusal gives its reason.
        let reason = self.mark == ':'
            && self.before == refusal
            && (starts_with(&["it", "they", "this", "you"])
                || self.words.first().is_some_and(|word| is_number(word))
                || passive && !tail.is_empty());
        about_who_asks || reason || tail.iter().any(|word| EARLIER.contains(word))
    }
}

fn describes_a_thing(last: &[&str]) -> bool {
    let left_out = last.iter().position(|word| *word == "without").unwrap_or(last.len());
    let is_past = |word: &str| matches!(word, "was" | "were");
    last.iter().enumerate().any(|(at, word)| OF_THE_THING.contains(word) && (at < left_out || !is_past(word)))
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

fn words(clause: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
    clause.split(|c| !is_part(c)).filter(|word| !word.trim_matches('\'').is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors behind which something may have happened. To run them again may do it twice.
    const DOUBTFUL: &[&str] = &[
        "Label invalid; issue created",
        "User bob not found; message sent to ann only",
        "Issue created",
        "Invalid label. Issue created.",
        "Invalid label. Created.",
        "Label not found, issue created",
        "Label not found (issue created)",
        "Label not found: issue created",
        "Label 'bug' not found - issue opened",
        "Label not found \u{2014} the issue was opened",
        "Label not found but pull request opened",
        "Label not found and issue created without it",
        "Label not found and the issue was created",
        "Label not found so the issue was created without labels",
        "Assignee does not exist. The issue was created without an assignee",
        "Attachment not found. The message was sent with no attachment",
        "Attachment not found; message sent without required attachment",
        "Invalid cc; mail has been sent",
        "Invalid cc ignored; mail sent to bob@example.com",
        "Error: reviewer not found\nPull request opened",
        "Permission denied while pinning. Message posted",
        "Too many recipients; 3 of 5 messages sent",
        "Only 3 of 5 messages sent; 2 addresses are invalid",
        "Rate limit exceeded while adding labels; issue created",
        "Rate limit exceeded; 3 messages sent",
        "Quota exceeded. Order placed",
        "Receipt not allowed for guests; card charged",
        "Webhook rejected; deployment triggered",
        "Coupon invalid, order placed at full price",
        "Tag not found. Note that the post was published",
        "Team not found! User invited",
        "Topic required; channel created with default topic",
        "Milestone does not exist: issue was created without it",
        "{\"error\":\"label invalid; issue created\"}",
        "{\"success\":false,\"message\":\"Label invalid. Issue created\"}",
        "{\"errors\":[\"user bob not found\"],\"message\":\"message sent to ann only\"}",
        "Validation failed for label: invalid; ticket filed",
        "Forbidden to notify the owner; invoice emailed",
        "Invalid time zone, meeting booked in UTC",
        "Warning: thumbnail rejected; video published",
        "Sent, although the reply address is invalid",
        "It was sent. Read receipt: not allowed",
        "Label invalid; it was created",
        "Approver not found. Leave request submitted to the manager",
        "Friend request sent with an invalid greeting",
        "Scope invalid. The token was created with default scopes",
        "Your request was submitted; approver not found",
    ];

    /// Errors that refuse, though they have the same words.
    const PLAIN: &[&str] = &[
        "issue not created: label invalid",
        "message was not sent",
        "nothing was created",
        "nothing was sent; user bob not found",
        "Label invalid; issue not created",
        "Label invalid; no issue created",
        "Label invalid, so the issue was not created",
        "Label invalid and no issue was created",
        "Label invalid; nothing was opened",
        "Label invalid; 0 issues created",
        "Label invalid; created 0 issues",
        "Label invalid. The issue wasn't created",
        "Label invalid: the issue could not be created",
        "User bob not found; message could not be sent",
        "User bob not found; message cannot be sent to ann only",
        "User bob not found. Neither message was sent",
        "The issue cannot be created and assigned: user not found",
        "The mail could not be created and sent to the customer: invalid address",
        "The order must be created and paid first",
        "Failed to get message sent: not found",
        "Issue was never created: forbidden",
        "Rate limit exceeded: 5 emails sent in the last 60 seconds. Retry after 30s",
        "Rate limit exceeded: 5 mails sent",
        "Quota exceeded. 100 messages sent today",
        "Too many requests; 100 messages sent per minute",
        "Invalid state: payment was refunded last week",
        "Invalid state. The payment was refunded 3 days ago",
        "Branch not found: it was merged",
        "Branch not found. It was merged last week",
        "Invalid token: it was created for another workspace",
        "Permission denied. The key was created without write scope",
        "Invalid signature. The request was sent with an old key",
        "Request sent with invalid token",
        "Rejected: message was sent from an unverified domain",
        "Not allowed: you can only edit messages sent within 48 hours",
        "Forbidden. Messages sent by others are not editable",
        "Invalid status: must be one of draft, sent or paid",
        "Invalid status. Allowed values: draft|sent|paid",
        "Invalid status. Supported: draft, sent, paid",
        "Unknown status sent",
        "No such column: created",
        "Unknown column created in field list",
        "Message not found; look in sent items",
        "Customer not found. Please make sure that the customer was created first",
        "Invalid id: verify that the issue was opened in this project",
        "created must be a date",
        "The message sent is too long",
        "Orders placed without an account are not supported",
        "The invoice is paid, it cannot be voided: invalid state",
    ];

    #[test]
    fn an_error_that_says_that_something_was_done_is_seen_wherever_it_says_so() {
        for text in DOUBTFUL {
            assert!(clause(&text.to_lowercase()).is_some(), "{text}");
        }
    }

    #[test]
    fn a_refusal_is_none_though_it_speaks_of_what_was_not_done_or_was_done_before() {
        for text in PLAIN {
            assert_eq!(clause(&text.to_lowercase()), None, "{text}");
        }
    }

    #[test]
    fn a_message_that_refuses_first_does_not_say_that_all_is_well() {
        for message in
            ["Created", "Mail sent to 2 of 3", "Issue created", "Invalid label; issue created anyway"]
        {
            assert!(is_said(message), "{message}");
        }
        for message in
            ["Label invalid; issue created", "Not created", "User not found. Message sent to ann only"]
        {
            assert!(!is_said(message), "{message}");
        }
    }
}
