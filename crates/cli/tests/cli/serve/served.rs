//! `semel serve` as a process.

use crate::home::{Home, memory_peak};
use semel_testkit::http::{RawClient, Response};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

pub const TOKEN: &str = "a-token-of-this-test";

#[derive(Debug)]
pub struct Served {
    child: Child,
    pub address: String,
    /// The document that it printed at its start.
    pub told: Value,
    said: Arc<Mutex<String>>,
}

const SERVE: [&str; 4] = ["--json", "serve", "--listen", "127.0.0.1:0"];

impl Served {
    /// Serves with this policy, on a port of its own.
    pub fn start(home: &Home, policy: &str) -> Served {
        Served::start_with(home, policy, &[])
    }

    /// The same, with further variables in its environment.
    pub fn start_with(home: &Home, policy: &str, variables: &[(&str, &str)]) -> Served {
        home.file("semel.toml", policy);
        Served::again_with(home, variables)
    }

    /// Another process with the policy and the ledger that are there.
    pub fn again(home: &Home) -> Served {
        Served::again_with(home, &[])
    }

    /// A process that may have so many files open.
    pub fn start_with_files(home: &Home, policy: &str, files: usize) -> Served {
        home.file("semel.toml", policy);
        let served = home.command(SERVE);
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit -n {files}; exec \"$0\" \"$@\""));
        shell.arg(served.get_program()).args(served.get_args());
        shell.env_clear().envs(served.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(home.work()).stdin(Stdio::null());
        Served::of(shell)
    }

    /// The same in another directory, whose policy holds.
    pub fn start_in(home: &Home, directory: &std::path::Path, variables: &[(&str, &str)]) -> Served {
        let mut command = home.command(SERVE);
        command.current_dir(directory).envs(variables.iter().copied());
        Served::of(command)
    }

    pub fn again_with(home: &Home, variables: &[(&str, &str)]) -> Served {
        let mut command = home.command(SERVE);
        command.envs(variables.iter().copied());
        Served::of(command)
    }

    fn of(mut command: Command) -> Served {
        command.env("SEMEL_SERVE_TOKEN", TOKEN).env("UPSTREAM_TOKEN", "Bearer operator");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("semel starts");
        let (talk, said) = (child.stderr.take().expect("its talk is a pipe"), Arc::default());
        let heard: Arc<Mutex<String>> = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in BufReader::new(talk).lines().map_while(Result::ok) {
                heard.lock().expect("nobody panicked").push_str(&format!("{line}\n"));
            }
        });
        let mut line = String::new();
        let output = child.stdout.take().expect("its output is a pipe");
        BufReader::new(output).read_line(&mut line).expect("it says where it listens");
        let told: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?} {said:?}"));
        Served { child, address: told["listen"].as_str().expect("an address").to_owned(), told, said }
    }

    pub fn before(home: &Home, url: &str) -> Served {
        Served::start(home, &format!("[mcp.bank]\nurl = \"{url}\"\n"))
    }

    /// A request with semel's token, the head as given.
    pub fn ask(&self, method: &str, headers: &str, body: &str) -> RawClient {
        self.ask_raw(
            &format!("{method} /mcp/bank HTTP/1.1"),
            &format!("Semel-Token: {TOKEN}\r\n{headers}"),
            body,
        )
    }

    /// The processes that it has started and that live, in order.
    pub fn children(&self) -> Vec<u32> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it lives");
        let of_each = tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("children")));
        let all: String = of_each.flatten().collect();
        let mut ids: Vec<u32> = all.split_whitespace().map(|id| id.parse().expect("a process id")).collect();
        ids.sort_unstable();
        ids
    }

    pub fn memory_peak(&self) -> u64 {
        memory_peak(self.child.id())
    }

    pub fn ask_raw(&self, first: &str, headers: &str, body: &str) -> RawClient {
        RawClient::ask(&self.address, first, headers, body)
    }

    /// As its metrics say.
    pub fn calls_in_flight(&self) -> usize {
        let headers = format!("Authorization: Bearer {TOKEN}\r\n");
        let text = self.ask_raw("GET /metrics HTTP/1.1", &headers, "").answer().body;
        let count = text.lines().find_map(|line| line.strip_prefix("semel_calls_in_flight "));
        count.and_then(|count| count.parse().ok()).expect("it is told")
    }

    pub fn post(&self, message: &Value) -> Response {
        self.ask("POST", SESSION, &message.to_string()).answer()
    }

    pub fn call(&self, tool: &str, arguments: Value) -> Response {
        self.post(&calling(1, tool, arguments))
    }

    /// What it said on stderr so far.
    pub fn said(&self) -> String {
        self.said.lock().expect("nobody panicked").clone()
    }

    /// Ends it without a word.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it was there");
    }

    /// Tells it to stop, and waits for its end.
    pub fn stop(&mut self) -> ExitStatus {
        self.tell_to_stop();
        self.child.wait().expect("it ends")
    }

    pub fn tell_to_stop(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it is there");
    }

    pub fn end(&mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

pub const SESSION: &str = "Mcp-Session-Id: s-1\r\nMCP-Protocol-Version: 2025-11-25\r\n";

pub fn calling(id: u64, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}
