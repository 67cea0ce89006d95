//! A client of a coding agent, as far as its hook sees it: it tells events, runs what the hook makes of a line, and passes
//! on the answer. The tools on its search path count what they do in the world.

use crate::home::{Home, Ran};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// `gh` and `git` that note each act as a line, and end as the file `ending` says, once.
const TOOL: &str = r#"#!/bin/sh
case "$1 $2" in "issue list"|"log "*|"status "*) echo "read"; exit 0 ;; esac
echo "$(basename "$0") $*" >> "$WORLD"
[ -t 0 ] || cat >> "$WORLD.input"
if [ -f "$WORLD.ending" ]; then . "$WORLD.ending"; fi
echo "https://example.com/$1/1"
"#;

pub struct Session {
    pub home: Home,
    pub name: String,
    pub client: Option<&'static str>,
    calls: std::cell::Cell<u32>,
}

/// The end of a line.
#[derive(Debug)]
pub enum Told {
    /// The client ran this instead.
    Ran {
        line: String,
        ran: Ran,
        after: Value,
    },
    Denied(String),
}

impl Session {
    pub fn start() -> Session {
        let home = Home::new();
        for tool in ["gh", "git", "deploy"] {
            let path = home.file(tool, TOOL);
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path, mode).expect("it can be executed");
        }
        Session { home, name: "s1".to_owned(), client: None, calls: 0.into() }
    }

    pub fn world(&self) -> Vec<String> {
        let world = std::fs::read_to_string(self.world_file()).unwrap_or_default();
        world.lines().map(str::to_owned).collect()
    }

    fn world_file(&self) -> PathBuf {
        self.home.work().join("world")
    }

    /// From now on each tool does this after it has acted.
    pub fn ends(&self, with: &str) {
        self.home.file("world.ending", with);
    }

    pub fn ends_well(&self) {
        let _it_may_not_be_there = std::fs::remove_file(self.home.work().join("world.ending"));
    }

    pub fn tell(&self, mut event: Value) -> Ran {
        event["session_id"] = self.name.as_str().into();
        event["cwd"] = self.home.work().to_string_lossy().into();
        if let Some(client) = self.client {
            event["client"] = client.into();
        }
        self.home.semel_reading(["hook"], event.to_string().as_bytes())
    }

    pub fn next_call(&self) -> String {
        self.calls.set(self.calls.get() + 1);
        format!("toolu_{}_{}", self.name, self.calls.get())
    }

    /// The line as the hook changes it, or the reason of a denial.
    pub fn ask(&self, call: &str, line: &str) -> Result<String, String> {
        let told = self.tell(json!({
            "hook_event_name": "PreToolUse", "tool_name": self.tool(), "tool_use_id": call,
            "tool_input": {"command": line, "description": "does it"},
        }));
        if told.code == Some(2) {
            return Err(told.stderr);
        }
        assert_eq!(told.code, Some(0), "{told:?}");
        if told.stdout.is_empty() {
            return Ok(line.to_owned());
        }
        let answer = &told.json()["hookSpecificOutput"];
        if answer["permissionDecision"] == "deny" {
            return Err(answer["permissionDecisionReason"].as_str().expect("a reason").to_owned());
        }
        assert_eq!(answer["updatedInput"]["description"], "does it", "the other arguments stay");
        Ok(answer["updatedInput"]["command"].as_str().expect("a command").to_owned())
    }

    fn tool(&self) -> &'static str {
        match self.client {
            Some("open_code") => "bash",
            Some("qwen" | "gemini") => "run_shell_command",
            _ => "Bash",
        }
    }

    /// The shell of the client, not started yet.
    pub fn bash(&self, line: &str) -> Command {
        let mut bash = Command::new("bash");
        let semel = PathBuf::from(env!("CARGO_BIN_EXE_semel"));
        let path =
            format!("{}:{}:/usr/bin:/bin", self.home.work().display(), semel.parent().unwrap().display());
        bash.args(["-c", line]).env_clear().env("PATH", path).env("HOME", self.home.path());
        bash.env("SEMEL_STATE_DIR", self.home.state()).env("WORLD", self.world_file());
        bash.current_dir(self.home.work()).stdin(Stdio::null());
        bash
    }

    pub fn spawn(&self, line: &str) -> Child {
        self.bash(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bash starts")
    }

    /// A whole call, as Claude Code makes it.
    pub fn shell(&self, line: &str) -> Told {
        let call = self.next_call();
        let line = match self.ask(&call, line) {
            Ok(line) => line,
            Err(reason) => return Told::Denied(reason),
        };
        let ran = Ran::of(self.bash(&line).output().expect("bash ends"));
        let after = self.answered(&call, &line, &ran);
        Told::Ran { line, ran, after }
    }

    /// The client has the answer of a tool.
    pub fn answered(&self, call: &str, line: &str, ran: &Ran) -> Value {
        let event = match ran.code {
            Some(0) => json!({
                "hook_event_name": "PostToolUse",
                "tool_response": {"stdout": ran.stdout, "stderr": ran.stderr, "interrupted": false},
            }),
            code => json!({
                "hook_event_name": "PostToolUseFailure", "is_interrupt": false,
                "error": format!("Exit code {}\n{}{}", code.unwrap_or(137), ran.stdout, ran.stderr),
            }),
        };
        let mut event = event;
        event["tool_name"] = self.tool().into();
        event["tool_use_id"] = call.into();
        event["tool_input"] = json!({"command": line});
        let told = self.tell(event);
        assert_eq!(told.code, Some(0), "{told:?}");
        if told.stdout.is_empty() { Value::Null } else { told.json()["hookSpecificOutput"].clone() }
    }

    /// The effects on record, newest first: action's last words and state.
    pub fn states(&self) -> Vec<String> {
        let list = self.home.json(["ledger", "list"]);
        let items = list["items"].as_array().expect("a list");
        items.iter().map(|item| item["state"].as_str().expect("a state").to_owned()).collect()
    }
}

impl Told {
    pub fn ran(self) -> (String, Ran, Value) {
        match self {
            Told::Ran { line, ran, after } => (line, ran, after),
            Told::Denied(reason) => panic!("denied: {reason}"),
        }
    }

    pub fn denied(self) -> String {
        match self {
            Told::Denied(reason) => reason,
            Told::Ran { line, ran, .. } => panic!("ran {line}: {ran:?}"),
        }
    }
}
