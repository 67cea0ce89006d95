//! Each call is a process.

use super::port::{AgentCall, Heard, Port, failure};
use super::world::wait_until;
use crate::child_process::{self, group_of, signal};
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A guard before a command may wait longer than an agent; one that hangs is ended.
const COMMAND_TAKES_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct CommandPort {
    /// The guard's words, in which `{step}` stands for the agent's name of the step. Empty: no guard.
    pub guard: Vec<String>,
    /// The command of the world, without tool and arguments.
    pub tool: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// Where commands run, and guards may leave files.
    pub directory: PathBuf,
}

impl CommandPort {
    fn command(&self, call: &AgentCall<'_>) -> Command {
        let guard = self.guard.iter().map(|word| word.replace("{step}", call.step));
        let own = [call.tool.to_owned(), call.args.to_string()];
        let words: Vec<String> = guard.chain(self.tool.iter().cloned()).chain(own).collect();
        let mut command = child_process::command(&words);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.directory);
        command
    }
}

impl Port for CommandPort {
    fn call(&self, call: &AgentCall<'_>) -> (Heard, Option<Value>) {
        match child_process::run(self.command(call), COMMAND_TAKES_MAX) {
            Ok(Some(ran)) if ran.code == Some(0) => (Heard::Done, serde_json::from_str(&ran.stdout).ok()),
            Ok(Some(ran)) => {
                let said = ran.stderr + &ran.stdout;
                (if ran.code.is_none() { Heard::Unknown(said) } else { failure(said) }, None)
            }
            Ok(None) => (Heard::Unknown("timed out".to_owned()), None),
            Err(error) => (Heard::Failed(error.to_string()), None),
        }
    }

    /// Ctrl-C reaches the guard and the tool alike.
    fn call_and_stop(&self, call: &AgentCall<'_>, is_time: &dyn Fn() -> bool) {
        let Ok(mut child) = self.command(call).stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            return;
        };
        let group = group_of(&child);
        wait_until(is_time);
        signal(group, Signal::INT);
        wait_until(|| child.try_wait().is_ok_and(|ended| ended.is_some()));
        signal(group, Signal::KILL);
        let _reaped = child.wait();
    }
}
