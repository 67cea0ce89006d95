//! The script that drives a peer.
//!
//! Once the peer is warm it prints its version. Each line that it then reads is a number of calls, and it answers with
//! how many of them it made a second; what it prints is one line of JSON each. It ends when its input does. A script of
//! another bench may know other lines.

use crate::child;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use xtask::project::Result;

#[derive(Debug)]
pub struct PeerDriver {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    version: String,
}

impl PeerDriver {
    /// Starts a script, and waits until the peer is warm.
    pub fn start(script: &mut Command) -> Result<PeerDriver> {
        let mut process = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("its output was asked for"));
        let mut driver = PeerDriver { process, input, output, version: String::new() };
        driver.version = driver.answer()?["version"].as_str().unwrap_or("?").to_owned();
        Ok(driver)
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// Calls a second over so many calls.
    pub fn turn(&mut self, calls: usize) -> Result<f64> {
        self.ask(&calls.to_string())
    }

    /// The same calls again, for a script that knows how: none of them runs.
    pub fn again(&mut self, calls: usize) -> Result<f64> {
        self.ask(&format!("again {calls}"))
    }

    fn ask(&mut self, line: &str) -> Result<f64> {
        self.tell(line)?;
        Ok(child::number(&self.answer()?, "calls_per_second"))
    }

    /// Lets it begin something.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        Ok(writeln!(self.input.as_mut().expect("open until the end"), "{line}")?)
    }

    /// Waits for what it has to say.
    pub fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            // Libraries may greet on the same output.
            if let Ok(answer @ Value::Object(_)) = serde_json::from_str(&line) {
                return Ok(answer);
            }
            line.clear();
        }
        Err(format!("its script ended with {}", self.process.wait()?).into())
    }
}

impl Drop for PeerDriver {
    fn drop(&mut self) {
        self.input = None;
        // The measurement is over; how the script ends changes nothing.
        drop(self.process.wait());
    }
}
