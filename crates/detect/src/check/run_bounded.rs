//! Runs a command that may hang, ask or never end.

use rustix::process::{Pid, Signal, kill_process_group};
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

/// Runs it without a terminal and without input. `Ok(None)`: it did not end in time, and was killed.
pub fn run(
    words: &[String],
    environment: &[(String, String)],
    patience: Duration,
) -> io::Result<Option<Ran>> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(environment.iter().map(|(name, value)| (name, value)));
    command.env("NO_COLOR", "1").env("TERM", "dumb").env("PAGER", "cat").env("CI", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A program that opens the terminal itself is then stopped by the system, and its time runs out.
    let mut child = command.process_group(0).spawn()?;
    let read = |stream: Option<Box<dyn Read + Send>>| {
        let (to, text) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _what_came = stream.map(|stream| stream.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
            let _nobody_waits = to.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        text
    };
    let stdout = read(child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>));
    let stderr = read(child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>));
    let heard = (stdout.recv_timeout(patience), stderr.recv_timeout(patience));
    // Processes that it started end with it, also where it closed its output and stayed.
    let status = ended(&mut child)?;
    Ok(match (heard, status) {
        ((Ok(stdout), Ok(stderr)), Some(status)) => Some(Ran { code: status.code(), stdout, stderr }),
        _ => None,
    })
}

/// How the process ended. One that has not, a moment after its output did, is killed with its group: `None`.
#[allow(clippy::disallowed_methods, reason = "a process that is about to end is given the moment")]
fn ended(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    const LOOKS: u32 = 200;
    const EVERY: Duration = Duration::from_millis(10);
    let mut ended = child.try_wait()?;
    for _ in 0..LOOKS {
        if ended.is_some() {
            break;
        }
        std::thread::sleep(EVERY);
        ended = child.try_wait()?;
    }
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // A group without processes is gone already.
        let _gone = kill_process_group(group, Signal::KILL);
    }
    if ended.is_none() {
        child.wait()?;
    }
    Ok(ended)
}
