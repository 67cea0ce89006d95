//! A home of its own for each test: state, configuration and working directory, and nothing of the machine's.

use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::Ledger;
use semel_ledger::entropy::OsEntropy;
use semel_ledger::holders::FileHolders;
use semel_ledger::place::Place;
use semel_ledger::sqlite::{OpenOptions, OpenedStore, SqliteStore};
use semel_ledger::tokens::{AccessScope, TokenRequest};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Who the tests are, as rulings name them.
pub const RULER: &str = "operator token alice";

/// The words of commands that take a person.
const RULING: [&str; 10] = [
    "resolve",
    "reopen",
    "allow-repeat",
    "undo",
    "end-quarantine",
    "same-server",
    "accept",
    "--lift",
    "operator",
    "admin",
];

#[derive(Debug)]
pub struct Home {
    directory: TempDir,
    token: OnceLock<String>,
}

/// A process that has ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    pub fn new() -> Self {
        semel_testkit::signals::restore_for_children();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home { directory, token: OnceLock::new() };
        std::fs::create_dir(home.work()).expect("a working directory");
        home
    }

    /// What `HOME` says.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where commands run, and where a `semel.toml` is found.
    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// What `SEMEL_STATE_DIR` says.
    pub fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.work().join(name);
        // Whoever looks for it finds all of it.
        let new = path.with_added_extension("new");
        std::fs::write(&new, content).expect("the file is written");
        std::fs::rename(&new, &path).expect("the file is in its place");
        path
    }

    /// `semel` with these arguments, not started yet: nothing of the environment but a search path, and for commands
    /// that take a person an operator token.
    pub fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.directory.path());
        command.env("SEMEL_STATE_DIR", self.state()).env("USER", "alice");
        command.current_dir(self.work()).args(args).stdin(Stdio::null());
        let own: Vec<&OsStr> = command.get_args().take_while(|arg| *arg != "--").collect();
        // Making a token that rules founds a ledger.
        let founds = own.iter().any(|arg| *arg == "operator" || *arg == "admin");
        if own.iter().any(|arg| RULING.iter().any(|word| *arg == *word)) {
            let token = if founds || self.has_ledger() { self.operator_token() } else { "none" };
            command.env("SEMEL_OPERATOR_TOKEN", token);
        }
        command
    }

    fn has_ledger(&self) -> bool {
        self.state().join("ledger.db").exists()
    }

    /// A token that may rule here, made at its first use. In a ledger that does not open, it is worth nothing.
    pub fn operator_token(&self) -> &str {
        let make = || make_token(&self.state().join("ledger.db")).unwrap_or_else(|error| error.to_string());
        self.token.get_or_init(make)
    }

    /// What the ledger's file says to somebody else: reading through semel would notice a death.
    pub fn query(&self, sql: &str) -> String {
        let query = "import sqlite3,sys; c=sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True)\n\
                     print(c.execute(sys.argv[2]).fetchone()[0])";
        let file = self.state().join("ledger.db").to_string_lossy().into_owned();
        let words = ["python3", "-c", query, &file, sql].map(str::to_owned);
        let output = self.program(&words).output().expect("python starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub fn semel<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        Ran::of(self.command(args).output().expect("semel starts"))
    }

    pub fn semel_reading<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, input: &[u8]) -> Ran {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("semel starts");
        child.stdin.take().expect("its input is a pipe").write_all(input).expect("it reads its input");
        Ran::of(child.wait_with_output().expect("semel ends"))
    }

    /// A command that must succeed, with the one document that it prints under `--json`.
    pub fn json<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Value {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        let ran = self.semel(["--json".into()].into_iter().chain(args));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.json()
    }

    /// An effect in doubt: its command died by a signal. Returns its id.
    pub fn doubt(&self, key: &str) -> String {
        let ran = self.semel(["run", "--json", "--key", key, "--", "sh", "-c", "kill -9 $$"]);
        assert_eq!(ran.code, Some(121), "{ran:?}");
        ran.json()["effect_id"].as_str().expect("a doubt has an effect").to_owned()
    }

    /// A call under this key, which leaves a line in the world. Its answer waits on this host for the ledger.
    pub fn spool(&self, key: &str) -> PathBuf {
        let script = format!("echo {key} >> world; echo did {key}");
        let mut command = self.command(["run", "--key", key, "--", "sh", "-c", &script]);
        command.env("SEMEL_FAILPOINTS", "gate.before_settle=error;sqlite.before_commit=abort@2");
        let killed = Ran::of(command.output().expect("semel starts"));
        assert_eq!(killed.code, None, "{killed:?}");
        let is_one = |path: &PathBuf| path.starts_with(self.state().join("ledger.spool")) && path.is_file();
        self.state_files().into_iter().find(is_one).expect("its answer waits")
    }

    /// Names of all files below the state directory.
    pub fn state_files(&self) -> Vec<PathBuf> {
        fn below(directory: &Path, files: &mut Vec<PathBuf>) {
            for entry in directory.read_dir().into_iter().flatten() {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    below(&path, files);
                }
                files.push(path);
            }
        }
        let mut files = Vec::new();
        below(&self.state(), &mut files);
        files.sort();
        files
    }
}

fn make_token(file: &Path) -> Result<String, semel_ledger::Error> {
    let now = SystemClock::start().now();
    let options = OpenOptions { blocking: true, ..OpenOptions::at(Place::at(file), now) };
    let OpenedStore { store, secret, .. } = SqliteStore::open(options)?;
    let holders = FileHolders::in_directory(store.place().owners());
    let ledger = Ledger::new(std::sync::Arc::new(store), std::sync::Arc::new(holders), OsEntropy, secret);
    let new = TokenRequest::new("local", AccessScope::Admin, Some("alice"), None).expect("a plain name");
    Ok(block_on(ledger.make_token(&new, now))?.text)
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is text"),
            stderr: String::from_utf8(output.stderr).expect("stderr is text"),
        }
    }

    /// The one document on stdout.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not one document: {error}: {self:?}"))
    }
}

/// The most memory that a process has held, in KiB.
pub fn memory_peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok()).expect("the kernel counts it")
}
