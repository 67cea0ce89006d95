//! One name, one server: how a server on stdio is started is compared with the start that its name is known for.

use crate::commands::Context;
use crate::neutral;
use crate::output::Hinted;
use semel_core::identity::{quoted_for_a_shell, redact};
use semel_core::json::Json;
use semel_core::policy::Mode;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::known_servers::ServerStart;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

/// The identity of every server on stdio: its name, which stands in the action, tells it from the others.
pub const STDIO: &str = "stdio";

/// A server on stdio, before it is started.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    pub name: &'a str,
    pub command: &'a Command,
    /// The configuration says that the directory makes no difference.
    pub any_directory: bool,
}

/// Refuses a start under a name that belongs to another server. Two servers of one name would answer for each other.
pub fn check(context: &Context, mode: Mode, start: Start<'_>) -> anyhow::Result<()> {
    let clock = SystemClock::start();
    // In observe mode nothing is blocked. Without a ledger every effect is refused later, and reads pass.
    let (false, Ok(ledger)) = (mode == Mode::Observe, context.ledger(&clock)) else { return Ok(()) };
    let command = start.command;
    let words: Vec<&OsStr> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let directory = command.get_current_dir().unwrap_or(&context.environment.cwd);
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let bytes: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let this = ledger.server_start(&bytes, shown(&words), directory.to_string_lossy().into_owned());
    let checked = block_on(ledger.check_server(start.name, &this, start.any_directory, clock.now()));
    // A ledger that takes no write refuses effects by itself.
    let Ok(Some(known)) = checked else { return Ok(()) };
    Err(refused(start.name, &this, &known.start))
}

fn refused(name: &str, this: &ServerStart, known: &ServerStart) -> anyhow::Error {
    let what = format!(
        "the name {name} belongs to another server: {}. This one is {}. It was not started",
        described(known),
        described(this)
    );
    let same = format!("semel ledger same-server {}", quoted_for_a_shell(name));
    let hint = match this.has_command_of(known) {
        true => format!(
            "two servers need two names: --name NAME. One server, started from several directories: --any-directory. \
             One server that has moved: {same}"
        ),
        false => format!("two servers need two names: --name NAME. One server with a new command: {same}"),
    };
    Hinted::error(what, hint)
}

/// A start, as a person recognises it.
pub fn described(start: &ServerStart) -> String {
    neutral::line(&format!("`{}` in {}", start.shown, start.directory))
}

/// The words without secrets.
fn shown(words: &[&OsStr]) -> String {
    let words = words.iter().map(|word| Json::str(&word.to_string_lossy())).collect();
    let Json::Array(words) = redact(&Json::Array(words), &[]) else { return String::new() };
    let words = words.iter().map(|word| match word {
        Json::String(word) => quoted_for_a_shell(word),
        _ => "…".to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}
