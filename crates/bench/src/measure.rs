//! Clocks and counts: how long, how often, and how much of the machine others took meanwhile.

use std::fs;
use std::time::{Duration, Instant};

#[allow(clippy::disallowed_methods, reason = "a benchmark is about the machine's own time")]
pub fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "gives another process or thread its time")]
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Of the machine's clock, for two processes on it.
#[allow(clippy::disallowed_methods, reason = "a benchmark is about the machine's own time")]
pub fn wall_micros() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(f64::NAN, |since| since.as_micros() as f64)
}

pub fn time<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = now();
    let done = work();
    (done, started.elapsed())
}

/// Latencies of many operations.
#[derive(Debug, Clone, Default)]
pub struct Times(Vec<u64>);

impl Times {
    pub fn add(&mut self, span: Duration) {
        self.0.push(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    }

    pub fn join(&mut self, other: Times) {
        self.0.extend(other.0);
    }

    /// Microseconds at a share of the sorted latencies: 0.5 is the median, 1.0 the worst.
    pub fn micros(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        let place = (last as f64 * share).round() as usize;
        self.0.get(place).map_or(f64::NAN, |nanos| *nanos as f64 / 1e3)
    }

    pub fn median(&mut self) -> f64 {
        self.micros(0.5)
    }

    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<u64>() as f64 / 1e3 / self.0.len() as f64
    }
}

/// The machine's and our own processor time so far, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    busy: u64,
    all: u64,
    own: u64,
}

impl Machine {
    /// `None` where there is no `/proc`.
    pub fn look() -> Option<Machine> {
        let all = fs::read_to_string("/proc/stat").ok()?;
        let ticks: Vec<u64> = all
            .lines()
            .next()?
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|word| word.parse().ok())
            .collect();
        let [_, _, _, idle, iowait, ..] = ticks[..] else { return None };
        let all = ticks.iter().sum();
        Some(Machine { busy: all - idle - iowait, all, own: own_ticks()? })
    }

    /// The share of all cores that neither we nor our children used, yet somebody did.
    pub fn others_since(&self, before: &Machine) -> f64 {
        let all = (self.all - before.all).max(1) as f64;
        let busy = (self.busy - before.busy) as f64;
        let own = (self.own - before.own) as f64;
        ((busy - own) / all).max(0.0)
    }

    /// Our own share of one core.
    pub fn own_since(&self, before: &Machine) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        (self.own - before.own) as f64 / (self.all - before.all).max(1) as f64 * cores
    }
}

/// Processor time that we and our finished children have used, in seconds. Noise moves it far less than it moves
/// a rate.
pub fn own_seconds() -> f64 {
    own_ticks().map_or(f64::NAN, |ticks| ticks as f64 / TICKS_PER_SECOND)
}

/// Linux shows times to programs in hundredths of a second, whatever its own tick is.
const TICKS_PER_SECOND: f64 = 100.0;

/// User and system time of this process and of the children that it has waited for.
fn own_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let after_name = stat.rsplit_once(") ")?.1;
    Some(after_name.split(' ').skip(11).take(4).filter_map(|word| word.parse::<u64>().ok()).sum())
}

/// Resident memory of this process, in megabytes.
pub fn resident() -> Option<f64> {
    resident_of(std::process::id())
}

/// The most that it has ever been.
pub fn resident_peak() -> Option<f64> {
    status_of(std::process::id(), "VmHWM:")
}

/// Resident memory of another process.
pub fn resident_of(process: u32) -> Option<f64> {
    status_of(process, "VmRSS:")
}

fn status_of(process: u32, name: &str) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kib| kib / 1024.0)
}

/// Processor time that other processes have used so far, in seconds.
pub fn seconds_of(processes: &[u32]) -> f64 {
    let ticks = |process: &u32| -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let after_name = stat.rsplit_once(") ")?.1;
        Some(after_name.split(' ').skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum())
    };
    processes.iter().filter_map(ticks).sum::<u64>() as f64 / TICKS_PER_SECOND
}

/// How many files a process that we start may have open, if it asks for all that it may have.
pub fn open_files_max() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let words =
        line.map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>());
    words.and_then(|words| words.into_iter().min()).unwrap_or(1_024)
}
