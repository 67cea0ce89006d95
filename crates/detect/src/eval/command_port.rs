//! Each call is a process.

use super::port::{AgentCall, Heard, Port, failure};
use super::world::wait_until;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
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
    /// Starts the guarded command as the head of a process group, as a shell does.
    fn start(&self, call: &AgentCall<'_>) -> io::Result<Child> {
        let guard = self.guard.iter().map(|word| word.replace("{step}", call.step));
        let own = [call.tool.to_owned(), call.args.to_string()];
        let words: Vec<String> = guard.chain(self.tool.iter().cloned()).chain(own).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.directory).process_group(0).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    }

    /// `None`: it did not end in time.
    fn run(&self, call: &AgentCall<'_>) -> io::Result<Option<Output>> {
        let child = self.start(call)?;
        let group = group_of(&child);
        let (to, ended) = mpsc::channel();
        std::thread::spawn(move || to.send(child.wait_with_output()));
        match ended.recv_timeout(COMMAND_TAKES_MAX) {
            Ok(output) => output.map(Some),
            Err(_) => {
                signal(group, Signal::KILL);
                Ok(None)
            }
        }
    }
}

impl Port for CommandPort {
    fn call(&self, call: &AgentCall<'_>) -> (Heard, Option<Value>) {
        match self.run(call) {
            Ok(Some(output)) if output.status.success() => {
                (Heard::Done, serde_json::from_slice(&output.stdout).ok())
            }
            Ok(Some(output)) => {
                let said = [&output.stderr[..], &output.stdout[..]].concat();
                let said = String::from_utf8_lossy(&said).into_owned();
                let died = output.status.code().is_none();
                (if died { Heard::Unknown(said) } else { failure(said) }, None)
            }
            Ok(None) => (Heard::Unknown("timed out".to_owned()), None),
            Err(error) => (Heard::Failed(error.to_string()), None),
        }
    }

    /// Ctrl-C reaches the guard and the tool alike.
    fn call_and_stop(&self, call: &AgentCall<'_>, is_time: &dyn Fn() -> bool) {
        let Ok(mut child) = self.start(call) else { return };
        let group = group_of(&child);
        wait_until(is_time);
        signal(group, Signal::INT);
        wait_until(|| child.try_wait().is_ok_and(|ended| ended.is_some()));
        signal(group, Signal::KILL);
        let _reaped = child.wait();
    }
}

fn group_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

fn signal(group: Option<Pid>, signal: Signal) {
    // A group that has ended needs no signal.
    let _gone = group.map(|group| kill_process_group(group, signal));
}
