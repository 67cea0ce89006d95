//! `semel doctor`: is everything in its place? It repairs nothing. A ledger in a file stays as it is; on a server, opening
//! founds it, and a durable write is timed.

mod file;
mod ledger;
mod notify;
mod policy;
mod remote;
mod server;

use crate::args::DoctorArgs;
use crate::context::{Context, EXIT_FINDINGS};
use crate::output::hint;
use crate::server_access;
use crate::terminal_text;
use owo_colors::OwoColorize;
use semel::ledger_address::LedgerAddress;
use semel_ledger::place::Place;
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;

pub fn run(context: &Context, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut checks = Checks::default();
    match server_access::of(context) {
        Ok(None) => ledger(context, &mut checks, args.full),
        Ok(Some(access)) => {
            remote::examine(&mut checks, access);
            directories_count(&mut checks);
        }
        Err(error) => checks.fail("server", format!("{error:#}"), hint(&error)),
    }
    policy::examine(context, &mut checks);
    Ok(report(context, &checks.0))
}

fn ledger(context: &Context, checks: &mut Checks, full: bool) {
    match context.ledger_address() {
        Err(error) => checks.fail("ledger", format!("{error:#}"), hint(&error)),
        Ok(address @ LedgerAddress::Server { .. }) => {
            server::examine(context, checks, &address, full);
            directories_count(checks);
        }
        Ok(LedgerAddress::File(file)) => file::examine(context, checks, &Place::at(file), full),
    }
}

/// Two hosts of one ledger may keep one project in two directories.
fn directories_count(checks: &mut Checks) {
    let detail = "on a shared ledger: a command without a key runs once in each directory, and so once for each checkout";
    checks.warn(
        "directories",
        detail,
        "give commands that several hosts may run a --key, or a rule with a key",
    );
}

fn report(context: &Context, checks: &[DoctorCheck]) -> ExitCode {
    let ok = checks.iter().all(|check| check.status != Status::Fail);
    if context.output.json {
        let none: Option<&str> = None;
        context
            .output
            .document(&serde_json::json!({"schema_version": 1, "items": checks, "next": none, "ok": ok}));
    } else {
        let mut lines = Vec::new();
        for DoctorCheck { check, status, detail, hint } in checks {
            let word = match status {
                Status::Ok => "ok  ".green().to_string(),
                Status::Warn => "warn".yellow().to_string(),
                Status::Fail => "FAIL".red().to_string(),
            };
            lines.push(format!("{word}  {check:<15}  {}", terminal_text::line(detail)));
            lines.extend(hint.as_ref().map(|hint| format!("{:23}hint: {}", "", terminal_text::line(hint))));
        }
        context.output.data(lines.join("\n"));
    }
    if ok { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FINDINGS) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct DoctorCheck {
    check: &'static str,
    status: Status,
    detail: String,
    hint: Option<String>,
}

#[derive(Debug, Default)]
struct Checks(Vec<DoctorCheck>);

impl Checks {
    fn ok(&mut self, check: &'static str, detail: impl Into<String>) {
        self.0.push(DoctorCheck { check, status: Status::Ok, detail: detail.into(), hint: None });
    }

    fn warn(&mut self, check: &'static str, detail: impl Into<String>, hint: &str) {
        self.0.push(DoctorCheck {
            check,
            status: Status::Warn,
            detail: detail.into(),
            hint: Some(hint.to_owned()),
        });
    }

    fn fail(&mut self, check: &'static str, detail: impl Into<String>, hint: Option<String>) {
        self.0.push(DoctorCheck { check, status: Status::Fail, detail: detail.into(), hint });
    }
}

/// Two clocks of one machine do not differ by more; a line from further ahead means that the clock was set back.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// The middle one of so many is shown.
const CLAIMS_TIMED: usize = 5;
