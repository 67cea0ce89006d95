//! One name, one server: how a server on stdio is started is compared with the start that its name is known for.

use crate::context::Context;
use crate::output::{Hinted, stderr_is_terminal};
use crate::terminal_text;
use anyhow::{Context as _, bail};
use rustix::process::Signal;
use semel_core::json::Json;
use semel_core::policy::Mode;
use semel_core::redact::redact;
use semel_core::subject::quoted_for_a_shell;
use semel_doors::mcp::link::child::{ChildLink, ChildOutput};
use semel_doors::runtime::RuntimeClock;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::known_servers::ServerStart;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The identity of every server on stdio: its name, which stands in the action, tells it from the others.
pub const STDIO: &str = "stdio";

/// A server on stdio, before it is started.
#[derive(Debug)]
pub struct Start<'a> {
    pub name: &'a str,
    pub command: &'a mut Command,
    /// The configuration says that the directory makes no difference.
    pub any_directory: bool,
}

/// Starts a server, unless its name belongs to another one: two servers of one name would answer for each other. A
/// command that cannot be started takes no name.
pub fn launch(
    context: &Context,
    mode: Mode,
    start: Start<'_>,
    clock: &RuntimeClock,
) -> anyhow::Result<(ChildLink, ChildOutput)> {
    // In observe mode nothing is blocked. Without a ledger every effect is refused later, and reads pass.
    let ledger = match mode {
        Mode::Observe => None,
        Mode::Guard | Mode::Strict => context.ledger(&SystemClock::start()).ok(),
    };
    let Some(ledger) = ledger else { return start_child(start.command, clock) };
    let directory = start.command.get_current_dir().unwrap_or(&context.environment.settings.cwd);
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let directory = in_main_worktree(&directory).unwrap_or(directory).to_string_lossy().into_owned();
    let command = &*start.command;
    let words: Vec<&OsStr> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let bytes: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let this = ledger.server_start(&bytes, shown(&words), directory);
    let check = |remember: bool| {
        let now = SystemClock::start().now();
        match block_on(ledger.check_server(start.name, &this, start.any_directory, remember, now)) {
            Ok(Some(known)) => Err(refused(start.name, &this, &known.start)),
            // A ledger that cannot be read or written refuses effects by itself.
            Ok(None) | Err(_) => Ok(()),
        }
    };
    check(false)?;
    let started = start_child(start.command, clock)?;
    // Another server may have taken the name meanwhile. This one has been sent nothing, and ends with its input.
    check(true).inspect_err(|_| started.0.signal(Signal::TERM))?;
    Ok(started)
}

/// The same place in a repository's main worktree: a project is one, however many worktrees it has. In a linked one
/// `.git` is a file that leads to a directory of the repository.
fn in_main_worktree(directory: &Path) -> Option<PathBuf> {
    let root = directory.ancestors().find(|directory| directory.join(".git").exists())?;
    let link = std::fs::read_to_string(root.join(".git")).ok()?;
    let linked = root.join(link.strip_prefix("gitdir:")?.trim());
    let common = std::fs::read_to_string(linked.join("commondir")).ok()?;
    let repository = linked.join(common.trim()).canonicalize().ok()?;
    let main = if repository.ends_with(".git") { repository.parent()? } else { &repository };
    // Without the slash that an empty rest would leave behind.
    Some(main.join(directory.strip_prefix(root).ok()?).components().collect())
}

/// Where the directory is missing that it should run in, the system speaks as if the program were.
fn start_child(command: &mut Command, clock: &RuntimeClock) -> anyhow::Result<(ChildLink, ChildOutput)> {
    let error = match ChildLink::start(command, clock.clone()) {
        Ok(started) => return Ok(started),
        Err(error) => error,
    };
    let what = format!("cannot start {}", command.get_program().to_string_lossy());
    match command.get_current_dir().filter(|cwd| !cwd.is_dir()) {
        Some(cwd) => bail!("{what}: its cwd {} is no directory", cwd.display()),
        None => Err(error).context(what),
    }
}

fn refused(name: &str, this: &ServerStart, known: &ServerStart) -> anyhow::Error {
    let what = format!(
        "the name {name} belongs to another server: {}. This one is {}. It was not started",
        described(known),
        described(this)
    );
    // Commands that rule are for people: a model reads what is piped.
    let same = match stderr_is_terminal() {
        true => format!("semel ledger same-server {}", quoted_for_a_shell(name)),
        false => "a person says so (semel ledger --help)".to_owned(),
    };
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
    terminal_text::line(&format!("`{}` in {}", start.shown, start.directory))
}

/// As much of a command as tells a person which one it is.
const SHOWN_CHARACTERS: usize = 200;

/// The words without secrets.
fn shown(words: &[&OsStr]) -> String {
    let words = words.iter().map(|word| Json::str(&word.to_string_lossy())).collect();
    let Json::Array(words) = redact(&Json::Array(words), &[]) else { return String::new() };
    let words = words.iter().map(|word| match word {
        Json::String(word) => quoted_for_a_shell(word),
        _ => "…".to_owned(),
    });
    terminal_text::shortened(&words.collect::<Vec<_>>().join(" "), SHOWN_CHARACTERS)
}
