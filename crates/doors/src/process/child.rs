//! Runs one child process: its own process group, live output, a timeout, forwarded signals. One loop, no threads.

use super::stream::{FinishedStream, OutputStream, Sink};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::process::{Pid, Signal, kill_process_group};
use semel_ledger::owner::{Group, living_processes};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Between asking a child to end and ending it: enough for a database client to roll back.
const TERMINATION_GRACE: Duration = Duration::from_secs(5);

/// A child that has ended may leave a background process holding its output; we wait this long for the rest.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);

/// The processes that a child started may end a little later than itself.
const GROUP_GRACE: Duration = Duration::from_millis(500);

/// How often a child is looked after when nothing is heard of it.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// The same for one that has closed its output, and so is about to end, where nobody tells of its end.
const LOOK_AFTER_CLOSING: Duration = Duration::from_millis(5);

/// Signals that come to semel and are meant for the command.
#[derive(Debug)]
pub struct Signals {
    woken: UnixStream,
    /// The last termination signal, 0 if none.
    asked_to_end: Arc<AtomicUsize>,
    /// Kept open where no signal writes to it.
    _silent: Option<UnixStream>,
}

impl Signals {
    /// From now on termination signals are noted instead of ending semel: an effect in flight must be settled.
    pub fn listen() -> io::Result<Signals> {
        let (woken, waker) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let asked_to_end = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            signal_hook::flag::register_usize(signal, Arc::clone(&asked_to_end), signal as usize)?;
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, waker)?;
        Ok(Signals { woken, asked_to_end, _silent: None })
    }

    /// Hears nothing: in a program that serves many, signals are not meant for one child.
    pub fn unheard() -> io::Result<Signals> {
        let (woken, waker) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        Ok(Signals { woken, asked_to_end: Arc::default(), _silent: Some(waker) })
    }

    fn tells_of_ends(&self) -> bool {
        self._silent.is_none()
    }

    /// The signal that asked semel to end, if one did.
    pub fn asked_to_end(&self) -> Option<i32> {
        let signal = self.asked_to_end.load(Ordering::Relaxed);
        (signal != 0).then_some(signal as i32)
    }

    fn drain(&self) {
        let mut bytes = [0; 64];
        while matches!(io::Read::read(&mut &self.woken, &mut bytes), Ok(count) if count > 0) {}
    }
}

/// The process groups of living descendants that have come to this process, their own parents being gone.
pub fn heirs() -> Vec<Group> {
    let living = living_processes().unwrap_or_default().into_iter();
    let mut heirs: Vec<Group> =
        living.filter(|process| process.parent == std::process::id()).map(|process| process.group).collect();
    heirs.dedup();
    heirs
}

/// How to run it.
#[derive(Debug)]
pub struct ChildPlan<'a> {
    pub command: Command,
    /// Bytes for its standard input; `None` leaves what the command was given.
    pub input: Option<&'a [u8]>,
    pub stdout: Sink,
    pub stderr: Sink,
    pub kept_max: usize,
    pub timeout: Option<Duration>,
    /// Makes the program that reads its standard input to the end, for whoever the command leaves behind.
    pub output_drain: Option<fn() -> Command>,
}

/// A child that has ended.
#[derive(Debug)]
pub struct FinishedChild {
    pub status: ExitStatus,
    pub timed_out: bool,
    /// It failed, and processes of its group have not ended. One that has left the group is on its own.
    pub left_running: bool,
    pub stdout: FinishedStream,
    pub stderr: FinishedStream,
}

/// Starts the child, alone in a new process group. `started` runs right after, before anything else.
pub fn run(
    mut plan: ChildPlan<'_>,
    signals: &Signals,
    elapsed: &dyn Fn() -> Duration,
    started: impl FnOnce(Option<Group>),
) -> io::Result<FinishedChild> {
    // Descendants whose parents end come to us, so that they can be told to be there. A program that serves many has
    // no use for them, and would never see them off.
    #[cfg(target_os = "linux")]
    if signals.tells_of_ends() {
        let _without_it_only_the_group_is_seen =
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
    plan.command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    if plan.input.is_some() {
        plan.command.stdin(Stdio::piped());
    }
    let spawned = plan.command.spawn();
    // A child leads the group that is named after it.
    started(spawned.as_ref().ok().map(|child| Group(child.id().cast_signed())));
    let mut child = spawned?;
    let group = Pid::from_raw(child.id().cast_signed());
    let mut stdin = child.stdin.take();
    if let Some(stdin) = &stdin {
        rustix::io::ioctl_fionbio(stdin, true)?;
    }
    let mut input = plan.input.unwrap_or_default();
    let out = child.stdout.take().expect("stdout was piped");
    let err = child.stderr.take().expect("stderr was piped");
    let mut stdout = OutputStream::new(out.into(), plan.stdout, plan.kept_max);
    let mut stderr = OutputStream::new(err.into(), plan.stderr, plan.kept_max);
    let mut buffer = vec![0; 64 * 1024];
    let mut ending = Termination::new(plan.timeout.map(|timeout| elapsed() + timeout));
    let mut status = None;
    let mut ended_at = None;
    loop {
        if status.is_none() {
            status = child.try_wait()?;
        }
        if status.is_some() {
            let at = *ended_at.get_or_insert_with(elapsed);
            let drained = stdout.at_end() && stderr.at_end();
            if drained || elapsed() >= at + OUTPUT_GRACE {
                break;
            }
        } else if let Some(group) = group {
            ending.press(group, signals, elapsed());
        }
        if input.is_empty() {
            stdin = None;
        }
        let wait = match ended_at {
            Some(at) => Some((at + OUTPUT_GRACE).saturating_sub(elapsed())),
            None => ending.next_act().map(|act| act.saturating_sub(elapsed())),
        };
        // The rest in a pipe after its writer's end is little, and is read however slow our reader is.
        let last = status.is_some();
        // A child whose end was not signalled (the signal may be blocked) is looked after all the same.
        let closing = !signals.tells_of_ends() && stdout.at_end() && stderr.at_end();
        let look_after = if closing { LOOK_AFTER_CLOSING } else { LOOK_AFTER };
        let wait = Some(wait.map_or(look_after, |wait| wait.min(look_after)));
        let ready = wait_for(signals, [&stdout, &stderr], stdin.as_ref().map(AsFd::as_fd), wait, last)?;
        if ready.signalled {
            signals.drain();
        }
        if ready.stdout_readable {
            stdout.take_in(&mut buffer)?;
        }
        if ready.stderr_readable {
            stderr.take_in(&mut buffer)?;
        }
        if ready.stdout_writable {
            stdout.pass_on();
        }
        if ready.stderr_writable {
            stderr.pass_on();
        }
        if ready.stdin_writable
            && let Some(pipe) = &mut stdin
        {
            match pipe.write(input) {
                Ok(written) => input = &input[written..],
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                // The child does not want the rest; that is its business.
                Err(_) => input = &[],
            }
        }
    }
    let status = status.expect("the loop ends only with a status");
    let left_running = !status.success() && group.is_some_and(|group| outlives(group, elapsed));
    // With nobody at the other end of the pipe, what the command left running would be killed at its next word.
    for left_open in [&mut stdout, &mut stderr].into_iter().filter_map(OutputStream::left_open) {
        if let Some(mut reader) = plan.output_drain.map(|reader| reader()) {
            reader.current_dir("/").process_group(0);
            reader.stdin(left_open).stdout(Stdio::null()).stderr(Stdio::null());
            let _it_must_do_without = reader.spawn();
        }
    }
    let (stdout, stderr) = (stdout.finish(), stderr.finish());
    Ok(FinishedChild { status, timed_out: ending.timed_out, left_running, stdout, stderr })
}

/// Whether processes of a group go on without its leader, after the moment that an orderly end takes.
fn outlives(group: Pid, elapsed: &dyn Fn() -> Duration) -> bool {
    let lives = || {
        let living = living_processes().unwrap_or_default();
        living.iter().any(|process| process.group == Group(group.as_raw_nonzero().get()))
    };
    let until = elapsed() + GROUP_GRACE;
    let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    while lives() {
        if elapsed() >= until {
            return true;
        }
        let _nothing_to_hear = poll(&mut [], Some(&moment));
    }
    false
}

#[derive(Debug, Default)]
struct ReadyEnds {
    signalled: bool,
    stdout_readable: bool,
    stderr_readable: bool,
    stdout_writable: bool,
    stderr_writable: bool,
    stdin_writable: bool,
}

fn wait_for(
    signals: &Signals,
    [stdout, stderr]: [&OutputStream; 2],
    stdin: Option<rustix::fd::BorrowedFd<'_>>,
    wait: Option<Duration>,
    last: bool,
) -> io::Result<ReadyEnds> {
    let wanted = [
        (Some(signals.woken.as_fd()), PollFlags::IN),
        (stdout.readable(last), PollFlags::IN),
        (stderr.readable(last), PollFlags::IN),
        (stdout.writable(), PollFlags::OUT),
        (stderr.writable(), PollFlags::OUT),
        (stdin, PollFlags::OUT),
    ];
    let mut fds: Vec<PollFd<'_>> =
        wanted.iter().filter_map(|(fd, flags)| fd.map(|fd| PollFd::from_borrowed_fd(fd, *flags))).collect();
    let timeout = wait.map(|wait| Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(ReadyEnds { signalled: true, ..ReadyEnds::default() }),
        Err(error) => return Err(error.into()),
    }
    let mut results = fds.iter().map(|fd| !fd.revents().is_empty());
    let mut ready = |slot: usize| wanted[slot].0.is_some() && results.next().unwrap_or(false);
    Ok(ReadyEnds {
        signalled: ready(0),
        stdout_readable: ready(1),
        stderr_readable: ready(2),
        stdout_writable: ready(3),
        stderr_writable: ready(4),
        stdin_writable: ready(5),
    })
}

/// Brings a child to its end: forwards signals, and enforces the timeout.
#[derive(Debug)]
struct Termination {
    times_out_at: Option<Duration>,
    kill_at: Option<Duration>,
    forwarded: Option<i32>,
    timed_out: bool,
}

impl Termination {
    fn new(times_out_at: Option<Duration>) -> Self {
        Termination { times_out_at, kill_at: None, forwarded: None, timed_out: false }
    }

    fn next_act(&self) -> Option<Duration> {
        self.kill_at.or(self.times_out_at)
    }

    fn press(&mut self, group: Pid, signals: &Signals, now: Duration) {
        // A group that is gone already needs no signal; its end will be seen.
        let send = |signal| {
            let _gone_already = kill_process_group(group, signal);
            // A command that was stopped (one that reads the terminal is) must wake up to hear it.
            let _gone_already = kill_process_group(group, Signal::CONT);
        };
        if let Some(signal) = signals.asked_to_end()
            && self.forwarded != Some(signal)
        {
            self.forwarded = Some(signal);
            send(match signal {
                SIGINT => Signal::INT,
                SIGHUP => Signal::HUP,
                SIGQUIT => Signal::QUIT,
                _ => Signal::TERM,
            });
        }
        if self.times_out_at.is_some_and(|at| now >= at) {
            self.times_out_at = None;
            self.timed_out = true;
            self.kill_at = Some(now + TERMINATION_GRACE);
            send(Signal::TERM);
        }
        if self.kill_at.is_some_and(|at| now >= at) {
            self.kill_at = None;
            send(Signal::KILL);
        }
    }
}
