//! `semel serve` as a process, and a client that shows every byte.

use crate::home::{Home, memory_peak};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

pub const TOKEN: &str = "a-token-of-this-test";

#[derive(Debug)]
pub struct Served {
    child: Child,
    pub address: String,
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

    fn again_with(home: &Home, variables: &[(&str, &str)]) -> Served {
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
        Served { child, address: told["listen"].as_str().expect("an address").to_owned(), said }
    }

    pub fn before(home: &Home, url: &str) -> Served {
        Served::start(home, &format!("[mcp.bank]\nurl = \"{url}\"\n"))
    }

    /// A request with semel's token, the head as given.
    pub fn ask(&self, method: &str, headers: &str, body: &str) -> Asked {
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

    pub fn ask_raw(&self, first: &str, headers: &str, body: &str) -> Asked {
        let host =
            if headers.contains("Host: ") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let length = if headers.contains("Content-Length") || body.is_empty() {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        let mut stream = TcpStream::connect(&self.address).expect("semel listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let text = format!("{first}\r\n{host}{length}{headers}Connection: close\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).expect("the request is taken");
        Asked { reader: BufReader::new(stream) }
    }

    /// As its metrics say.
    pub fn calls_in_flight(&self) -> usize {
        let headers = format!("Authorization: Bearer {TOKEN}\r\n");
        let text = self.ask_raw("GET /metrics HTTP/1.1", &headers, "").answer().body;
        let count = text.lines().find_map(|line| line.strip_prefix("semel_calls_in_flight "));
        count.and_then(|count| count.parse().ok()).expect("it is told")
    }

    pub fn post(&self, message: &Value) -> Answer {
        self.ask("POST", SESSION, &message.to_string()).answer()
    }

    pub fn call(&self, tool: &str, arguments: Value) -> Answer {
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
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is there");
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

/// A request whose answer is still to be read.
#[derive(Debug)]
pub struct Asked {
    reader: BufReader<TcpStream>,
}

/// Hangs up for certain: between its fork and its exec a child that another test starts has a copy of every socket, and
/// an end of one's own copy alone would not be told to the other side before it is gone too.
impl Drop for Asked {
    fn drop(&mut self) {
        let _gone = self.reader.get_ref().shutdown(std::net::Shutdown::Both);
    }
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Asked {
    pub fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.reader.read_line(&mut head).expect("a head") > 0, "the connection ended: {head:?}");
        }
        head
    }

    /// Whether the first byte of an answer is there.
    pub fn is_answered(&self) -> bool {
        let stream = self.reader.get_ref();
        let waits = |not: bool| stream.set_nonblocking(not).expect("it can be set");
        waits(true);
        let is_answered = stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
        waits(false);
        is_answered
    }

    /// One chunk of a body; empty at its end.
    pub fn chunk(&mut self) -> String {
        let mut size = String::new();
        self.reader.read_line(&mut size).expect("a chunk");
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).expect("a whole chunk");
        chunk.truncate(size);
        String::from_utf8(chunk).expect("text")
    }

    /// One chunk of a body; `None` where the connection ended in the middle.
    pub fn chunk_if_any(&mut self) -> Option<String> {
        let mut size = String::new();
        self.reader.read_line(&mut size).ok().filter(|read| *read > 0)?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        String::from_utf8(chunk).ok()
    }

    pub fn answer(mut self) -> Answer {
        let head = self.head();
        self.answer_after(head)
    }

    /// The answer whose head was read already.
    pub fn answer_after(mut self, head: String) -> Answer {
        let status = head[9..12].parse().expect("a status");
        let lower = head.to_ascii_lowercase();
        let mut body = String::new();
        if lower.contains("transfer-encoding: chunked") {
            loop {
                let chunk = self.chunk();
                if chunk.is_empty() {
                    break;
                }
                body.push_str(&chunk);
            }
        } else {
            self.reader.read_to_string(&mut body).expect("a body");
        }
        Answer { status, head: lower, body }
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        // What takes long is answered in a stream, its last event is the answer.
        let events = self.head.contains("content-type: text/event-stream");
        let last = || self.body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        let text = events.then(last).flatten().unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn outcome(&self) -> Value {
        self.json()["result"]["_meta"]["dev.semel/receipt"]["outcome"].clone()
    }
}
