//! stdout is data, stderr is talk. Everything a command prints goes through here.

use crate::args::{Color, Global};
use crate::terminal_text;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use semel_core::subject::quoted_for_a_shell;
use semel_doors::process::stream::try_write_fully;
use serde::Serialize;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

/// Why data did not get to stdout. A reader that had enough is no reason.
static LOST: OnceLock<std::io::Error> = OnceLock::new();

pub fn lost() -> Option<&'static std::io::Error> {
    LOST.get()
}

fn accepted(written: std::io::Result<()>) -> bool {
    match written {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != std::io::ErrorKind::BrokenPipe {
                LOST.get_or_init(|| error);
            }
            false
        }
    }
}

/// Which ledger and policy this process was told to use, as flags.
#[derive(Debug)]
struct Flags {
    ledger: String,
    policy: String,
}

static FLAGS: OnceLock<Flags> = OnceLock::new();

/// A hint shows a command to paste, which must be about the same ledger and the same policy.
fn pasteable(text: &str) -> String {
    let (Some(Flags { ledger, policy }), Some(at)) = (FLAGS.get(), text.find("hint:")) else {
        return text.to_owned();
    };
    let (before, hint) = text.split_at(at);
    let hint = hint
        .replace("semel ledger", &format!("semel{ledger} ledger"))
        .replace("semel cancel", &format!("semel{ledger} cancel"))
        .replace("semel policy", &format!("semel{policy} policy"));
    format!("{before}{hint}")
}

/// How this process talks.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub json: bool,
    pub quiet: bool,
}

impl Output {
    pub fn new(global: &Global) -> Self {
        match global.color {
            // anstream itself looks at NO_COLOR, CLICOLOR_FORCE, TERM and whether it is a terminal.
            Color::Auto => {}
            Color::Always => anstream::ColorChoice::Always.write_global(),
            Color::Never => anstream::ColorChoice::Never.write_global(),
        }
        let flag = |name: &str, file: Option<&std::path::PathBuf>| {
            let shown = |file: &std::path::PathBuf| quoted_for_a_shell(&file.to_string_lossy());
            file.map_or_else(String::new, |file| format!(" {name} {}", shown(file)))
        };
        FLAGS.get_or_init(|| Flags {
            ledger: flag("--ledger", global.ledger.as_ref()),
            policy: flag("--policy", global.policy.as_ref()),
        });
        Output { json: global.json, quiet: global.quiet }
    }

    /// Data for whoever reads stdout. `false`: it did not get there.
    pub fn data(self, text: impl Display) -> bool {
        let mut out = anstream::stdout();
        accepted(writeln!(out, "{text}").and_then(|()| out.flush()))
    }

    /// One JSON document.
    pub fn document(self, value: &impl Serialize) -> bool {
        let text = serde_json::to_string_pretty(value).expect("documents have string keys") + "\n";
        accepted(try_write_fully(std::io::stdout().as_fd(), text.as_bytes()))
    }

    /// One line of a stream of JSON documents.
    pub fn line(self, value: &impl Serialize) -> bool {
        let text = serde_json::to_string(value).expect("documents have string keys");
        let mut out = std::io::stdout().lock();
        accepted(writeln!(out, "{text}").and_then(|()| out.flush()))
    }

    /// A list, as every list is printed under `--json`.
    pub fn list(self, items: &[impl Serialize], next: Option<&str>) -> bool {
        self.document(&serde_json::json!({"schema_version": 1, "items": items, "next": next}))
    }

    /// Something for people, on stderr.
    pub fn say(self, text: impl Display) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Something for people that even a quiet caller must see.
    pub fn warn(self, text: impl Display) {
        Output::warn_everybody(text);
    }

    /// The same, where nobody has said how to talk.
    pub fn warn_everybody(text: impl Display) {
        let _nobody_listens = writeln!(anstream::stderr(), "{}", pasteable(&text.to_string()));
    }

    /// An error with its hint: as text, or as one JSON document on stderr.
    pub fn error(self, error: &anyhow::Error) {
        if self.json {
            let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
            let document =
                serde_json::json!({"error": error.to_string(), "causes": causes, "hint": hint(error)});
            let _nobody_listens = writeln!(std::io::stderr(), "{document}");
            return;
        }
        use owo_colors::OwoColorize;
        let mut err = anstream::stderr();
        let what = terminal_text::lines(&format!("{error:#}"));
        let _nobody_listens = writeln!(err, "{} {what}", "error:".red().bold());
        if let Some(hint) = hint(error) {
            let hint = format!("{} {hint}", "hint: ".cyan().bold());
            let _nobody_listens = writeln!(err, "{}", pasteable(&hint));
        }
    }
}

/// An error that knows what to do about it.
#[derive(Debug)]
pub struct Hinted {
    what: String,
    hint: String,
}

impl Hinted {
    pub fn error(what: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Hinted { what: what.into(), hint: hint.into() })
    }
}

impl Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Hinted {}

/// Advice about an error.
pub fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        let own = cause.downcast_ref::<Hinted>().map(|hinted| hinted.hint.clone());
        let own = own.or_else(|| cause.downcast_ref::<semel::BadSetting>()?.hint.clone());
        own.or_else(|| cause.downcast_ref::<semel_ledger::Error>().and_then(ledger_hint))
    })
}

/// The ledger that is there is kept, under another name.
pub const RESTORE: &str = "stop all that use it, then put the newest backup in its place: semel ledger restore FILE \
                           --replace";

pub fn ledger_hint(error: &semel_ledger::Error) -> Option<String> {
    use semel_ledger::Error;
    use semel_ledger::error::Unsafe;
    Some(match error {
        Error::Unsafe { why, path } => match why {
            Unsafe::Symlink => "name the real file, or remove the link".into(),
            Unsafe::WritableByOthers { what, .. } | Unsafe::ReadableByOthers { what, .. } => {
                let mode = if what.is_dir() { "700" } else { "600" };
                format!("chmod {mode} {}", what.display())
            }
            Unsafe::ForeignOwner { .. } => "set SEMEL_STATE_DIR to a directory of your own".into(),
            Unsafe::NetworkFilesystem { .. } => {
                "set SEMEL_STATE_DIR to a local disk; SEMEL_ALLOW_NETWORK_FS=1 overrides at your own risk"
                    .into()
            }
            Unsafe::NotAFile => format!("move {} out of the way", path.display()),
        },
        Error::SecretMissing { path } => format!(
            "restore {} from your backup, or make a new one: semel ledger rotate-secret --reason TEXT",
            semel_ledger::place::Place::at(path).secret_file().display()
        ),
        Error::WrongSecret { .. } => "restore the ledger and its secret from the same backup".into(),
        Error::Damaged { .. } => RESTORE.into(),
        Error::TooNew { .. } => "use the newer semel that wrote it".into(),
        Error::TooOld { .. } => {
            "keep what it says: semel ledger export > ledger.ndjson; then move ledger.db, -wal and -shm away and leave \
             ledger.secret: calls that it may have known are in doubt for a day"
                .into()
        }
        Error::UnfinishedCopy { .. } => {
            "give the command that began it again (ledger copy or ledger restore), and it goes on".into()
        }
        Error::IsBackup { .. } => "put it in the place of the ledger: semel ledger restore FILE".into(),
        Error::NotWritten { .. } => {
            "is its disk or memory full, may its user not write, or is it a backup (semel ledger restore FILE)? semel \
             doctor"
                .into()
        }
        Error::Open { .. } => "semel doctor".into(),
        Error::Engine { .. } => {
            "correct the address in SEMEL_LEDGER, or `ledger` in semel.toml, or mend the server; then: semel doctor".into()
        }
        Error::NoSuchEffect(_) => "semel ledger list".into(),
        Error::SecretKept { .. } => {
            "--replace sets the present secret aside and makes a new one all the same".into()
        }
        Error::Superseded { effect } => format!("semel ledger show {effect} lists the later ones"),
        _ => return None,
    })
}

/// "1 error", "2 errors".
pub fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Waits, and says whether the reader of stdout has gone meanwhile. A terminal or a file never goes.
pub fn reader_left_within(span: Duration) -> bool {
    let stdout = std::io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::ERR)];
    let span = Timespec::try_from(span).expect("a fraction of a second");
    // An interrupted wait only looks earlier.
    poll(&mut watched, Some(&span)).is_ok_and(|ready| ready > 0)
}
