//! PipedInput input, which is part of what is asked for, read to its end before anything is claimed.

use anyhow::bail;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use semel_gate::clock::Clock;
use std::io::{IsTerminal, Read};
use std::time::Duration;

/// It names the action, so it is held whole; more than this belongs into a file.
const INPUT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Many programs start others with an open pipe that they never write to. Without a key we cannot tell that from a
/// slow writer, so we say so after this time rather than wait for ever or guess.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// With a key the input is not needed to name the request; a pipe that is silent for this long is handed through.
const SILENCE_MAX_WITH_KEY: Duration = Duration::from_secs(2);

#[derive(Debug, PartialEq, Eq)]
pub enum PipedInput {
    /// A terminal, a device such as /dev/null, or an empty pipe.
    Nothing,
    Bytes(Vec<u8>),
    /// Open and silent: handed through as it is.
    Unread,
}

impl PipedInput {
    pub fn bytes(self) -> Option<Vec<u8>> {
        match self {
            PipedInput::Bytes(bytes) => Some(bytes),
            PipedInput::Nothing | PipedInput::Unread => None,
        }
    }
}

pub fn read(has_key: bool, clock: &dyn Clock) -> anyhow::Result<PipedInput> {
    let stdin = std::io::stdin();
    let Ok(metadata) = rustix::fs::fstat(&stdin) else { return Ok(PipedInput::Nothing) };
    let kind = FileType::from_raw_mode(metadata.st_mode);
    if stdin.is_terminal()
        || matches!(kind, FileType::CharacterDevice | FileType::BlockDevice | FileType::Directory)
    {
        return Ok(PipedInput::Nothing);
    }
    let patience = if has_key { SILENCE_MAX_WITH_KEY } else { SILENCE_MAX };
    let mut input = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut lock = stdin.lock();
    loop {
        // Once it has begun it is being read, and must come to its end.
        let patience = if input.is_empty() { patience } else { SILENCE_MAX };
        if !readable(&stdin, patience, clock)? {
            if has_key && input.is_empty() {
                return Ok(PipedInput::Unread);
            }
            bail!(
                "standard input is open and silent, and its end would be part of the action's identity; \
                 give it </dev/null, or --stdin pass to hand it through unread"
            );
        }
        match lock.read(&mut buffer) {
            Ok(0) if input.is_empty() => return Ok(PipedInput::Nothing),
            Ok(0) => return Ok(PipedInput::Bytes(input)),
            Ok(count) => input.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                bail!("standard input cannot be read: {error}; --stdin pass hands it through unread")
            }
        }
        if input.len() > INPUT_BYTES_MAX {
            bail!(
                "standard input has more than {INPUT_BYTES_MAX} bytes; --stdin pass hands it through unread"
            );
        }
    }
}

fn readable(stdin: &std::io::Stdin, patience: Duration, clock: &dyn Clock) -> anyhow::Result<bool> {
    let until = clock.elapsed() + patience;
    loop {
        let left = until.saturating_sub(clock.elapsed());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => bail!("standard input cannot be watched: {error}"),
        }
    }
}
