//! `semel doctor`: is everything in its place? It changes nothing.

use crate::args::DoctorArgs;
use crate::context::{Context, EXIT_FINDINGS};
use crate::ledger_address::{LedgerAddress, Purpose};
use crate::output::{RESTORE, counted, hint, ledger_hint};
use crate::policy_files::{self, Unusable};
use crate::terminal_text;
use crate::{server_access, server_runtime};
use owo_colors::OwoColorize;
use rustix::fs::Access;
use semel_core::effect::State;
use semel_core::ids::EffectId;
use semel_core::policy::diagnostic::Severity;
use semel_core::policy::servers::McpEndpoint;
use semel_core::policy::{Mode, Policy};
use semel_core::time::At;
use semel_doors::remote_gate::{RemoteGate, ServerAccess, ServerTrouble};
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::Ledger;
use semel_ledger::place::Place;
use semel_ledger::spool;
use semel_ledger::sqlite;
use semel_ledger::store::{By, PAGE_ROWS_MAX};
use serde::Serialize;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Below the first a busy ledger fills the disk within days, below the second a single reply may.
const FREE_BYTES_LOW: u64 = 256 * 1024 * 1024;
const FREE_BYTES_OUT: u64 = 8 * 1024 * 1024;

/// Two clocks of one machine do not differ by more; a line from further ahead means that the clock was set back.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// So many are named; whoever restores a backup needs no more.
const NAMED_MAX: usize = 20;

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

/// The middle one of so many is shown.
const CLAIMS_TIMED: usize = 5;

/// One claim in SQLite's log: a few pages.
const CLAIM_BYTES: usize = 16 * 1024;

pub fn run(context: &Context, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut checks = Checks::default();
    match server_access::of(context) {
        Ok(None) => ledger_of(context, &mut checks, args.full)?,
        Ok(Some(access)) => behind_server(&mut checks, access),
        Err(error) => checks.fail("server", format!("{error:#}"), hint(&error)),
    }
    policy(context, &mut checks);
    search_path(context, &mut checks);
    Ok(report(context, &checks.0))
}

/// The ledger behind `SEMEL_SERVER`: whether it is reached, whom it takes us for, and its clock.
fn behind_server(checks: &mut Checks, access: ServerAccess) {
    let runtime = match server_runtime::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return checks.fail("server", error.to_string(), None),
    };
    let clock = SystemClock::start();
    let gate = RemoteGate::new(access, Arc::new(clock.clone()), Mode::Guard);
    let (began, from) = (clock.elapsed(), clock.now());
    let whoami = match runtime.block_on(gate.whoami()) {
        Ok(whoami) => whoami,
        Err(ServerTrouble::Away(why)) => {
            return checks.fail("server", why, Some("without it effects are refused, and reads pass".into()));
        }
        Err(ServerTrouble::Setting(why)) => return checks.fail("server", why, None),
    };
    let took = clock.elapsed().saturating_sub(began);
    let detail = format!("{} answers in {} ms (semel {})", gate.access, took.as_millis(), whoami.version);
    checks.ok("server", detail);
    let token = format!("scope {}, tenant {}, {}", whoami.scope, whoami.tenant, whoami.principal);
    match whoami.scope.as_str() {
        "agent" => checks.ok("token", token),
        _ => checks.warn("token", token, "give agents a token of scope agent: this one may rule on doubts"),
    }
    let Some(theirs) = At::parse(&whoami.time) else { return };
    let apart = |one: At, other: At| one.since(other).max(other.since(one));
    // The answer was written between these two moments.
    let apart = apart(theirs, from).min(apart(theirs, clock.now()));
    let detail = format!("{} ms from the server's", apart.as_millis());
    match apart > CLOCK_SLACK + took {
        false => checks.ok("clock", detail),
        true => checks.warn("clock", detail, "deadlines go by the server's clock; set this machine's"),
    }
}

fn ledger_of(context: &Context, checks: &mut Checks, full: bool) -> anyhow::Result<()> {
    match LedgerAddress::of(context) {
        Err(error) => checks.fail("ledger", format!("{error:#}"), hint(&error)),
        Ok(address @ LedgerAddress::Server { .. }) => server(context, checks, &address),
        Ok(LedgerAddress::File(file)) => {
            let place = Place::at(file);
            directory(checks, &place);
            ledger(context, checks, &place, full)?;
            owners(checks, &place.owners());
        }
    }
    Ok(())
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

fn directory(checks: &mut Checks, place: &Place) {
    let directory = place.directory();
    let shown = directory.display();
    let there = directory.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let writable = rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let hint = || Some("set SEMEL_STATE_DIR to a directory of your own".to_owned());
    match directory.metadata() {
        Ok(found) if !found.is_dir() => {
            checks.fail("state directory", format!("{shown} is not a directory"), hint())
        }
        // In another directory it would begin with an empty ledger.
        Ok(_) if !writable && LedgerAddress::File(place.database().to_owned()).is_founded() => {
            let hint =
                format!("make it writable again: what was done is known by the ledger in {shown} alone");
            checks.fail("state directory", format!("{shown} cannot be written"), Some(hint));
        }
        Ok(_) if !writable => checks.fail("state directory", format!("{shown} cannot be written"), hint()),
        Ok(found) => checks.ok("state directory", format!("{shown} (mode {:o})", found.mode() & 0o777)),
        Err(_) if writable => {
            checks.ok("state directory", format!("{shown} is not there yet; it can be made"))
        }
        Err(_) => checks.fail("state directory", format!("{shown} is not there and cannot be made"), hint()),
    }
    let Ok(disk) = rustix::fs::statvfs(there) else { return };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let detail = format!("{} MiB free", free / (1024 * 1024));
    match free {
        FREE_BYTES_LOW.. => checks.ok("disk", detail),
        FREE_BYTES_OUT.. => {
            checks.warn("disk", detail, "with a full disk every effect is refused; make room")
        }
        _ => checks.fail(
            "disk",
            detail,
            Some("make room: with a full disk every effect is refused".to_owned()),
        ),
    }
}

fn ledger(context: &Context, checks: &mut Checks, place: &Place, full: bool) -> anyhow::Result<()> {
    let database = place.database();
    if !LedgerAddress::File(place.database().to_owned()).is_founded() {
        checks.ok("engine", format!("SQLite {}", sqlite::version()));
        checks.ok("ledger", format!("{} is not there yet; the first semel run makes it", database.display()));
        return Ok(());
    }
    if database.symlink_metadata().is_err() {
        let detail = format!("{} is gone while its secret is there", database.display());
        checks.warn(
            "ledger",
            detail,
            "restore it from your backup; otherwise the next command starts a new epoch",
        );
        return Ok(());
    }
    // That it is missing or not to be trusted is said by the ledger, which then does not open.
    if let Ok(Some(_)) = place.secret() {
        checks.ok("secret", place.secret_file().display().to_string());
    }
    let address = LedgerAddress::File(database.to_owned());
    let ledger = match address.open(&context.environment, &SystemClock::start(), Purpose::Reading) {
        Ok(ledger) => ledger,
        Err(error) => {
            checks.fail("ledger", error.to_string(), ledger_hint(&error));
            return Ok(());
        }
    };
    checks.ok("ledger", format!("{} (format {})", database.display(), sqlite::FORMAT));
    let clock = SystemClock::start();
    engine(checks, &ledger, &clock);
    disk_latency(checks, place.directory(), &clock);
    spooled(checks, &ledger);
    if let Err(error) = contents(checks, &ledger, clock.now()) {
        checks.fail("ledger", format!("{error:#}"), hint(&error));
    }
    if full {
        match block_on(ledger.store().check()) {
            Ok(complaints) if complaints.is_empty() => checks.ok("integrity", "every page and index agrees"),
            Ok(complaints) => {
                checks.fail("integrity", complaints.join("; "), Some(RESTORE.to_owned()));
            }
            Err(error) => checks.fail("integrity", error.to_string(), ledger_hint(&error)),
        }
        match damaged(&ledger) {
            Ok(damaged) if damaged.is_empty() => checks.ok("records", "every one can be read"),
            Ok(damaged) => {
                let names: Vec<String> = damaged.iter().take(NAMED_MAX).map(ToString::to_string).collect();
                let more = if damaged.len() > NAMED_MAX { ", …" } else { "" };
                let records = counted(damaged.len(), "record", "records");
                let detail = format!("{records} cannot be read: {}{more}", names.join(", "));
                let hint =
                    format!("their calls are in doubt, the others go on: semel ledger resolve, or {RESTORE}");
                checks.fail("records", detail, Some(hint));
            }
            Err(error) => checks.fail("records", error.to_string(), ledger_hint(&error)),
        }
    }
    Ok(())
}

/// A ledger on a server: its settings, and how long a durable write takes on the path of a claim.
fn server(context: &Context, checks: &mut Checks, address: &LedgerAddress) {
    let clock = SystemClock::start();
    let ledger = match address.open(&context.environment, &clock, Purpose::Command) {
        Ok(ledger) => ledger,
        Err(error) => {
            checks.fail("ledger", error.to_string(), ledger_hint(&error));
            return match spool::count(&address.spool()) {
                0 => {}
                waiting => checks.warn("spool", waits(waiting), "they go in once the ledger can be written"),
            };
        }
    };
    checks.ok("ledger", address.to_string());
    engine(checks, &ledger, &clock);
    spooled(checks, &ledger);
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..CLAIMS_TIMED {
        let begun = clock.elapsed();
        match block_on(ledger.prove_ready(clock.now())) {
            Ok(()) => times.push(clock.elapsed().saturating_sub(begun)),
            Err(error) => return checks.fail("write", error.to_string(), ledger_hint(&error)),
        }
    }
    latency(checks, "a claim", times);
    if let Err(error) = contents(checks, &ledger, clock.now()) {
        checks.fail("ledger", format!("{error:#}"), hint(&error));
    }
}

/// The engine: its version, what it keeps, and its clock.
fn engine(checks: &mut Checks, ledger: &Ledger, clock: &SystemClock) {
    let facts = match block_on(ledger.store().describe(clock.now())) {
        Ok(facts) => facts,
        Err(error) => return checks.fail("engine", error.to_string(), ledger_hint(&error)),
    };
    checks.ok("engine", facts.server);
    checks.ok("persistence", facts.persistence);
    match ledger.store().is_durable() {
        true => checks.ok("tier", facts.tier),
        false => checks.warn("tier", facts.tier, "every answer says best_effort until that is changed"),
    }
    let Some(ahead) = facts.clock_ahead_ms else { return };
    let word = if ahead < 0 { "behind" } else { "ahead of" };
    let detail = format!("the server's clock is {} ms {word} this host's", ahead.unsigned_abs());
    match u128::from(ahead.unsigned_abs()) > CLOCK_SLACK.as_millis() {
        true => {
            checks.warn("clock skew", detail, "set both by NTP: ages and deadlines are judged by this host's")
        }
        false => checks.ok("clock skew", detail),
    }
}

/// The middle of several times.
fn latency(checks: &mut Checks, what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    checks.ok("latency", format!("the durable write of {what} takes {:.1?}", times[times.len() / 2]));
}

/// A claim waits for one write to the disk. The ledger itself stays as it is.
fn disk_latency(checks: &mut Checks, directory: &Path, clock: &SystemClock) {
    let timed = || -> std::io::Result<Vec<Duration>> {
        let mut file = tempfile::tempfile_in(directory)?;
        let mut times = Vec::new();
        for _ in 0..CLAIMS_TIMED {
            let begun = clock.elapsed();
            file.write_all(&[0; CLAIM_BYTES])?;
            file.sync_data()?;
            times.push(clock.elapsed().saturating_sub(begun));
        }
        Ok(times)
    };
    match timed() {
        Ok(times) => latency(checks, "a claim", times),
        Err(error) => checks.fail("latency", format!("nothing can be written here: {error}"), None),
    }
}

/// Answers that the ledger could not take, as long as they wait here.
fn spooled(checks: &mut Checks, ledger: &Ledger) {
    match ledger.spooled() {
        Err(error) => checks.fail("spool", error.to_string(), ledger_hint(&error)),
        Ok(found) => {
            if !found.waiting.is_empty() {
                checks.warn(
                    "spool",
                    waits(found.waiting.len()),
                    "the next semel run or semel serve brings them in",
                );
            }
            for file in found.damaged {
                let detail = format!("{} is damaged; the call that it answers is in doubt", file.display());
                checks.fail(
                    "spool",
                    detail,
                    Some("rule on it (semel ledger), then remove the file".to_owned()),
                );
            }
        }
    }
}

fn waits(count: usize) -> String {
    format!("{} on this host for the ledger", counted(count, "answer waits", "answers wait"))
}

/// Every effect whose record cannot be read.
fn damaged(ledger: &Ledger) -> Result<Vec<EffectId>, semel_ledger::Error> {
    let (mut damaged, mut after) = (Vec::new(), None);
    loop {
        let page = block_on(ledger.listing(By::All, after, PAGE_ROWS_MAX))?;
        damaged.extend(page.damaged);
        match page.next {
            None => return Ok(damaged),
            next => after = next,
        }
    }
}

fn contents(checks: &mut Checks, ledger: &Ledger, now: At) -> anyhow::Result<()> {
    match block_on(ledger.epoch())?.1 {
        Some(epoch) if epoch.forgotten_before(now).is_some() => {
            let detail =
                format!("{} since {}: {}; unseen intents are held", epoch.number, epoch.since, epoch.reason);
            checks.warn("epoch", detail, "if nothing older will be retried: semel ledger end-quarantine");
        }
        Some(epoch) => checks.ok("epoch", format!("{}, nothing is held for it", epoch.number)),
        None => checks.ok("epoch", "1"),
    }
    // Not observed: finding out who is dead would tidy their lock files away.
    let (mut in_doubt, mut in_flight, mut after) = (0, 0, None);
    loop {
        let page = block_on(ledger.listing(By::Open, after, PAGE_ROWS_MAX))?;
        for (_, known) in page.items {
            match known.effect.state {
                State::InDoubt(_) => in_doubt += 1,
                _ => in_flight += 1,
            }
        }
        match page.next {
            None => break,
            next => after = next,
        }
    }
    let detail = format!("{in_doubt} in doubt, {in_flight} recorded as in flight");
    match in_doubt {
        0 => checks.ok("open effects", detail),
        _ => checks.warn("open effects", detail, "semel ledger"),
    }
    match block_on(ledger.newest_line())? {
        Some((_, line)) if line.at > now.plus(CLOCK_SLACK) => {
            let detail = format!("the journal's newest line is from {}, which is in the future", line.at);
            checks.warn(
                "clock",
                detail,
                "was the clock set back? deadlines and ages are wrong until it catches up",
            );
        }
        _ => checks.ok("clock", now.to_string()),
    }
    Ok(())
}

fn owners(checks: &mut Checks, owners: &Path) {
    let Ok(found) = owners.symlink_metadata() else {
        checks.ok("owners", "no process has claimed anything yet");
        return;
    };
    let shown = owners.display();
    let mine = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_dir() || !mine || found.mode() & 0o022 != 0 {
        let detail =
            format!("{shown} is not a directory that only you can write (mode {:o})", found.mode() & 0o777);
        checks.fail("owners", detail, Some(format!("chmod 700 {shown}")));
        return;
    }
    match owners.read_dir() {
        Ok(entries) => checks.ok("owners", format!("{shown}, {} lock files", entries.count())),
        Err(error) => checks.fail("owners", format!("{shown}: {error}"), Some(format!("chmod 700 {shown}"))),
    }
}

fn policy(context: &Context, checks: &mut Checks) {
    let check = Some("semel policy lint".to_owned());
    let flag = context.global.policy.as_deref();
    let files = match policy_files::read(&context.environment, flag) {
        Ok(files) => files,
        Err(error) => return checks.fail("policy", format!("{error:#}"), None),
    };
    let names: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
    let loaded = policy_files::load(&context.environment, flag);
    if let Ok(policy) = &loaded {
        credentials(context, checks, policy);
    }
    match loaded {
        Ok(_) if names.is_empty() => checks.ok("policy", "no semel.toml from here upward: the defaults hold"),
        Ok(policy) if policy.warnings.count(Severity::Warning) == 0 => checks.ok("policy", names.join(", ")),
        Ok(policy) => {
            let warnings = policy.warnings.count(Severity::Warning);
            let detail = format!("{}: {}", names.join(", "), counted(warnings, "warning", "warnings"));
            checks.warn("policy", detail, "semel policy lint");
        }
        Err(Unusable::File(error)) => checks.fail("policy", format!("{error:#}"), None),
        Err(Unusable::Content(found)) => {
            checks.fail("policy", format!("{}: {} findings", names.join(", "), found.len()), check);
        }
    }
}

/// The needs of `semel serve`, without which it does not start. Where it is started may know more than where this is
/// asked.
fn credentials(context: &Context, checks: &mut Checks, policy: &Policy) {
    let apis = policy.upstreams.iter().map(|(name, api)| (format!("upstream.{name}"), &api.headers_env));
    let servers = policy.mcp.iter().filter_map(|(name, server)| match &server.reach {
        McpEndpoint::Url { headers_env, .. } => Some((format!("mcp.{name}"), headers_env)),
        McpEndpoint::Command { .. } => None,
    });
    let named = apis.chain(servers).flat_map(|(place, headers)| {
        headers.iter().map(move |(_, variable)| (place.clone(), variable.as_str()))
    });
    let secret = policy.serve.webhook.as_ref().and_then(|webhook| webhook.secret_env.as_deref());
    let named: Vec<_> = named.chain(secret.map(|secret| ("serve.webhook".to_owned(), secret))).collect();
    let missing: Vec<String> = named
        .iter()
        .filter_map(|(place, variable)| {
            Some(format!("{place}: {:#}", context.environment.variable(variable).err()?))
        })
        .collect();
    match (named.is_empty(), missing.is_empty()) {
        (true, _) => {}
        (false, true) => checks.ok("credentials", format!("{} in the environment", named.len())),
        (false, false) => {
            let hint = "semel serve needs them in its own environment; without them it does not start";
            checks.warn("credentials", missing.join("; "), hint);
        }
    }
}

fn search_path(context: &Context, checks: &mut Checks) {
    let directories: Vec<PathBuf> = std::env::split_paths(&context.environment.search).collect();
    if let Some(relative) = directories.iter().find(|directory| !directory.is_absolute()) {
        let detail = format!(
            "PATH holds {:?}, which depends on the working directory",
            relative.display().to_string()
        );
        checks.warn("path", detail, "take it out: one command name would be different programs");
        return;
    }
    match directories.iter().map(|directory| directory.join("semel")).find(|program| program.is_file()) {
        Some(program) => checks.ok("path", format!("semel is {}", program.display())),
        None => checks.warn(
            "path",
            "semel is not on PATH",
            "add its directory, or write its full path into configurations",
        ),
    }
}
