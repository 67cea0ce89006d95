//! Errors of something that went wrong after a tool had done its work, or in the middle of it. They outweigh words of
//! refusal: `Email was sent, but its copy was not found` speaks of a mail that is out.

use super::said_done::{Asked, REFUSES};
use super::spoken::Spoken;
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
    "already done",
];

/// What of the error says so.
pub fn said(spoken: &Spoken, asked: Asked<'_>) -> Option<String> {
    let lower = spoken.words.to_lowercase();
    let lower = lower.as_str();
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
    broke().or_else(of_a_model).or_else(|| spoken.says_done(asked))
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

/// Whether it can only mean that it was not done.
pub fn says_that_it_was_not_done(message: &str) -> bool {
    const NOT_DONE: &[&str] = &[
        "not", "no", "never", "nothing", "none", "neither", "nor", "cannot", "can", "could", "be", "must",
        "should", "would", "unable", "fails", "failed", "if", "unless", "until", "before", "when", "once",
        "too", "need", "needs", "invalid", "missing", "required", "requires", "expected", "limit", "maximum",
        "denied", "declined", "rejected", "only", "0",
    ];
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
    let says_so = |phrase: &&str| lower.contains(*phrase);
    let denies = |word: &str| NOT_DONE.contains(&word) || word.ends_with("n't");
    lower.split(|c: char| !c.is_alphanumeric() && c != '\'').any(denies)
        || SAYS_SO.iter().chain(REFUSES).any(says_so)
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::json::Json;

    fn says(text: &str) -> Option<String> {
        said(&Spoken::by_text(text.to_owned()), Asked { tool: "send_message", arguments: &Json::Null })
    }

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
            assert!(says(after).is_some(), "{after}");
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
            "Invalid signature. The webhook was posted with an old secret",
            "The invoice is paid, it cannot be voided: invalid state",
            "RangeError: Invalid time value",
        ] {
            assert_eq!(says(refusal), None, "{refusal}");
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
            assert_eq!(says(text).is_none(), arguments, "{text}");
        }
    }
}
