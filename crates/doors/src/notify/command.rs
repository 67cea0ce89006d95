//! Telling by a command: it reads the message from its standard input, and what it prints is nobody's matter.

use super::Untaken;
use crate::caller::without_own_tokens;
use crate::process::program;
use rustix::process::{Pid, Signal, kill_process_group};
use semel_gate::clock::Clock;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// From its start to its end. Then it is killed.
const TAKES_MAX: Duration = Duration::from_secs(30);

/// How soon its end is seen.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct NotifyCommand {
    /// Never empty.
    pub argv: Vec<String>,
    pub directory: PathBuf,
    /// As in PATH.
    pub search: OsString,
}

impl NotifyCommand {
    /// Whether there is such a program.
    pub fn program(&self) -> Result<PathBuf, String> {
        program::find(&self.argv[0], &self.search, &self.directory).map_err(|not_started| not_started.why)
    }

    /// `leave_after`: it goes on by itself then, and counts as told.
    pub(super) async fn run(
        &self,
        message: &str,
        clock: &dyn Clock,
        leave_after: Option<Duration>,
    ) -> Result<(), Untaken> {
        let cannot = |why: String| Untaken::Refused(format!("cannot be started ({why})"));
        let mut command = Command::new(self.program().map_err(cannot)?);
        command.args(&self.argv[1..]).current_dir(&self.directory).env_remove("SEMEL_FAILPOINTS");
        without_own_tokens(&mut command);
        // It may outlive this process, and whoever reads the streams of this one waits for nobody else.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| cannot(error.to_string()))?;
        let stdin = child.stdin.take().expect("its standard input was piped");
        rustix::io::ioctl_fionbio(&stdin, true).map_err(|error| cannot(error.to_string()))?;
        let (mut stdin, mut rest) = (Some(stdin), message.as_bytes());
        let ends = clock.elapsed() + leave_after.unwrap_or(TAKES_MAX);
        loop {
            if let Some(pipe) = &mut stdin {
                match pipe.write(rest) {
                    Ok(written) => rest = &rest[written..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    // It does not want the rest; that is its business.
                    Err(_) => rest = &[],
                }
                if rest.is_empty() {
                    stdin = None;
                }
            }
            match child.try_wait() {
                Ok(None) if clock.elapsed() < ends => clock.sleep(LOOKED_AT_EVERY).await,
                Ok(None) if leave_after.is_some() => return Ok(()),
                Ok(None) => {
                    kill(&mut child);
                    return Err(Untaken::Refused(format!(
                        "did not end within {} seconds and was killed",
                        TAKES_MAX.as_secs()
                    )));
                }
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(Untaken::Refused(format!("failed ({})", shown(status)))),
                Err(error) => return Err(Untaken::Refused(format!("cannot be waited for ({error})"))),
            }
        }
    }
}

fn shown(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit {code}"))
}

/// With all that it has started.
fn kill(child: &mut Child) {
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        let _gone_already = kill_process_group(group, Signal::KILL);
    }
    let _reaped = child.wait();
}
