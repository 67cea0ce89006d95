//! The counting world, started, asked and read from tests. What its own log says is the truth that all else is
//! judged by.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A world process. It ends with this value.
#[derive(Debug)]
pub struct WorldProcess {
    process: Child,
    socket: PathBuf,
    log: PathBuf,
}

/// One change of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    pub id: String,
    /// The attempt that made it, as semel numbered it; 0 without semel.
    pub attempt: u64,
}

/// Every change so far, by key, in the order in which they happened.
pub type WorldLog = BTreeMap<String, Vec<Happened>>;

impl WorldProcess {
    /// Starts `program` (`semel-world`) with socket and log in `directory`.
    pub fn start(program: &Path, directory: &Path) -> std::io::Result<WorldProcess> {
        let (socket, log) = (directory.join("world.sock"), directory.join("world.log"));
        let process = Command::new(program)
            .arg("--socket")
            .arg(&socket)
            .arg("--log")
            .arg(&log)
            .stdin(Stdio::null())
            .spawn()?;
        let mut world = WorldProcess { process, socket, log };
        world.wait_until_it_listens()?;
        Ok(world)
    }

    #[allow(clippy::disallowed_methods, reason = "another process's start is driven by no clock of ours")]
    fn wait_until_it_listens(&mut self) -> std::io::Result<()> {
        while UnixStream::connect(&self.socket).is_err() {
            if let Some(status) = self.process.try_wait()? {
                return Err(std::io::Error::other(format!("the world did not start: {status}")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Reads the log file itself, not what the process remembers.
    pub fn log(&self) -> std::io::Result<WorldLog> {
        let mut happened = WorldLog::new();
        for line in std::fs::read_to_string(&self.log)?.lines() {
            let line: Value = serde_json::from_str(line)?;
            let key = line["key"].as_str().unwrap_or_default().to_owned();
            let id = line["id"].as_str().unwrap_or_default().to_owned();
            let attempt = line["attempt"].as_u64().unwrap_or_default();
            happened.entry(key).or_default().push(Happened { id, attempt });
        }
        Ok(happened)
    }

    /// How often the world changed under one key, by its log.
    pub fn changes(&self, key: &str) -> std::io::Result<usize> {
        Ok(self.log()?.get(key).map_or(0, Vec::len))
    }

    /// How often, by its own word.
    pub fn count(&self, key: &str) -> std::io::Result<u64> {
        let mut stream = UnixStream::connect(&self.socket)?;
        writeln!(stream, "{}", json!({"count": key}))?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line)?;
        Ok(answer["count"].as_u64().unwrap_or_default())
    }
}

impl Drop for WorldProcess {
    fn drop(&mut self) {
        let _gone_already = self.process.kill();
        let _gone_already = self.process.wait();
    }
}

/// What a command prints that made this change, or that found it.
pub fn body(id: &str) -> String {
    format!("{}\n", json!({"done": id}))
}
