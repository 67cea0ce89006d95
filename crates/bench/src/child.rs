//! Parts of a bench that need a process of their own: this program again, with a hidden command.
//!
//! A child says `ready`, waits for a line on its input, and ends by printing its result as one line of JSON.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::project::Result;

pub const COMMAND: &str = "bench-child";

const READY: &str = "ready";

#[derive(Debug)]
pub struct BenchChild {
    command: Command,
}

#[derive(Debug)]
pub struct Started {
    process: std::process::Child,
    begun: bool,
    output: BufReader<std::process::ChildStdout>,
}

impl BenchChild {
    pub fn new(part: &str, directory: &Path, words: &[&str]) -> Result<BenchChild> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(COMMAND).arg(part).arg(directory).args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(BenchChild { command })
    }

    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts it and waits until it is ready.
    pub fn start(&mut self) -> Result<Started> {
        let mut process = self.command.spawn()?;
        let mut output = BufReader::new(process.stdout.take().expect("its output was asked for"));
        let mut line = String::new();
        output.read_line(&mut line)?;
        if line.trim() != READY {
            return Err(format!("a part of the bench said {line:?} instead of {READY:?}").into());
        }
        Ok(Started { process, begun: false, output })
    }
}

impl Started {
    /// Lets it begin.
    pub fn begin(&mut self) -> Result<()> {
        self.begun = true;
        let input = self.process.stdin.as_mut().expect("its input was asked for");
        Ok(input.write_all(b"go\n")?)
    }

    /// Lets it begin if it has not, and waits for its end.
    pub fn result(mut self) -> Result<Value> {
        if !self.begun {
            self.begin()?;
        }
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let status = self.process.wait()?;
        if !status.success() {
            return Err(format!("a part of the bench ended with {status}").into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

pub fn number(found: &Value, name: &str) -> f64 {
    found[name].as_f64().unwrap_or(f64::NAN)
}

/// Everything is set up: tells the parent so, and waits for its word.
pub fn wait_for_begin() -> Result<()> {
    println!("{READY}");
    wait_for_word()
}

/// The parent lets it begin again.
pub fn wait_for_word() -> Result<()> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    if line.is_empty() { Err("the parent has gone".into()) } else { Ok(()) }
}
