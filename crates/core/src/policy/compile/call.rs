//! Calls that a rule makes on its own account: probe, confirm, undo.

use super::check::{AFTERWARDS, ASKED, ASKING, CONFIRMING, Checker, json_of};
use crate::policy::diagnostic::DiagnosticCode::{BadCall, BadTemplate};
use crate::policy::file::{CallTable, ConfirmTable, Entries, ProbeTable, Spot, TomlValue};
use crate::policy::rule::{CallBody, Confirm, Probe, RuleCall, SAME_SERVER};
use crate::policy::template::Template;
use crate::undo::BodyForm;
use std::ops::Range;
use std::time::Duration;

/// Long enough for a read replica that lags as replicas usually do.
const QUIET_DEFAULT: Duration = Duration::from_secs(5);

/// How long a confirmation is asked for when the rule does not say.
const WITHIN_DEFAULT: Duration = Duration::from_secs(120);

/// More arguments than this no probe needs.
const ARGUMENTS_MAX: usize = 200;

/// `own_server`: every action that the rule matches is a tool of a server, so `./tool` says something.
pub fn probe(check: &mut Checker<'_>, table: &Spot<ProbeTable>, own_server: bool) -> Option<Probe> {
    let probe = &table.value;
    let parts = CallParts {
        cmd: &probe.cmd,
        mcp: &probe.mcp,
        args: &probe.args,
        http: &probe.http,
        body: None,
        own_server,
    };
    let call = parts.call(check, "probe", &table.span, ASKING, true);
    let found = probe.found.as_ref().map(|text| check.expression(text, ASKED));
    if found.is_none() && probe.cmd.is_none() {
        check.absent(
            table,
            BadCall,
            "`probe` has no `found`",
            "say when our effect is there, such as found = \"resp.items.exists(i, i.id == args.id)\"",
        );
    }
    let reply = probe.reply.as_ref().map(|text| check.expression(text, ASKED));
    let quiet = check.time(probe.quiet.as_ref()).unwrap_or(QUIET_DEFAULT);
    Some(Probe {
        call: call?,
        found: match found {
            Some(found) => Some(found?),
            None => None,
        },
        reply: match reply {
            Some(reply) => Some(reply?),
            None => None,
        },
        quiet,
        before: probe.before.unwrap_or(false),
    })
}

pub fn confirm(check: &mut Checker<'_>, table: &Spot<ConfirmTable>, own_server: bool) -> Option<Confirm> {
    let confirm = &table.value;
    let parts = CallParts {
        cmd: &confirm.cmd,
        mcp: &confirm.mcp,
        args: &confirm.args,
        http: &confirm.http,
        body: None,
        own_server,
    };
    let call = parts.call(check, "confirm", &table.span, AFTERWARDS, true);
    let ok = match &confirm.ok {
        Some(text) => check.expression(text, CONFIRMING),
        None => {
            check.absent(
                table,
                BadCall,
                "`confirm` has no `ok`",
                "say when it is true, such as ok = \"resp.status == 'succeeded'\" or ok = \"resp.exit == 0\"",
            );
            None
        }
    };
    let within = check.some_time(confirm.within.as_ref()).unwrap_or(WITHIN_DEFAULT);
    Some(Confirm { call: call?, ok: ok?, within })
}

pub fn undo(check: &mut Checker<'_>, table: &Spot<CallTable>, own_server: bool) -> Option<RuleCall> {
    let undo = &table.value;
    let body = match (&undo.body, &undo.form) {
        (None, None) => None,
        (Some(body), None) => Some((body, BodyForm::Json)),
        (None, Some(form)) => Some((form, BodyForm::Urlencoded)),
        (Some(_), Some(form)) => {
            let help = "give one of them: `body` is sent as JSON, `form` as a web form";
            check.error(form, BadCall, "`body` and `form` exclude each other", help);
            None
        }
    };
    let parts =
        CallParts { cmd: &undo.cmd, mcp: &undo.mcp, args: &undo.args, http: &undo.http, body, own_server };
    parts.call(check, "undo", &table.span, AFTERWARDS, false)
}

struct CallParts<'a> {
    cmd: &'a Option<Spot<Vec<Spot<String>>>>,
    mcp: &'a Option<Spot<String>>,
    args: &'a Option<Spot<Entries<TomlValue>>>,
    http: &'a Option<Spot<String>>,
    /// The body of an undo, and its form.
    body: Option<(&'a Spot<Entries<TomlValue>>, BodyForm)>,
    own_server: bool,
}

impl CallParts<'_> {
    fn call(
        &self,
        check: &mut Checker<'_>,
        name: &str,
        span: &Range<usize>,
        roots: &[&str],
        read_only: bool,
    ) -> Option<RuleCall> {
        if let (None, Some(args)) = (self.mcp, self.args) {
            let help = "arguments of a command stand in `cmd`, those of a request in its URL";
            check.error(args, BadCall, "`args` goes with `mcp` only", help);
        }
        if let (None, Some((body, _))) = (self.http, self.body) {
            let help = "only a request has a body";
            check.error(body, BadCall, "`body` and `form` go with `http` only", help);
        }
        match (self.cmd, self.mcp, self.http) {
            (Some(cmd), None, None) => command(check, cmd, roots),
            (None, Some(tool), None) => mcp(check, tool, self.args.as_ref(), roots, self.own_server),
            (None, None, Some(request)) => http(check, request, self.body, roots, read_only),
            _ => {
                let given = [self.cmd.is_some(), self.mcp.is_some(), self.http.is_some()];
                let count = given.into_iter().filter(|given| *given).count();
                let message = if count == 0 {
                    format!("`{name}` has none of cmd, mcp, http")
                } else {
                    format!("`{name}` has {count} of cmd, mcp, http")
                };
                check.absent(span, BadCall, message, "give exactly one of them");
                None
            }
        }
    }
}

fn command(check: &mut Checker<'_>, cmd: &Spot<Vec<Spot<String>>>, roots: &[&str]) -> Option<RuleCall> {
    if cmd.value.first().is_none_or(|program| program.value.trim().is_empty()) {
        let help = "write the program and its arguments, such as [\"kubectl\", \"get\", \"{argv[3]}\"]";
        check.error(cmd, BadCall, "`cmd` names no program", help);
        return None;
    }
    // The command comes from the operator alone; only its arguments may come from a call.
    if let Some(program) = cmd.value.first().filter(|program| program.value.contains('{')) {
        let help = "the program is fixed; only its arguments can be filled in";
        check.error(program, BadCall, "the program cannot be a template", help);
        return None;
    }
    too_many(check, cmd.value.len(), &cmd.span)?;
    let argv: Vec<_> = cmd.value.iter().map(|text| check.template(text, roots)).collect();
    Some(RuleCall::Command { argv: argv.into_iter().collect::<Option<_>>()? })
}

fn mcp(
    check: &mut Checker<'_>,
    tool: &Spot<String>,
    args: Option<&Spot<Entries<TomlValue>>>,
    roots: &[&str],
    own_server: bool,
) -> Option<RuleCall> {
    let (server, name) = tool.value.split_once('/').unwrap_or_default();
    if server.is_empty() || name.is_empty() || server == ".." || tool.value.contains(['{', '}', '*']) {
        let message = format!("{:?} does not name a tool", tool.value);
        check.error(
            tool,
            BadCall,
            message,
            "write server/tool, such as billing/list_charges, or ./tool for the action's own server",
        );
        return None;
    }
    // Found now, and not when an outcome is in doubt: such a question could never be asked.
    if server == SAME_SERVER && !own_server {
        let message = format!(
            "{:?} is a tool of the action's own server, and this rule matches actions without one",
            tool.value
        );
        let help = "begin `match` with mcp:, or name the server";
        check.error(tool, BadCall, message, help);
        return None;
    }
    let args = match args {
        Some(args) => entries(check, args, roots)?,
        None => Vec::new(),
    };
    Some(RuleCall::Mcp { tool: tool.value.clone(), args })
}

fn entries(
    check: &mut Checker<'_>,
    table: &Spot<Entries<TomlValue>>,
    roots: &[&str],
) -> Option<Vec<(String, Template)>> {
    too_many(check, table.value.0.len(), &table.span)?;
    let mut filled = Vec::new();
    for (name, value) in &table.value.0 {
        let template = value_template(check, &value.0, &name.span)?;
        check.roots(&template, &name.span, roots);
        filled.push((name.value.clone(), template));
    }
    Some(filled)
}

fn value_template(check: &mut Checker<'_>, value: &toml::Value, span: &Range<usize>) -> Option<Template> {
    let problem = match value {
        toml::Value::String(text) => match Template::parse(text) {
            Ok(template) => return Some(template),
            Err(error) => format!("bad template: {error}"),
        },
        toml::Value::Array(items) => {
            let items: Option<Vec<_>> = items.iter().map(|item| value_template(check, item, span)).collect();
            return items.map(Template::list);
        }
        toml::Value::Table(table) => {
            let members: Option<Vec<_>> = table
                .iter()
                .map(|(name, item)| Some((name.clone(), value_template(check, item, span)?)))
                .collect();
            return members.map(Template::table);
        }
        other => match json_of(other) {
            Some(json) => return Some(Template::literal(json)),
            None => "this value has no JSON form".to_owned(),
        },
    };
    check.error(span, BadTemplate, problem, "`{args.name}` is filled in; write `{{` for a brace");
    None
}

fn http(
    check: &mut Checker<'_>,
    request: &Spot<String>,
    body: Option<(&Spot<Entries<TomlValue>>, BodyForm)>,
    roots: &[&str],
    read_only: bool,
) -> Option<RuleCall> {
    let help = "write a method and a URL, such as GET https://api.example.com/charges/{reply.id}";
    let Some((method, url)) = request.value.split_once(' ') else {
        check.error(request, BadCall, "`http` needs a method and a URL", help);
        return None;
    };
    let url = url.trim();
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
    if !known.contains(&method) {
        check.error(request, BadCall, format!("{method:?} is not a method"), help);
        return None;
    }
    if read_only && !["GET", "HEAD"].contains(&method) {
        let help = "a question is asked with GET or HEAD";
        check.error(request, BadCall, format!("{method} may change something"), help);
        return None;
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    // The host comes from the operator alone: an argument that chose it could send the probe's credentials away.
    if host.is_empty() || host.contains(['{', '}', '@', ' ']) {
        check.error(request, BadCall, "the URL needs a fixed scheme and host", help);
        return None;
    }
    if url.contains('#') {
        let help = "a fragment is never sent; leave it out";
        check.error(request, BadCall, "the URL has a fragment", help);
        return None;
    }
    let body = match body {
        Some((body, _)) if ["GET", "HEAD"].contains(&method) => {
            let help = "a request that reads has no body";
            check.error(body, BadCall, format!("{method} takes no body"), help);
            return None;
        }
        Some((table, form)) => Some(CallBody { form, members: entries(check, table, roots)? }),
        None => None,
    };
    let url = check.template(&Spot { value: url.to_owned(), span: request.span.clone() }, roots)?;
    Some(RuleCall::Http { method: method.to_owned(), url, body })
}

fn too_many(check: &mut Checker<'_>, count: usize, span: &Range<usize>) -> Option<()> {
    if count <= ARGUMENTS_MAX {
        return Some(());
    }
    let message = format!("more than {ARGUMENTS_MAX} arguments");
    check.error(span, BadCall, message, "a question that long is not read by anyone");
    None
}
