//! The meaning of an upstream's answer: one table, and the words for what was done.

use super::arguments::BodyShape;
use crate::reply::{REPLY_BYTES_MAX, account, http as reply};
use http::{Method, StatusCode};
use semel_core::answer::EffectWord;
use semel_core::json::Json;
use semel_core::judgement::error_text;
use semel_core::judgement::failure::{FailureMeaning, weigh};
use semel_core::policy::expression::EvalError;
use semel_core::policy::file::{ServerError, Stores};
use semel_core::policy::graphql::{self, GraphqlRequest};
use semel_core::policy::rule::{EffectWording, Failure, Rule, UnclearReply, Unmarked};
use semel_core::policy::upstreams::KeyPolicy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusMeaning {
    Applied,
    /// The upstream took it, and has not done it yet.
    Accepted,
    /// Certainly not applied. `answers_repeats`: under a client's key the same answer is given to a repeat.
    Refused {
        answers_repeats: bool,
    },
    /// The upstream says that it failed, and nothing says that it must happen only once.
    Reported,
    /// It may have been carried out.
    Ambiguous,
}

/// Refusals that speak of the moment, of the credential or of somebody else's request: a repeat may well be served.
const NEVER_STORED: [u16; 7] = [401, 403, 407, 408, 409, 425, 429];

/// `keyed`: the upstream got a key. What it says it stores for a key's repeats says nothing about a request without.
pub fn meaning(status: StatusCode, rule: &Rule, keys: &KeyPolicy, keyed: bool) -> StatusMeaning {
    let refused = |answers_repeats| match rule.failure {
        Failure::Table => StatusMeaning::Refused { answers_repeats },
        Failure::InDoubt => StatusMeaning::Ambiguous,
    };
    match status.as_u16() {
        202 => StatusMeaning::Accepted,
        200..=299 => StatusMeaning::Applied,
        // The upstream wants it sent elsewhere, and has not looked at it.
        307 | 308 => refused(false),
        // A server gave up waiting, or somebody is at work with the same thing or the same key.
        408 | 409 | 425 => StatusMeaning::Ambiguous,
        code @ 400..=499 => refused(!NEVER_STORED.contains(&code)),
        500..=599 if keyed && keys.server_error == ServerError::Final => refused(keys.stores == Stores::All),
        _ => StatusMeaning::Ambiguous,
    }
}

/// Whether an answer says that what was to be removed is not there. Sent again after a doubt, it has converged.
pub fn is_gone(method: &str, status: StatusCode) -> bool {
    method == "DELETE" && matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE)
}

/// The same once the body was read: some APIs answer 200 to everything, and refuse in the body. `Err`: nobody can say.
pub fn within(
    meaning: StatusMeaning,
    rule: &Rule,
    asked: &GraphqlRequest,
    must_happen_once: bool,
    body: &[u8],
) -> Result<StatusMeaning, String> {
    let reply = || reply::value(body);
    match meaning {
        StatusMeaning::Ambiguous | StatusMeaning::Reported => return Ok(meaning),
        _ if rule.failure == Failure::Table && graphql::wants_the_text(asked, reply) => {
            return Ok(StatusMeaning::Refused { answers_repeats: false });
        }
        StatusMeaning::Applied | StatusMeaning::Accepted => {}
        StatusMeaning::Refused { .. } if rule.contradicts_refusal(asked, reply) => {
            return Err("its status refuses, but its body shows a possible effect".into());
        }
        StatusMeaning::Refused { .. } => return Ok(meaning),
    }
    match (rule.refuses(asked, reply), rule.failure) {
        (Ok(false), _) if rule.refused.is_none() && rule.unmarked == Unmarked::Read => {
            unmarked(meaning, rule, must_happen_once, body)
        }
        (Ok(false), _) => Ok(meaning),
        (Ok(true), Failure::Table) => Ok(StatusMeaning::Refused { answers_repeats: true }),
        (Ok(true), Failure::InDoubt) => Err("a refusal, which its rule makes a doubt".into()),
        // It has more than an expression can look through, and nobody refuses at such length.
        (Err(UnclearReply::Expression(EvalError::TooLarge { .. })), _) if body.len() > REPLY_BYTES_MAX => {
            Ok(meaning)
        }
        (Err(error), _) => Err(error.to_string()),
    }
}

/// A success by its status that is nothing but an error in its body.
fn unmarked(
    meaning: StatusMeaning,
    rule: &Rule,
    must_happen_once: bool,
    body: &[u8],
) -> Result<StatusMeaning, String> {
    /// Nobody tells of an error at greater length.
    const BYTES_MAX: usize = 64 * 1024;
    let may_be = body.len() <= BYTES_MAX && body.trim_ascii_start().starts_with(b"{");
    let value = may_be.then(|| reply::value(body)).filter(error_text::is_failure);
    let Some(value) = value else { return Ok(meaning) };
    let says = error_text::read_value(&value);
    match weigh(&says, must_happen_once) {
        FailureMeaning::InDoubt => Err(format!("an error in its body: {}", said(body))),
        _ if rule.failure == Failure::InDoubt => {
            Err("an error in its body, which its rule makes a doubt".into())
        }
        FailureMeaning::Refused => Ok(StatusMeaning::Refused { answers_repeats: false }),
        FailureMeaning::Reported => Ok(StatusMeaning::Reported),
    }
}

/// Whether a success says that it was only taken, and is yet to be done, in the words that a command would use.
pub fn is_only_accepted(body: &[u8]) -> bool {
    // Most do not speak of it, and are not read for it.
    std::str::from_utf8(body).is_ok_and(|text| text.contains("\"status\""))
        && account::read(body).only_accepted
}

/// The word for a success: from the rule, else from status and method, else from the last words of the path.
pub fn effect_word(
    status: StatusCode,
    method: &Method,
    path: &str,
    rule: &Rule,
    reply: impl FnOnce() -> Json,
) -> EffectWord {
    match &rule.effect {
        Some(EffectWording::Word(word)) => return *word,
        Some(EffectWording::Expression(expression)) => {
            let said = expression.eval(&[("reply", &reply())]).ok();
            if let Some(word) = said.and_then(|said| EffectWord::parse(said.as_str()?)) {
                return word;
            }
        }
        None => {}
    }
    if status == StatusCode::CREATED {
        EffectWord::Created
    } else if *method == Method::DELETE {
        EffectWord::Deleted
    } else if sends(path) {
        EffectWord::Sent
    } else {
        EffectWord::Updated
    }
}

/// The status of a success of which only the body is known, or not even that: most APIs answer 201 to a POST that
/// creates something.
pub fn usual_status(
    method: &Method,
    path: &str,
    rule: &Rule,
    shape: &BodyShape,
    keys: &KeyPolicy,
) -> StatusCode {
    let is_document = matches!(shape, BodyShape::Graphql(_) | BodyShape::Document(_));
    let creates = rule.effect_word().map_or(!sends(path), |word| word == EffectWord::Created);
    match *method == Method::POST && creates && !is_document {
        true => StatusCode::from_u16(keys.created_status).unwrap_or(StatusCode::CREATED),
        false => StatusCode::OK,
    }
}

fn sends(path: &str) -> bool {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    ["send", "message", "email", "publish", "notif", "sms"].iter().any(|verb| last.contains(verb))
}

/// Why it was refused, or is not known, in one line: the status and what the body says of it.
pub fn line(status: StatusCode, body: &[u8]) -> String {
    /// A line in a table; the rest stands in the reply.
    const CHARACTERS_MAX: usize = 200;
    let reason = status.canonical_reason().unwrap_or_default();
    let mut line = format!("HTTP {} {reason}", status.as_u16()).trim_end().to_owned();
    let said = said(body);
    if !said.is_empty() {
        line.push_str(": ");
        line.extend(said.chars().map(|c| if c.is_control() { ' ' } else { c }).take(CHARACTERS_MAX));
    }
    line
}

/// The message of an error, where APIs put it.
fn said(body: &[u8]) -> String {
    /// A page is no message.
    const BYTES_MAX: usize = 64 * 1024;
    let text = std::str::from_utf8(body).unwrap_or_default().trim();
    if text.len() > BYTES_MAX || text.starts_with('<') {
        return String::new();
    }
    let Ok(json) = semel_core::json::parse(text) else { return text.to_owned() };
    let places: [&[&str]; 7] = [
        &["error", "message"],
        &["message"],
        &["detail"],
        &["error_description"],
        &["title"],
        &["error"],
        &["errors"],
    ];
    let at = |place: &[&str]| place.iter().try_fold(&json, |json, name| json.get(name));
    let found = places.iter().find_map(|place| at(place));
    found.map_or_else(String::new, |found| found.as_str().map_or_else(|| found.canonical(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::policy::{ActionFacts, Policy};
    use std::sync::Arc;

    fn of(status: u16, keys: &KeyPolicy, failure: Failure) -> StatusMeaning {
        keyed(status, keys, failure, true)
    }

    fn keyed(status: u16, keys: &KeyPolicy, failure: Failure, keyed: bool) -> StatusMeaning {
        let mut rule = Policy::default().rule_for(&ActionFacts::new("http:POST a/b", &Json::Null));
        Arc::make_mut(&mut rule).failure = failure;
        meaning(StatusCode::from_u16(status).unwrap(), &rule, keys, keyed)
    }

    #[test]
    fn a_success_that_nobody_saw_has_the_status_that_its_api_answers_with() {
        let policy = Policy::default();
        let rule = policy.rule_for(&ActionFacts::new("http:POST a/b", &Json::Null));
        let of = |method: Method, path: &str, word: Option<EffectWord>, keys: &KeyPolicy| {
            let rule = Rule { effect: word.map(EffectWording::Word), ..Rule::clone(&rule) };
            usual_status(&method, path, &rule, &BodyShape::Json, keys).as_u16()
        };
        let (most, stripe) =
            (KeyPolicy::default(), KeyPolicy { created_status: 200, ..KeyPolicy::default() });
        assert_eq!(of(Method::POST, "/orders", None, &most), 201);
        assert_eq!(of(Method::POST, "/orders", None, &stripe), 200);
        assert_eq!(of(Method::POST, "/orders/1", Some(EffectWord::Updated), &most), 200);
        assert_eq!(of(Method::POST, "/messages", None, &most), 200);
        assert_eq!(of(Method::POST, "/messages", Some(EffectWord::Created), &most), 201);
        assert_eq!(of(Method::PUT, "/orders/1", Some(EffectWord::Created), &most), 200);
        assert_eq!(of(Method::DELETE, "/orders/1", None, &most), 200);
    }

    #[test]
    fn the_table() {
        let keys = KeyPolicy::default();
        let refused = |answers_repeats| StatusMeaning::Refused { answers_repeats };
        for (statuses, meaning) in [
            (&[200, 201, 204, 206, 299][..], StatusMeaning::Applied),
            (&[202], StatusMeaning::Accepted),
            (&[400, 402, 404, 410, 413, 422, 451, 499], refused(true)),
            (&[401, 403, 407, 429, 307, 308], refused(false)),
            (&[408, 409, 425], StatusMeaning::Ambiguous),
            (&[300, 301, 302, 303, 304, 305], StatusMeaning::Ambiguous),
            (&[500, 501, 502, 503, 504, 529, 599], StatusMeaning::Ambiguous),
            (&[100, 101, 103, 600, 999], StatusMeaning::Ambiguous),
        ] {
            for status in statuses {
                assert_eq!(of(*status, &keys, Failure::Table), meaning, "{status}");
            }
        }
    }

    #[test]
    fn a_success_may_be_only_a_promise() {
        for (body, only) in [
            (r#"{"id": 1, "status": "queued"}"#, true),
            (r#"{"status": "Pending"}"#, true),
            (r#"{"status": "sent"}"#, false),
            (r#"{"status": "sent", "note": "was queued"}"#, false),
            (r#"{"order": {"status": "queued"}}"#, false),
            ("queued", false),
            ("", false),
        ] {
            assert_eq!(is_only_accepted(body.as_bytes()), only, "{body}");
        }
    }

    #[test]
    fn an_upstreams_settings_say_whether_a_server_error_is_final() {
        let keys = |stores, server_error| KeyPolicy { stores, server_error, ..KeyPolicy::default() };
        let all = keys(Stores::All, ServerError::Final);
        assert_eq!(of(500, &all, Failure::Table), StatusMeaning::Refused { answers_repeats: true });
        assert_eq!(
            keyed(500, &all, Failure::Table, false),
            StatusMeaning::Ambiguous,
            "no key, no repeat of it"
        );
        let refusals = keys(Stores::Refusals, ServerError::Final);
        assert_eq!(of(500, &refusals, Failure::Table), StatusMeaning::Refused { answers_repeats: false });
        let resend = keys(Stores::Refusals, ServerError::Resend);
        assert_eq!(of(500, &resend, Failure::Table), StatusMeaning::Ambiguous);
    }

    #[test]
    fn a_rule_can_make_every_error_a_doubt() {
        for status in [307, 400, 402, 404, 429, 500] {
            assert_eq!(
                of(status, &KeyPolicy::default(), Failure::InDoubt),
                StatusMeaning::Ambiguous,
                "{status}"
            );
        }
        assert_eq!(of(200, &KeyPolicy::default(), Failure::InDoubt), StatusMeaning::Applied);
    }

    #[test]
    fn a_line_says_what_the_upstream_said() {
        let of = |body: &str| line(StatusCode::PAYMENT_REQUIRED, body.as_bytes());
        assert_eq!(
            of(r#"{"error":{"message":"card\ndeclined","code":"x"}}"#),
            "HTTP 402 Payment Required: card declined"
        );
        assert_eq!(of(r#"{"errors":[{"a":1}]}"#), r#"HTTP 402 Payment Required: [{"a":1}]"#);
        assert_eq!(of("<html>"), "HTTP 402 Payment Required");
        assert_eq!(of("no"), "HTTP 402 Payment Required: no");
    }

    #[test]
    fn a_success_has_a_word() {
        let rule = Policy::default().rule_for(&ActionFacts::new("http:POST a/b", &Json::Null));
        let of = |status: u16, method: Method, path: &str| {
            effect_word(StatusCode::from_u16(status).unwrap(), &method, path, &rule, || Json::Null)
        };
        assert_eq!(of(201, Method::POST, "/v1/messages"), EffectWord::Created);
        assert_eq!(of(204, Method::DELETE, "/v1/x"), EffectWord::Deleted);
        assert_eq!(of(200, Method::POST, "/api/chat.postMessage"), EffectWord::Sent);
        assert_eq!(of(200, Method::POST, "/v1/charges"), EffectWord::Updated);
    }
}
