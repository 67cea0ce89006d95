//! Errors of something that went wrong after a tool had done its work, or in the middle of it. They outweigh words of
//! refusal: `Email was sent, but its copy was not found` speaks of a mail that is out.

use semel_core::breakdown;

/// Phrases that say so, in lower case: what validates its output has an output, and what breaks while it reads an
/// answer has one.
const PHRASES: &[&str] = &[
    "output validation",
    "output schema",
    "outputschema",
    "structured content",
    "structuredcontent",
    "response validation",
    "json response",
    "parse response",
    "parsing response",
    "parse api response",
    "unmarshal response",
    "read response",
    "reading response",
    "decode response",
    "decoding response",
    "while waiting for",
    "while polling",
    "after sending",
    "after posting",
    "after creating",
    "captured",
    "succeeded",
    "successfully",
    "already charged",
    "already sent",
    "already paid",
    "already done",
];

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
];

/// Before a word of [`DONE`] these make it a state that something is in: `the invoice is paid`.
const IN_A_STATE: &[&str] = &["is", "are", "already", "being", "a", "an", "the", "of"];

/// Words that make of it something that was not done, or that is yet to be done. `Without` does so only before it.
const NOT_DONE: &[&str] = &[
    "not", "no", "never", "nothing", "none", "neither", "nor", "cannot", "can", "could", "be", "must",
    "should", "would", "unable", "fails", "failed", "if", "unless", "until", "before", "when", "once", "too",
    "only", "need", "needs", "invalid", "missing", "required", "requires", "expected", "limit", "maximum",
    "denied", "declined", "rejected", "0",
];

/// After a word of [`DONE`] these make it the description of a thing: `the message sent is too long`.
const OF_THE_THING: &[&str] =
    &["is", "are", "was", "were", "has", "have", "does", "do", "exceeds", "contains", "by"];

/// Words of refusal behind which what was done only explains the refusal (`rate limit exceeded: 5 mails sent`, `invalid
/// token: it was created for another workspace`), unless one of [`ALL_THE_SAME`] says that it was done now, or what was
/// made is named by its number (`invalid label; issue 12 was created without it`).
const REFUSES: &[&str] = &[
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
const ALL_THE_SAME: &[&str] = &["anyway", "nevertheless", "nonetheless", "regardless", "still"];

/// What names a field whose value alone says it: `"status": "sent"`.
const SAYS_HOW_IT_IS: &[&str] = &["status", "state", "result"];

/// What of the error says so. Expects it in lower case, as it came otherwise.
pub fn said(lower: &str) -> Option<String> {
    if is_about_arguments(lower) {
        return None;
    }
    let checked = checked_model(lower);
    let phrase = || PHRASES.iter().find(|phrase| lower.contains(*phrase)).copied();
    let of_a_model = || {
        let from = checked.and(lower.find("validation error"))?;
        lower[from..].lines().next().map(str::to_owned)
    };
    let broke = || phrase().or_else(|| breakdown::exception(lower)).map(str::to_owned);
    broke().or_else(of_a_model).or_else(|| done_before_it_failed(lower))
}

/// Whether these are the words of a framework that looked at the arguments and did not run the tool. They quote the
/// arguments, which may say anything.
pub fn is_about_arguments(lower: &str) -> bool {
    // The official SDK of Python, where a server has no framework above it.
    lower.starts_with("input validation error") || checked_model(lower) == Some(Model::Arguments)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    Arguments,
    Other,
}

/// Whose shape pydantic complains about. The frameworks of Python check a tool's arguments and what it returns with the
/// same words, `2 validation errors for NAME`. The official SDK names the arguments of `charge` `chargeArguments`, and
/// FastMCP `call[charge]`. Any other name is the result's, or a model within the tool.
fn checked_model(lower: &str) -> Option<Model> {
    let at = ["validation error for ", "validation errors for "]
        .iter()
        .find_map(|phrase| Some((lower.find(phrase)?, lower.find(phrase)? + phrase.len())));
    let (before, name) = at.map(|(from, to)| (lower[..from].trim(), &lower[to..]))?;
    let name = name.split_whitespace().next().unwrap_or_default().trim_end_matches(':');
    // The framework itself speaks first; further in, a tool may quote another one.
    let before = before.trim_end_matches(|c: char| c.is_ascii_digit()).trim();
    let tool = before.strip_prefix("error executing tool ").and_then(|rest| rest.strip_suffix(':'));
    let of_the_sdk = |tool: &str| name.strip_suffix("arguments") == Some(tool);
    // What a tool's author calls what goes into it.
    let of_the_author = ["input", "args", "params"].iter().any(|end| name.ends_with(end));
    let arguments = match tool {
        Some(tool) => of_the_sdk(tool) || name.starts_with("call[") || of_the_author,
        None => {
            before.is_empty() && (name.ends_with("arguments") || name.starts_with("call[") || of_the_author)
        }
    };
    Some(if arguments { Model::Arguments } else { Model::Other })
}

/// Whether a word about how it went says that something was done: `Created`, `Mail sent to 2 of 3`.
pub fn says_that_it_was_done(message: &str) -> bool {
    let one_of_two = format!("{}: {}; and", SAYS_HOW_IT_IS[0], message.to_lowercase());
    done_before_it_failed(&one_of_two).is_some()
}

/// Whether it can only mean that it was not done.
pub fn says_that_it_was_not_done(message: &str) -> bool {
    const SAYS_SO: &[&str] = &[
        "error",
        "fail",
        "denied",
        "expired",
        "forbidden",
        "unauthorized",
        "refused",
        "timed out",
        "timeout",
        "unavailable",
        "conflict",
        "wrong",
        "bad request",
        "already exists",
    ];
    let lower = message.to_lowercase();
    let denied = |word: &&str| NOT_DONE.contains(word) || word.ends_with("n't");
    words(&lower).iter().any(denied) || SAYS_SO.iter().chain(REFUSES).any(|phrase| lower.contains(phrase))
}

/// A clause that says what was done, with something after it: `Created issue #12. Error: label not found`; or behind
/// what went wrong, and all the same.
fn done_before_it_failed(lower: &str) -> Option<String> {
    let mut text = lower.replace('\u{2019}', "'");
    for turn in [" but ", " however ", " although ", " though ", " - ", " \u{2013} ", " \u{2014} "] {
        text = text.replace(turn, "; ");
    }
    let text = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    let (mut rest, mut before, mut refused) = (text, "", false);
    loop {
        let end = rest.find(['.', ',', ';', ':', '!', '\n', '(', '[', '{']);
        let clause = &rest[..end.unwrap_or(rest.len())];
        let label = end.is_some_and(|end| rest[end..].starts_with(':'));
        let words = words(clause);
        let all_the_same = words.iter().any(|word| ALL_THE_SAME.contains(word));
        let counts = all_the_same || if refused { names_what_was_made(&words) } else { end.is_some() };
        if counts && says_done(&words, before, label) {
            return Some(clause.trim().to_owned());
        }
        refused |= REFUSES.iter().any(|phrase| clause.contains(phrase));
        before = clause;
        rest = &rest[end? + 1..];
    }
}

/// A number behind a noun is a name, `issue 12`; before one it only counts, `12 mails`.
fn names_what_was_made(words: &[&str]) -> bool {
    let made = words.iter().position(|word| DONE.contains(word)).unwrap_or_default();
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    words[..made].iter().skip(1).any(is_number)
}

/// `label`: a colon follows, and `created:` or `sent at:` is the name of a field.
fn says_done(words: &[&str], before: &str, label: bool) -> bool {
    let Some(at) = words.iter().position(|word| DONE.contains(word)) else {
        return false;
    };
    let field = label && (words.len() == 1 || matches!(words.last(), Some(&("at" | "by" | "on"))));
    // One word alone is a value: one of a list, mostly.
    let value =
        words.len() == 1 && !self::words(before).last().is_some_and(|name| SAYS_HOW_IT_IS.contains(name));
    let denies = |word: &&str| NOT_DONE.contains(word) || word.ends_with("n't");
    let denied = words.iter().any(denies) || words[..at].contains(&"without");
    let state = at.checked_sub(1).is_some_and(|before| IN_A_STATE.contains(&words[before]));
    let thing = words[at + 1..].iter().any(|word| OF_THE_THING.contains(word));
    !field && !value && !denied && !state && !thing
}

fn words(clause: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
    clause.split(|c| !is_part(c)).filter(|word| !word.trim_matches('\'').is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_before_it_went_wrong_is_seen() {
        for after in [
            "Email was sent, but saving a copy failed: folder not found",
            "Created issue #12. Error: label 'bug' not found",
            "payment processed; receipt not found",
            "Message posted. Warning: pin failed, permission denied",
            "Order placed; 429 Too Many Requests while fetching order details",
            "Transaction submitted but receipt not found yet",
            "Error executing tool send: 3 of 5 messages sent, 2 failed: invalid address",
            "{\"message\":\"Issue created\",\"errors\":[\"label not found\"]}",
            "{\"status\":\"sent\",\"error\":\"copy not found\"}",
            "could not find message after sending: not found",
            "Rate limit hit while waiting for confirmation of transfer",
            "Label 'bug' not found. Issue #12 created anyway",
            "Attachment not found, message was sent anyway",
            "Error: invalid label; issue 12 was created without it",
            "Label 'bug' not found. Issue #12 has been created",
            "Issue #12 created without its label: not found",
            "Rate limit exceeded while adding labels; issue #3 was created",
            "Error: assignee not found (issue #5 was opened)",
            "Issue #12 created (label 'bug' not found)",
            "Message sent - could not save a copy: folder not found",
            "Booking confirmed, but the e-mail address is invalid",
            "Job triggered; 404 Not Found while reading its log",
            "invalid character '<' looking for beginning of value",
            "failed to unmarshal response: invalid",
            "Error parsing response: invalid JSON",
            "SSL: certificate invalid while reading response",
        ] {
            assert!(said(&after.to_lowercase()).is_some(), "{after}");
        }
    }

    #[test]
    fn a_plain_refusal_is_none_though_it_has_the_same_words() {
        for refusal in [
            "Issue was not created: invalid title",
            "no mail was sent: recipient not found",
            "Nothing was sent. Invalid address",
            "The mail wasn't sent, address not found",
            "The mail wasn\u{2019}t sent, address not found",
            "Issue cannot be created: label not found",
            "The customer must be created first; not found",
            "Payment could not be processed; card declined",
            "Only drafts can be sent, message not found",
            "Unable to get it delivered: unknown recipient",
            "Too many emails sent today, quota exceeded",
            "The message sent is too long, bad request",
            "Submitted form has errors: title is required",
            "created: invalid date, created_at: invalid date",
            "sent at: invalid date",
            "unknown field 'created', not allowed",
            "Invalid title. Issue not created.",
            "404 not found: nothing sent.",
            "Request failed with status code 404. Response: {\"message\":\"Not Found\"}",
            "Invalid title, so no issue was created",
            "Invalid status 'foo'. Must be one of: draft, sent, paid",
            "Invalid enum value. Expected 'draft' | 'sent' | 'paid', received 'foo'",
            "[{\"code\":\"invalid_enum_value\",\"options\":[\"draft\",\"sent\",\"paid\"],\"path\":[\"status\"]}]",
            "Rate limit exceeded: 5 emails sent in the last 60 seconds. Retry after 30s",
            "429 Too Many Requests: 100 messages sent today, retry in 60 s",
            "Input validation error: 'Dear Bob. Invoice sent, thanks' is too long",
            "Invoice not found: it was created by another user, access denied",
            "Rate limit exceeded: 5 mails were sent in the last minute",
            "Invalid state: the invoice was not sent",
            "Stopped without a mail being sent: address not found",
            "Sender not found. Issues that were created by a bot have none",
            "Permission denied. The key was created without write scope",
            "Invalid token: it was created for another workspace",
            "Branch not found: it was merged already",
            "Invalid state: payment was refunded last week",
            "Rejected: message was sent from an unverified domain",
            "Invalid signature. The webhook was posted with an old secret",
            "The invoice is paid, it cannot be voided: invalid state",
            "RangeError: Invalid time value",
        ] {
            assert_eq!(said(&refusal.to_lowercase()), None, "{refusal}");
        }
    }

    #[test]
    fn a_complaint_about_arguments_is_told_from_one_about_the_result() {
        for (text, arguments) in [
            (
                "Error executing tool charge: 1 validation error for chargeArguments\namount\n  Field required",
                true,
            ),
            ("1 validation error for call[charge]\namount\n  Missing required argument", true),
            (
                "2 validation errors for call[charge]\nnote\n  Input should be shorter [input_value='was sent, ok']",
                true,
            ),
            ("1 validation error for SendEmailInput\nto\n  Field required", true),
            ("1 validation error for chargeArguments\namount\n  Input should be a valid integer", true),
            (
                "Error executing tool charge: 1 validation error for Charge\namount\n  Input should be a valid integer",
                false,
            ),
            (
                "Error executing tool charge: 1 validation error for chargeOutput\nresult\n  Field required",
                false,
            ),
            (
                "Error executing tool charge: 1 validation error for emailArguments\nto\n  Field required",
                false,
            ),
            ("receipt: 1 validation error for emailArguments\nto\n  Field required", false),
        ] {
            let lower = text.to_lowercase();
            assert_eq!(is_about_arguments(&lower), arguments, "{text}");
            assert_eq!(said(&lower).is_none(), arguments, "{text}");
        }
    }
}
