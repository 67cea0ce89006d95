//! Fills in a rule's undo for one effect, or says why that cannot be done.
//!
//! It happens when the effect is known to have happened, because that is when arguments and reply are both at hand. The
//! stored call holds no secret: an undo that would need one cannot be made later.

use super::rule::{CallBody, RuleCall, server_and_tool};
use super::template::{Encoding, MissingPath, Template};
use crate::json::{Json, Path};
use crate::redact::{REDACTED, redact, secret_values};
use crate::undo::{Undo, UndoBody, UndoCall};

/// It is written with its effect at every step; a call that people write is far shorter.
pub const UNDO_BYTES_MAX: usize = 8 * 1024;

/// The values that an undo is filled in from.
#[derive(Debug, Clone, Copy)]
pub struct UndoInputs<'a> {
    pub action: &'a str,
    /// One object: `args`, `argv`, `body`, …, and `reply`.
    pub places: &'a Json,
    /// Paths that the rule marks as secret.
    pub secret: &'a [Path],
    /// Where a command runs.
    pub cwd: &'a str,
}

impl Undo {
    pub fn fill_in(call: &RuleCall, filling: &UndoInputs<'_>) -> Undo {
        let plain = match UndoCall::filled(call, filling, filling.places) {
            Ok(plain) => plain,
            Err(why) => return Undo::Not(why),
        };
        let shown = redact(filling.places, filling.secret);
        let needs_secret = UndoCall::filled(call, filling, &shown).as_ref() != Ok(&plain)
            || plain.repeats(&secret_values(filling.places, filling.secret))
            || plain.to_string().contains(REDACTED)
            || redact(&plain.as_json(), &[]) != plain.as_json();
        if needs_secret {
            return Undo::Not("it needs a secret, and secrets are not kept".into());
        }
        match plain.bytes() {
            bytes if bytes > UNDO_BYTES_MAX => {
                Undo::Not(format!("it has {bytes} bytes, and at most {UNDO_BYTES_MAX} are kept"))
            }
            _ => Undo::By(plain),
        }
    }
}

impl UndoCall {
    fn filled(call: &RuleCall, filling: &UndoInputs<'_>, places: &Json) -> Result<UndoCall, String> {
        let missing = |missing: MissingPath| missing.to_string();
        match call {
            RuleCall::Mcp { tool, args } => {
                let (server, tool) =
                    server_and_tool(tool, filling.action).ok_or("it does not name a server")?;
                let arguments = members(args, places).map_err(missing)?.canonical();
                Ok(UndoCall::Mcp { server: server.to_owned(), tool: tool.to_owned(), arguments })
            }
            RuleCall::Http { method, url, body } => {
                let url = url.render_url(places).map_err(missing)?;
                let body = body.as_ref().map(|CallBody { form, members: list }| {
                    Ok(UndoBody { form: *form, members: members(list, places)?.canonical() })
                });
                Ok(UndoCall::Http { method: method.clone(), url, body: body.transpose().map_err(missing)? })
            }
            RuleCall::Command { argv } => {
                let argv = argv.iter().map(|word| word.render(places, Encoding::Argument));
                let argv = argv.collect::<Result<_, _>>().map_err(missing)?;
                Ok(UndoCall::Command { argv, cwd: filling.cwd.to_owned() })
            }
        }
    }

    fn as_json(&self) -> Json {
        let json = |text: &str| crate::json::parse(text).unwrap_or(Json::Null);
        match self {
            UndoCall::Mcp { arguments, .. } => json(arguments),
            UndoCall::Http { url, body, .. } => {
                let body = body.as_ref().map_or(Json::Null, |body| json(&body.members));
                Json::Array(vec![Json::str(url), body])
            }
            UndoCall::Command { argv, .. } => Json::Array(argv.iter().map(|word| Json::str(word)).collect()),
        }
    }

    /// Replies like to repeat what they were given.
    fn repeats(&self, secrets: &[String]) -> bool {
        let text = self.to_string();
        secrets.iter().any(|secret| text.contains(secret.as_str()))
    }

    fn bytes(&self) -> usize {
        match self {
            UndoCall::Mcp { server, tool, arguments } => server.len() + tool.len() + arguments.len(),
            UndoCall::Http { url, body, .. } => {
                url.len() + body.as_ref().map_or(0, |body| body.members.len())
            }
            UndoCall::Command { argv, cwd } => argv.iter().map(String::len).sum::<usize>() + cwd.len(),
        }
    }
}

fn members(list: &[(String, Template)], places: &Json) -> Result<Json, MissingPath> {
    let filled = list.iter().map(|(name, template)| Ok((name.clone(), template.value(places)?)));
    Ok(Json::Object(filled.collect::<Result<_, MissingPath>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;
    use crate::undo::BodyForm;

    fn fill(call: &RuleCall, places: &str, secret: &[&str]) -> Undo {
        let secret: Vec<Path> = secret.iter().map(|path| path.parse().unwrap()).collect();
        let places = parse(places).unwrap();
        let action = "mcp:billing/charge";
        Undo::fill_in(call, &UndoInputs { action, places: &places, secret: &secret, cwd: "/work" })
    }

    fn text(template: &str) -> Template {
        Template::parse(template).unwrap()
    }

    fn refund(charge: &str) -> RuleCall {
        RuleCall::Mcp { tool: "./refund".into(), args: vec![("charge".into(), text(charge))] }
    }

    #[test]
    fn an_undo_is_the_rules_call_with_the_values_of_this_one() {
        let places = r#"{"args": {"order": "1001"}, "reply": {"id": "ch/1", "amount": 7}}"#;
        let by = |call: &RuleCall| match fill(call, places, &[]) {
            Undo::By(call) => (call.to_string(), call.action()),
            Undo::Not(why) => panic!("{why}"),
        };
        let expected = (r#"mcp billing/refund {"charge":"ch/1"}"#.into(), "mcp:billing/refund".into());
        assert_eq!(by(&refund("{reply.id}")), expected);
        let members = vec![("amount".to_owned(), text("{reply.amount}"))];
        let delete = RuleCall::Http {
            method: "POST".into(),
            url: text("https://api.example.com/v1/charges/{reply.id}/refund?why=undo"),
            body: Some(CallBody { form: BodyForm::Json, members }),
        };
        let (line, action) = by(&delete);
        assert_eq!(
            line,
            r#"http POST https://api.example.com/v1/charges/ch%2F1/refund?why=undo {"amount":7}"#
        );
        assert_eq!(action, "http:POST api.example.com/v1/charges/ch%2F1/refund");
        let command = RuleCall::Command { argv: vec![text("./bin/refund.sh"), text("{args.order}")] };
        assert_eq!(by(&command), ("cmd ./bin/refund.sh 1001".into(), "cli:refund.sh".into()));
    }

    #[test]
    fn what_cannot_be_filled_in_is_no_undo_and_says_why() {
        let not = |call: &RuleCall, places: &str| match fill(call, places, &[]) {
            Undo::Not(why) => why,
            Undo::By(call) => panic!("{call}"),
        };
        assert_eq!(not(&refund("{reply.id}"), r#"{"args": {}, "reply": {}}"#), "`reply.id` is not there");
        assert_eq!(not(&refund("{reply.id}"), r#"{"args": {}}"#), "`reply.id` is not there");
        let option = RuleCall::Command { argv: vec![text("rm"), text("{reply.path}")] };
        assert!(not(&option, r#"{"reply": {"path": "--force"}}"#).contains("dash"));
        let long = format!(r#"{{"reply": {{"id": "{}"}}}}"#, "x".repeat(UNDO_BYTES_MAX));
        assert!(not(&refund("{reply.id}"), &long).contains("at most"));
    }

    #[test]
    fn an_undo_that_needs_a_secret_is_none() {
        let secret = Undo::Not("it needs a secret, and secrets are not kept".into());
        assert_eq!(fill(&refund("{args.api_key}"), r#"{"args": {"api_key": "hunter22"}}"#, &[]), secret);
        let marked = r#"{"args": {"pin": "hunter22"}, "reply": {"id": "ch_1", "said": "pin hunter22"}}"#;
        assert_eq!(fill(&refund("{args.pin}"), marked, &["args.pin"]), secret);
        assert_eq!(fill(&refund("{reply.said}"), marked, &["args.pin"]), secret, "an echo of it");
        let cleaned = r#"{"args": {}, "reply": {"id": "[redacted]"}}"#;
        assert_eq!(fill(&refund("{reply.id}"), cleaned, &[]), secret, "one that was taken out before");
        assert!(matches!(fill(&refund("{reply.id}"), marked, &["args.pin"]), Undo::By(_)));
        let literal = RuleCall::Mcp { tool: "./refund".into(), args: vec![("token".into(), text("abcdef"))] };
        assert_eq!(fill(&literal, r#"{"args": {}}"#, &[]), secret, "one that the rule spells out");
    }
}
