//! `semel run`, judged by what happened in the world: lines in a file that the wrapped command writes itself.

mod answers;
mod attacks;
mod doubts;
mod failures;
mod identity;
mod inputs;
mod lost;
mod policies;
mod races;
mod secrets;

use crate::home::{Home, Ran};
use std::process::{Child, Stdio};

/// A command that changes the world once for each time it runs, and says so.
pub const TOUCH: &str = "echo x >> world; echo touched";

impl Home {
    /// `semel run` with these flags around a shell script.
    pub fn run(&self, flags: &[&str], script: &str) -> Ran {
        let args = [&["run"], flags, &["--", "sh", "-c", script]].concat();
        self.semel(args)
    }

    /// The same, still running.
    pub fn start(&self, flags: &[&str], script: &str) -> Child {
        let args = [&["run"], flags, &["--", "sh", "-c", script]].concat();
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("semel starts")
    }

    /// How often the world was changed.
    pub fn effects(&self) -> usize {
        self.lines("world")
    }

    pub fn lines(&self, name: &str) -> usize {
        std::fs::read_to_string(self.work().join(name)).map_or(0, |text| text.lines().count())
    }
}

/// The answer object that `semel run` prints under `--json`, whatever its exit code.
pub fn answer(ran: &Ran) -> serde_json::Value {
    ran.json()
}
