//! `semel serve` before the trivial API.

use super::command::release_binary;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use xtask::project::{self, Result};

/// What clients show, in a header of its own.
pub const TOKEN: &str = "Semel-Token: a-token-of-this-bench\r\n";

#[derive(Debug)]
pub struct BenchServer {
    process: Child,
    pub address: SocketAddr,
    _directory: TempDir,
}

impl BenchServer {
    /// Before one upstream, named `bench`, with more lines about it.
    pub fn before(upstream: SocketAddr, more: &str) -> Result<BenchServer> {
        let semel = release_binary()?;
        let directory = tempfile::tempdir_in(project::scratch()?)?;
        let own = directory.path();
        fs::write(
            own.join("semel.toml"),
            format!("version = 1\n[upstream.bench]\nurl = \"http://{upstream}\"\n{more}"),
        )?;
        let mut command = Command::new(semel);
        command.args(["--json", "serve", "--listen", "127.0.0.1:0"]).current_dir(own);
        // Nothing of whoever runs the bench may change what is measured.
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", own);
        command.env("SEMEL_STATE_DIR", own.join("state")).env("SEMEL_SERVE_TOKEN", token());
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("its output was asked for")).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line).map_err(|_| format!("semel serve said {line:?}"))?;
        let address = said["listen"].as_str().ok_or("semel serve does not say where")?.parse()?;
        Ok(BenchServer { process, address, _directory: directory })
    }

    pub fn process(&self) -> u32 {
        self.process.id()
    }
}

fn token() -> &'static str {
    TOKEN.trim_end().strip_prefix("Semel-Token: ").expect("it is a header")
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}
