//! What an answer says: yes, no, or nothing. A failing read, a page of several and an expression that fails say
//! nothing.

use super::heard::{Heard, Kind};
use super::http::LINK;
use super::matter::Matter;
use semel_core::json::Json;
use semel_core::policy::expression::Expression;
use semel_core::policy::rule::{Confirm, Probe};

#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    Yes {
        reply: Option<Reply>,
        /// Why the rule's `reply` could not be made of the answer.
        reply_failed: Option<String>,
    },
    No,
    Unknown(String),
}

/// The reply that was lost, as far as the question brought it back.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// What the rule's `reply` makes of the answer.
    Value(Json),
    /// What a command printed.
    Printed(Vec<u8>),
}

pub fn of_probe(probe: &Probe, matter: &Matter<'_>, heard: &Heard) -> Told {
    let Some(found) = &probe.found else { return by_exit(heard) };
    match answers(found, matter, heard) {
        Err(why) => Told::Unknown(why),
        Ok(false) => Told::No,
        Ok(true) => {
            let made = probe.reply.as_ref().map(|reply| heard.eval(reply, matter)).transpose();
            let (reply, reply_failed) = match made {
                Ok(reply) => (reply, None),
                Err(why) => (None, Some(why.to_string())),
            };
            Told::Yes { reply: reply.map(Reply::Value).or_else(|| printed(heard)), reply_failed }
        }
    }
}

pub fn of_confirm(confirm: &Confirm, matter: &Matter<'_>, heard: &Heard) -> Result<bool, String> {
    answers(&confirm.ok, matter, heard)
}

fn answers(expression: &Expression, matter: &Matter<'_>, heard: &Heard) -> Result<bool, String> {
    if let Kind::Http { status, .. } = heard.kind {
        readable(status, expression)?;
    }
    let said = heard.eval_bool(expression, matter).map_err(|error| error.to_string())?;
    match &heard.part {
        // What is not on this page may be on the next; an expression that speaks of that has thought of it.
        Some(word) if !said && !speaks_of(word, expression) => {
            Err(format!("not found, but there are more pages ({word})"))
        }
        _ => Ok(said),
    }
}

/// An answer to the question, rather than news of trouble. "Not there" is one for who asks for the status; whatever
/// else is no success says that the question failed, and no expression can make a yes or a no of that.
fn readable(status: u16, expression: &Expression) -> Result<(), String> {
    let asks = expression.variables().any(|variable| variable == "status");
    match status {
        206 => Err("it answered with partial content (206)".into()),
        200..=299 => Ok(()),
        404 | 410 if asks => Ok(()),
        _ => Err(format!("it answered {status}")),
    }
}

fn speaks_of(word: &str, expression: &Expression) -> bool {
    expression.source().contains(if word == LINK { "resp_headers" } else { word })
}

/// Without an expression the exit code of a command answers.
fn by_exit(heard: &Heard) -> Told {
    match &heard.kind {
        Kind::Command { exit: Some(0), .. } => Told::Yes { reply: printed(heard), reply_failed: None },
        Kind::Command { exit: Some(1), .. } => Told::No,
        Kind::Command { exit: Some(code), .. } => Told::Unknown(format!("it exited with {code}")),
        Kind::Command { exit: None, .. } => Told::Unknown("it died by a signal".into()),
        Kind::Tool | Kind::Http { .. } => Told::Unknown("the probe does not say what to look for".into()),
    }
}

fn printed(heard: &Heard) -> Option<Reply> {
    match &heard.kind {
        Kind::Command { printed, .. } if !printed.is_empty() => Some(Reply::Printed(printed.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::matter::Lent;
    use super::*;
    use semel_core::json;

    fn says(expression: &str, status: u16, part: Option<&str>, body: &str) -> Result<bool, String> {
        let arguments = json::parse(r#"{"args": {"id": "ch_1"}}"#).unwrap();
        let matter = Matter {
            action: "http:POST x/charges",
            arguments: &arguments,
            effect: None,
            reply: None,
            lent: Lent::Nothing,
        };
        let headers = json::parse(r#"{"x-total": "1"}"#).unwrap();
        let kind = Kind::Http { status, headers };
        let heard = Heard { resp: json::parse(body).unwrap(), kind, part: part.map(str::to_owned) };
        answers(&Expression::compile(expression).unwrap(), &matter, &heard)
    }

    #[test]
    fn a_success_is_read_by_the_expression() {
        assert_eq!(says("resp.id == args.id", 200, None, r#"{"id": "ch_1"}"#), Ok(true));
        assert_eq!(says("resp.id == args.id", 200, None, r#"{"id": "ch_2"}"#), Ok(false));
        assert_eq!(says("resp_headers['x-total'] == '1'", 200, None, "null"), Ok(true));
        assert!(
            says("resp.id == args.id", 200, None, "{}").is_err(),
            "an expression that fails says nothing"
        );
    }

    #[test]
    fn not_there_is_an_answer_for_who_asks_for_the_status() {
        assert_eq!(says("status == 200", 404, None, "null"), Ok(false));
        assert_eq!(says("status == 200 && resp.paid", 410, None, "null"), Ok(false));
        assert!(says("resp.paid", 404, None, r#"{"paid": false}"#).is_err());
    }

    #[test]
    fn trouble_is_never_a_yes_or_a_no() {
        for status in [301, 304, 400, 401, 403, 408, 409, 425, 429, 500, 502, 503, 504, 206] {
            assert!(says("status == 200", status, None, "null").is_err(), "{status} is no no");
            assert!(says("status != 404", status, None, "null").is_err(), "{status} is no yes");
        }
    }

    #[test]
    fn what_is_not_on_one_page_of_several_is_not_known() {
        let items = r#"{"items": [], "has_more": true}"#;
        assert!(says("resp.items.exists(i, i == args.id)", 200, Some("has_more"), items).is_err());
        let found = r#"{"items": ["ch_1"], "has_more": true}"#;
        assert_eq!(says("resp.items.exists(i, i == args.id)", 200, Some("has_more"), found), Ok(true));
        let thought_of = "resp.items.exists(i, i == args.id) ? true : resp.has_more ? resp.unclear : false";
        assert!(says(thought_of, 200, Some("has_more"), items).is_err());
        let newest_only = "resp.items.exists(i, i == args.id) || !resp.has_more && false";
        assert_eq!(says(newest_only, 200, Some("has_more"), items), Ok(false));
        let counted = "size(resp.items.filter(i, i == args.id)) > 0";
        assert!(says(counted, 200, Some("has_more"), items).is_err(), "to count is not to have seen all");
        assert!(says("resp_headers['link'] == ''", 200, Some(LINK), items).is_err(), "it fails");
    }
}
