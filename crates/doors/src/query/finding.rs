//! The finding of a probe or a confirm: yes, no, or unknown. A failing read, a page of several and an expression that
//! fails find nothing.

use super::pages::LINK;
use super::response::{QueryResponse, ResponseKind};
use crate::redact::Secrets;
use semel_core::answer::EffectWord;
use semel_core::json::Json;
use semel_core::policy::expression::Expression;
use semel_core::policy::rule::{Confirm, Probe};
use semel_gate::upstream::ProbeAnswer;

#[derive(Debug, Clone, PartialEq)]
pub enum QueryFinding {
    Yes {
        reply: Option<FoundReply>,
        /// Why the rule's `reply` could not be made of the answer.
        reply_failed: Option<String>,
    },
    No,
    Unknown(String),
}

/// The reply that was lost, as far as the question brought it back.
#[derive(Debug, Clone, PartialEq)]
pub enum FoundReply {
    /// The value that the rule's `reply` makes of the answer.
    Value(Json),
    /// The output of a command.
    Printed(Vec<u8>),
}

impl QueryFinding {
    /// For the gate, without secrets. `record` gives the reply to record and the word for the effect.
    pub fn for_gate(
        self,
        secrets: &Secrets,
        record: impl FnOnce(Option<FoundReply>) -> (Option<Vec<u8>>, EffectWord),
    ) -> ProbeAnswer {
        match self {
            QueryFinding::No => ProbeAnswer::No,
            QueryFinding::Unknown(why) => {
                ProbeAnswer::Unknown { why: secrets.out_of_line(&why).into_owned() }
            }
            QueryFinding::Yes { reply, reply_failed } => {
                let (reply, word) = record(reply);
                let reply_failed = reply_failed.map(|why| secrets.out_of_line(&why).into_owned());
                ProbeAnswer::Yes { reply, word: Some(word), reply_failed }
            }
        }
    }
}

impl FoundReply {
    /// As rules see it.
    pub fn into_json(self) -> Json {
        match self {
            FoundReply::Value(value) => value,
            FoundReply::Printed(stdout) => Json::str(&String::from_utf8_lossy(&stdout)),
        }
    }
}

pub fn read_probe(probe: &Probe, places: &Json, response: &QueryResponse) -> QueryFinding {
    let Some(found) = &probe.found else { return by_exit(response) };
    match answers(found, places, response) {
        Err(why) => QueryFinding::Unknown(why),
        Ok(false) => QueryFinding::No,
        Ok(true) => {
            let made = probe.reply.as_ref().map(|reply| response.eval(reply, places)).transpose();
            let (reply, reply_failed) = match made {
                Ok(reply) => (reply, None),
                Err(why) => (None, Some(why.to_string())),
            };
            QueryFinding::Yes {
                reply: reply.map(FoundReply::Value).or_else(|| printed(response)),
                reply_failed,
            }
        }
    }
}

pub fn read_confirm(confirm: &Confirm, places: &Json, response: &QueryResponse) -> Result<bool, String> {
    answers(&confirm.ok, places, response)
}

fn answers(expression: &Expression, places: &Json, response: &QueryResponse) -> Result<bool, String> {
    if let ResponseKind::Http { status, .. } = response.kind {
        readable(status, expression)?;
    }
    let said = response.eval_bool(expression, places).map_err(|error| error.to_string())?;
    match &response.more {
        // An item that is not on this page may be on the next; an expression that speaks of that has thought of it.
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
fn by_exit(response: &QueryResponse) -> QueryFinding {
    match &response.kind {
        ResponseKind::Command { exit: Some(0), .. } => {
            QueryFinding::Yes { reply: printed(response), reply_failed: None }
        }
        ResponseKind::Command { exit: Some(1), .. } => QueryFinding::No,
        ResponseKind::Command { exit: Some(code), .. } => {
            QueryFinding::Unknown(format!("it exited with {code}"))
        }
        ResponseKind::Command { exit: None, .. } => QueryFinding::Unknown("it died by a signal".into()),
        ResponseKind::Tool | ResponseKind::Http { .. } => {
            QueryFinding::Unknown("the probe does not say what to look for".into())
        }
    }
}

fn printed(response: &QueryResponse) -> Option<FoundReply> {
    match &response.kind {
        ResponseKind::Command { printed, .. } if !printed.is_empty() => {
            Some(FoundReply::Printed(printed.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::json;

    fn says(expression: &str, status: u16, part: Option<&str>, body: &str) -> Result<bool, String> {
        let places = json::parse(r#"{"args": {"id": "ch_1"}}"#).unwrap();
        let headers = json::parse(r#"{"x-total": "1"}"#).unwrap();
        let kind = ResponseKind::Http { status, headers };
        let response =
            QueryResponse { resp: json::parse(body).unwrap(), kind, more: part.map(str::to_owned) };
        answers(&Expression::compile(expression).unwrap(), &places, &response)
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
