//! `semel run` around `semel-touch`, called and read as an agent would.

use crate::history::{Saw, Standing};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};

/// One ledger, one world, and the programs between them.
#[derive(Debug, Clone)]
pub struct SemelProcess {
    pub semel: PathBuf,
    pub touch: PathBuf,
    /// `SEMEL_STATE_DIR`.
    pub state: PathBuf,
    /// `SEMEL_LEDGER`; without one the ledger is a file in the state directory.
    pub server: Option<String>,
    /// The world's socket.
    pub world: PathBuf,
}

/// One call, before it is made.
#[derive(Debug, Clone, Default)]
pub struct RunCall<'a> {
    pub key: &'a str,
    /// Asks the world about a doubt; its "no" counts after this span.
    pub probe_quiet: Option<&'a str>,
    pub wait: Option<&'a str>,
    pub timeout: Option<&'a str>,
    pub json: bool,
    pub dry_run: bool,
    pub failpoints: Option<&'a str>,
    /// More arguments of `semel-touch`. They are part of what is asked for, so retries must give the same ones.
    pub touch: &'a [&'a str],
}

impl SemelProcess {
    /// The command line, ready to be started. Output is piped, input is empty.
    pub fn command(&self, ask: &RunCall<'_>) -> Command {
        let mut command = self.semel_run(ask);
        command.arg(&self.touch).args(self.touch_arguments(ask));
        command
    }

    /// The same around a shell, for commands that do more than touch the world. `"$@"` is the call that touches it.
    pub fn shell(&self, ask: &RunCall<'_>, script: &str) -> Command {
        let mut command = self.semel_run(ask);
        command.args(["sh", "-c", script, "sh"]).arg(&self.touch).args(self.touch_arguments(ask));
        command
    }

    /// The command without semel.
    pub fn bare(&self, ask: &RunCall<'_>) -> Command {
        let mut command = Command::new(&self.touch);
        command
            .args(self.touch_arguments(ask))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The program on this ledger, without arguments.
    pub fn semel(&self) -> Command {
        let mut command = Command::new(&self.semel);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("SEMEL_STATE_DIR", &self.state);
        command.env("HOME", &self.state).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(self.server.as_ref().map(|server| ("SEMEL_LEDGER", server)));
        command
    }

    fn semel_run(&self, ask: &RunCall<'_>) -> Command {
        let mut command = self.semel();
        if let Some(failpoints) = ask.failpoints {
            command.env("SEMEL_FAILPOINTS", failpoints);
        }
        if ask.json || ask.dry_run {
            command.arg("--json");
        }
        // `semel-touch` exits with 3 before it has changed anything.
        command.args(["run", "--key", ask.key, "--refused-exit", "3"]);
        if ask.dry_run {
            command.arg("--dry-run");
        }
        for (flag, value) in
            [("--wait", ask.wait), ("--timeout", ask.timeout), ("--probe-quiet", ask.probe_quiet)]
        {
            if let Some(value) = value {
                command.args([flag, value]);
            }
        }
        if ask.probe_quiet.is_some() {
            let probe =
                format!("{} --world {} --find {}", self.touch.display(), self.world.display(), ask.key);
            command.arg("--probe").arg(probe);
        }
        command.arg("--");
        command
    }

    fn touch_arguments(&self, ask: &RunCall<'_>) -> Vec<String> {
        let own = ["--world", &self.world.display().to_string(), "--key", ask.key].map(str::to_owned);
        own.into_iter().chain(ask.touch.iter().map(|word| (*word).to_owned())).collect()
    }

    /// Makes a call and reads its answer.
    pub fn call(&self, ask: &RunCall<'_>) -> std::io::Result<ProcessAnswer> {
        Ok(ProcessAnswer::of(self.command(ask).output()?, ask.json))
    }

    /// What the ledger says about a key. Asks by a dry run: it sends nothing and writes nothing.
    pub fn standing(&self, ask: &RunCall<'_>) -> std::io::Result<Result<Standing, String>> {
        let ask = RunCall { dry_run: true, json: true, probe_quiet: None, ..ask.clone() };
        let output = self.command(&ask).output()?;
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Ok(match document["would"].as_str() {
            Some("run") => Ok(Standing::Free),
            Some("wait") => Ok(Standing::InFlight),
            Some("hold") => Ok(Standing::InDoubt),
            Some("replay") => Ok(Standing::Applied),
            _ => Err(format!("{} {document} {}", output.status, String::from_utf8_lossy(&output.stderr))),
        })
    }

    pub fn ledger(&self) -> PathBuf {
        self.state.join("ledger.db")
    }
}

/// An answer, as far as it can be told from outside.
#[derive(Debug, Clone)]
pub struct ProcessAnswer {
    pub status: ExitStatus,
    pub saw: Saw,
    /// The answer object, where one was printed.
    pub object: Value,
    pub stderr: String,
}

impl ProcessAnswer {
    pub fn of(output: Output, json: bool) -> ProcessAnswer {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let object: Value = match json {
            true => serde_json::from_str(&stdout).unwrap_or_default(),
            // Not to be mistaken for a command's own exit code, trouble is one line of JSON on stderr.
            false => {
                stderr.lines().rev().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default()
            }
        };
        let saw = read(output.status, &object, json, stdout, &stderr);
        ProcessAnswer { status: output.status, saw, object, stderr }
    }

    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

/// What wrappers answer with themselves; anything else is the command's own.
const RESERVED: std::ops::RangeInclusive<i32> = 120..=127;

fn read(status: ExitStatus, object: &Value, json: bool, stdout: String, stderr: &str) -> Saw {
    let other = || Saw::Other { exit: status.code(), text: format!("{object} {stderr}") };
    let Some(exit) = status.code() else { return Saw::Nothing };
    if exit == 0 {
        return match (json, object["ok"].as_bool()) {
            (false, _) => Saw::Success { body: stdout },
            (true, Some(true)) => {
                Saw::Success { body: object["data"]["stdout"].as_str().unwrap_or_default().to_owned() }
            }
            _ => other(),
        };
    }
    match object["code"].as_str() {
        Some("in_doubt") if exit == 121 => Saw::InDoubt,
        Some("in_flight") if exit == 122 => Saw::InFlight,
        Some("upstream_refused" | "not_started") => Saw::NotApplied { attempt: object["attempt"].as_u64() },
        Some("ledger_unavailable") if exit == 125 => {
            Saw::Unavailable { why: object["what_happened"].as_str().unwrap_or_default().to_owned() }
        }
        // A refusal speaks for itself: its own output, its own exit code.
        _ if !json && !RESERVED.contains(&exit) => Saw::NotApplied { attempt: None },
        _ => other(),
    }
}
