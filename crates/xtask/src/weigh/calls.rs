//! Instructions and allocations of commands and calls.
//!
//! A call of a process that lives on is the difference between `CALLS` calls and twice as many, so that neither its start
//! nor its first call counts.

use super::budget::Measured;
use super::valgrind::{Count, Counted};
use crate::project::{self, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Enough for the odd page that SQLite splits, few enough for a quarter of a second each under valgrind.
const CALLS: u64 = 100;

pub fn weigh(release: &Path) -> Result<Vec<Measured>> {
    use Count::{Allocations, Instructions};
    let scale = Scale {
        semel: release.join("semel"),
        harness: release.join("semel-weigh"),
        directory: project::scratch()?.join(format!("weigh-{}", std::process::id())),
    };
    let figures = [
        ("instructions of semel --version", scale.version(Instructions)?),
        ("instructions of semel run, fresh", scale.run(Instructions, Repeat::Fresh)?),
        ("instructions of semel run, replayed", scale.run(Instructions, Repeat::Replay)?),
        ("instructions of a gate's fresh call", scale.gate(Instructions, "fresh")?),
        ("instructions of a gate's replay", scale.gate(Instructions, "replay")?),
        ("instructions of a gate's read", scale.gate(Instructions, "read")?),
        ("instructions of a guarded MCP call", scale.mcp(Instructions)?),
        ("instructions of a fresh HTTP POST", scale.http(Instructions, Repeat::Fresh)?),
        ("instructions of an HTTP replay", scale.http(Instructions, Repeat::Replay)?),
        ("allocations of a gate's fresh call", scale.gate(Allocations, "fresh")?),
        ("allocations of a gate's replay", scale.gate(Allocations, "replay")?),
        ("allocations of a guarded MCP call", scale.mcp(Allocations)?),
        ("allocations of a fresh HTTP POST", scale.http(Allocations, Repeat::Fresh)?),
    ];
    std::fs::remove_dir_all(&scale.directory)?;
    Ok(figures.into_iter().map(|(name, value)| Measured::new(name, value)).collect())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Fresh,
    Replay,
}

#[derive(Debug)]
struct Scale {
    semel: PathBuf,
    harness: PathBuf,
    directory: PathBuf,
}

impl Scale {
    /// An empty home.
    fn home(&self) -> Result<&Path> {
        if self.directory.exists() {
            std::fs::remove_dir_all(&self.directory)?;
        }
        std::fs::create_dir_all(&self.directory)?;
        Ok(&self.directory)
    }

    fn version(&self, count: Count) -> Result<u64> {
        let mut counted = Counted::new(count, &self.semel, self.home()?);
        counted.command.arg("--version");
        finished(counted)
    }

    fn run(&self, count: Count, repeat: Repeat) -> Result<u64> {
        let home = self.home()?;
        let words = |key: &'static str| ["run", "--quiet", "--key", key, "--", "true"];
        // It founds the ledger.
        let mut first = Command::new(&self.semel);
        first
            .args(words("known"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", home)
            .current_dir(home);
        project::must(&mut first)?;
        let mut counted = Counted::new(count, &self.semel, home);
        counted.command.args(words(if repeat == Repeat::Fresh { "fresh" } else { "known" }));
        finished(counted)
    }

    fn gate(&self, count: Count, call: &str) -> Result<u64> {
        each(|calls| {
            let home = self.home()?;
            let mut counted = Counted::new(count, &self.harness, home);
            counted.command.args(["gate", call, &calls.to_string()]).arg(home);
            finished(counted)
        })
    }

    /// A call of a tool, from its line to the line of the answer.
    fn mcp(&self, count: Count) -> Result<u64> {
        each(|calls| {
            let mut counted = Counted::new(count, &self.semel, self.home()?);
            counted.command.args(["mcp", "--quiet", "--name", "weigh", "--"]).arg(&self.harness).arg("tool");
            counted.command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = counted.command.spawn()?;
            let mut input = child.stdin.take().expect("its input was asked for");
            let mut output = BufReader::new(child.stdout.take().expect("its output was asked for"));
            let about = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"w","version":"1"}}"#;
            let mut ask = |id: u64, method: &str, params: &str| {
                writeln!(input, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)?;
                let mut line = String::new();
                output.read_line(&mut line)?;
                expect(line.contains("\"result\"") && !line.contains("\"isError\":true"), &line)
            };
            ask(1, "initialize", about)?;
            ask(2, "tools/list", "{}")?;
            for n in 0..calls {
                let arguments = format!(r#"{{"name":"create_order","arguments":{{"order":"or_{n}"}}}}"#);
                ask(3 + n, "tools/call", &arguments)?;
            }
            drop(input);
            ended(&counted, child)
        })
    }

    /// A request on a connection that is kept, from its first byte to the last of the answer.
    fn http(&self, count: Count, repeat: Repeat) -> Result<u64> {
        let mut api = Command::new(&self.harness);
        let mut api = Ended(api.arg("api").stdout(Stdio::piped()).spawn()?);
        let mut behind = String::new();
        BufReader::new(api.0.stdout.take().expect("its output was asked for")).read_line(&mut behind)?;
        each(|calls| {
            let home = self.home()?;
            let policy = format!("version = 1\n[upstream.weigh]\nurl = \"http://{}\"\n", behind.trim());
            std::fs::write(home.join("semel.toml"), policy)?;
            let mut counted = Counted::new(count, &self.semel, home);
            counted.command.args(["--json", "serve", "--listen", "127.0.0.1:0"]);
            counted.command.env("SEMEL_SERVE_TOKEN", TOKEN).stdout(Stdio::piped());
            let mut child = counted.command.spawn()?;
            let mut line = String::new();
            BufReader::new(child.stdout.take().expect("its output was asked for")).read_line(&mut line)?;
            let said: serde_json::Value = serde_json::from_str(&line)?;
            let address = said["listen"].as_str().ok_or("semel serve does not say where")?;
            let mut connection = TcpStream::connect(address)?;
            connection.set_nodelay(true)?;
            if repeat == Repeat::Replay {
                post(&mut connection, 0)?;
            }
            for n in 0..calls {
                post(&mut connection, if repeat == Repeat::Replay { 0 } else { n })?;
            }
            drop(connection);
            project::must(Command::new("kill").args(["-TERM", &child.id().to_string()]))?;
            ended(&counted, child)
        })
    }
}

const TOKEN: &str = "a-token-of-this-weighing";

fn post(connection: &mut TcpStream, n: u64) -> Result<()> {
    let body = format!(r#"{{"customer":"cus_1","amount":{n},"currency":"eur"}}"#);
    write!(
        connection,
        "POST /p/weigh/items HTTP/1.1\r\nHost: 127.0.0.1\r\nSemel-Token: {TOKEN}\r\nIdempotency-Key: key-{n:06}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    while !answer.ends_with(b"{\"id\": \"or_1\"}") {
        let length = connection.read(&mut part)?;
        answer.extend_from_slice(&part[..length]);
        expect(length > 0 && answer.starts_with(b"HTTP/1.1 201"), &String::from_utf8_lossy(&answer))?;
    }
    Ok(())
}

/// The share of one call.
fn each(mut weigh: impl FnMut(u64) -> Result<u64>) -> Result<u64> {
    let (once, twice) = (weigh(CALLS)?, weigh(2 * CALLS)?);
    Ok(twice.saturating_sub(once) / CALLS)
}

fn finished(mut counted: Counted) -> Result<u64> {
    let child = counted.command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    ended(&counted, child)
}

fn ended(counted: &Counted, mut child: Child) -> Result<u64> {
    let status = child.wait()?;
    expect(status.success(), &format!("{:?}: {status}", counted.command))?;
    counted.figure(child.id())
}

fn expect(so: bool, otherwise: &str) -> Result<()> {
    if so { Ok(()) } else { Err(otherwise.to_owned().into()) }
}

/// A process that is ended with whoever needed it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}
