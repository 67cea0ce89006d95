//! The real peers: what `cargo xtask peers` installed, and the scripts that use it.

use super::Way;
use crate::home::{Home, Ran};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a guarded server is called in actions and in paths of `semel serve`.
pub const NAME: &str = "billing";

/// The servers of `crates/testkit/peers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// With the official Python SDK.
    Python,
    /// With the official TypeScript SDK.
    TypeScript,
    /// The conformance suite's reference, over HTTP alone.
    Everything,
    /// Without an SDK and without manners.
    Rogue,
}

/// Where one set of peers was installed.
pub fn installed(set: &str) -> PathBuf {
    let semel = Path::new(env!("CARGO_BIN_EXE_semel"));
    let target = semel.ancestors().nth(2).expect("the binary lies in target/<profile>");
    let directory = target.join("peers").join(set);
    let stamp = directory.join("installed");
    assert!(stamp.exists(), "these tests need real peers; `cargo xtask peers` installs them");
    directory
}

pub fn python() -> String {
    text(installed("tests").join("python/bin/python"))
}

pub fn node() -> String {
    text(installed("tests").join("node"))
}

pub fn script(name: &str) -> String {
    text(Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/peers").join(name))
}

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("the path is text")
}

impl Server {
    pub fn command(self) -> Vec<String> {
        match self {
            Server::Python => vec![python(), script("charging.py")],
            Server::TypeScript => vec![node(), script("charging.mjs")],
            Server::Everything => vec![node(), script("everything.mjs")],
            Server::Rogue => vec![python(), script("rogue.py")],
        }
    }
}

impl Home {
    /// Gives a program what it needs to be, or to start, one of the peers.
    pub fn furnish<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.work());
        command.env("SEMEL_STATE_DIR", self.state());
        command.env("SEMEL_PEERS", installed("tests")).env("PYTHONDONTWRITEBYTECODE", "1");
        for (name, file) in [("SEMEL_WORLD", "world"), ("SEMEL_HEARD", "heard"), ("SEMEL_SEEN", "seen")] {
            command.env(name, self.work().join(file));
        }
        command.current_dir(self.work())
    }

    /// A program with its arguments, furnished, not started yet.
    pub fn program(&self, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        self.furnish(&mut command);
        command
    }

    /// The command line that a client starts to speak to a server over stdio.
    pub fn stdio(&self, way: Way, server: Server) -> Vec<String> {
        let guard = [env!("CARGO_BIN_EXE_semel"), "mcp", "--name", NAME, "--"].map(str::to_owned);
        let guard = if way == Way::Guarded { &guard[..] } else { &[] };
        [guard, &server.command()].concat()
    }

    /// The command line that a client starts to speak over stdio to a server elsewhere.
    pub fn stdio_before_http(&self, url: &str) -> Vec<String> {
        [env!("CARGO_BIN_EXE_semel"), "mcp", "--name", NAME, "--url", url].map(str::to_owned).to_vec()
    }

    /// What the Python client brought back.
    pub fn python_client(&self, plan: &Value) -> Value {
        self.client(&[python(), script("client.py")], plan)
    }

    /// What the TypeScript client brought back.
    pub fn typescript_client(&self, plan: &Value) -> Value {
        self.client(&[node(), script("client.mjs")], plan)
    }

    fn client(&self, words: &[String], plan: &Value) -> Value {
        let mut command = self.program(words);
        let ran = Ran::of(command.arg(plan.to_string()).output().expect("the client starts"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.json()
    }

    /// What the world was told, one line for each effect.
    pub fn world(&self) -> Vec<Value> {
        let told = std::fs::read_to_string(self.work().join("world")).unwrap_or_default();
        told.lines().map(|line| serde_json::from_str(line).expect("a line of the world is JSON")).collect()
    }

    /// Waits until something is so. Whatever is waited for is done by another process.
    pub fn wait_until(&self, what: &str, so: impl FnMut() -> bool) {
        semel_testkit::wait_until(what, so);
    }
}

/// A call as a step of a client's plan.
pub fn call(tool: &str, arguments: Value) -> Value {
    json!({"tool": tool, "arguments": arguments})
}
