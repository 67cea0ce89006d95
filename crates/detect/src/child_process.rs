//! Child processes that may hang, ask or never end.

use rustix::process::{Pid, Signal, kill_process_group};
use semel_core::own_tokens::OWN_TOKENS;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// More output than this is not read.
const OUTPUT_BYTES_MAX: u64 = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// `None`: a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A command at the head of a process group, with piped output and without input. A program that opens the terminal itself
/// is then stopped by the system, and its time runs out.
pub fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).process_group(0);
    for name in OWN_TOKENS {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Runs it and keeps the beginning of its output. `Ok(None)`: it did not end in time, and was killed.
pub fn run(mut command: Command, patience: Duration) -> io::Result<Option<Ran>> {
    command.stderr(Stdio::piped());
    let ran = run_with(command, patience, |child| {
        let stderr = child.stderr.take();
        let stderr = std::thread::spawn(move || beginning(stderr));
        (beginning(child.stdout.take()), stderr.join().unwrap_or_default())
    })?;
    Ok(ran.map(|(status, (stdout, stderr))| Ran { code: status.code(), stdout, stderr }))
}

/// Runs it while `read` takes its output. `Ok(None)`: it did not end in time. Processes that it started end with it.
pub fn run_with<T: Send + 'static>(
    mut command: Command,
    patience: Duration,
    read: impl FnOnce(&mut Child) -> T + Send + 'static,
) -> io::Result<Option<(ExitStatus, T)>> {
    let mut child = command.spawn()?;
    let group = group_of(&child);
    let (to, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let read = read(&mut child);
        let _nobody_waits = to.send(child.wait().map(|status| (status, read)));
    });
    let ended = ended.recv_timeout(patience);
    signal(group, Signal::KILL);
    ended.ok().transpose()
}

fn beginning(stream: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    let _all_that_came = stream.map(|stream| stream.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

pub fn group_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

pub fn signal(group: Option<Pid>, signal: Signal) {
    // A group that has ended needs no signal.
    let _gone = group.map(|group| kill_process_group(group, signal));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        command(&["sh", "-c", script].map(str::to_owned))
    }

    #[test]
    fn a_command_that_never_ends_is_ended_with_all_that_it_started() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut hanging = sh("sleep 600 & echo $! > pid; sleep 600");
        hanging.current_dir(directory.path());
        assert_eq!(run(hanging, Duration::from_secs(2)).expect("it starts"), None);
        let pid = std::fs::read_to_string(directory.path().join("pid")).expect("it ran");
        let is_gone = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        crate::eval::world::wait_until(|| is_gone(pid.trim()));
        assert!(is_gone(pid.trim()), "{pid}");
    }

    #[test]
    fn endless_output_is_cut() {
        let ran = run(sh("yes; echo end >&2"), Duration::from_secs(60)).expect("it starts").expect("it ends");
        assert_eq!(ran.stdout.len() as u64, OUTPUT_BYTES_MAX);
    }
}
