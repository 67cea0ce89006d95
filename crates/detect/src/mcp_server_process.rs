//! An MCP server as a child process, and the client's side of the talk with it.

use crate::child_process::{command, group_of, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A server whose input has ended is given this long to end by itself.
const END_TAKES_MAX: Duration = Duration::from_secs(1);
/// A server may be slow to start, on a machine that starts many.
const START_TAKES_MAX: Duration = Duration::from_secs(60);
/// Nobody's server lists its tools in more pages.
const PAGES_MAX: usize = 1_000;
/// A server that sends a longer message is not read any further.
const MESSAGE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads a message into `line`. `false`: the output has ended, or what comes is no message.
fn read_message(output: &mut impl BufRead, line: &mut Vec<u8>) -> bool {
    line.clear();
    let read = output.take(MESSAGE_BYTES_MAX).read_until(b'\n', line);
    read.is_ok_and(|length| length > 0) && line.ends_with(b"\n")
}

#[derive(Debug)]
pub struct McpServerProcess {
    child: Mutex<Child>,
    /// `None`: it has ended.
    input: Mutex<Option<ChildStdin>>,
    /// Disconnected when the output ends.
    output: Mutex<Receiver<()>>,
    waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>>,
    next: AtomicU64,
    /// The server's own listing.
    pub tools: Vec<Value>,
}

impl McpServerProcess {
    /// Starts the command, in a directory if one is given, and asks for its tools.
    pub fn start(
        words: &[String],
        environment: &[(String, String)],
        directory: Option<&Path>,
    ) -> io::Result<McpServerProcess> {
        let mut command = command(words);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take().expect("it was asked for");
        let mut output = BufReader::new(child.stdout.take().expect("it was asked for"));
        let waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>> = Arc::default();
        let readers = Arc::clone(&waiting);
        let (reads, output_end) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while read_message(&mut output, &mut line) {
                let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
                // A request of the server has an id of its own, which may equal one of ours.
                if message.get("method").is_some() {
                    continue;
                }
                let id = message["id"].as_u64().unwrap_or(u64::MAX);
                if let Some(to) = readers.lock().unwrap_or_else(PoisonError::into_inner).remove(&id) {
                    let _left = to.send(message);
                }
            }
            // Who still waits hears that nobody will answer.
            readers.lock().unwrap_or_else(PoisonError::into_inner).clear();
            drop(reads);
        });
        let mut server = McpServerProcess {
            child: Mutex::new(child),
            input: Mutex::new(Some(input)),
            output: Mutex::new(output_end),
            waiting,
            next: AtomicU64::new(1),
            tools: Vec::new(),
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "semel", "version": "1"}});
        server
            .request("initialize", &hello, START_TAKES_MAX)
            .ok_or_else(|| io::Error::other("the server did not greet"))?;
        server.notify("notifications/initialized", &json!({}))?;
        server.tools = server.list_tools()?;
        Ok(server)
    }

    /// The tools of every page.
    fn list_tools(&self) -> io::Result<Vec<Value>> {
        let (mut tools, mut params) = (Vec::new(), json!({}));
        for _ in 0..PAGES_MAX {
            let listed = self.request("tools/list", &params, START_TAKES_MAX).unwrap_or_default();
            let Some(page) = listed["result"]["tools"].as_array() else {
                let why = listed["error"]["message"].as_str().unwrap_or("no listing came");
                return Err(io::Error::other(format!("the server did not list its tools: {why}")));
            };
            tools.extend(page.iter().cloned());
            match listed["result"]["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(tools),
            }
        }
        Err(io::Error::other(format!("the server lists its tools in more than {PAGES_MAX} pages")))
    }

    /// `None`: there was no answer in time, or there will be none.
    pub fn request(&self, method: &str, params: &Value, patience: Duration) -> Option<Value> {
        self.begin(method, params).ok()?.1.recv_timeout(patience).ok()
    }

    /// Sends a request, and gives its id and the place where the answer arrives.
    pub fn begin(&self, method: &str, params: &Value) -> io::Result<(u64, Receiver<Value>)> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (to, answer) = mpsc::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, to);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        Ok((id, answer))
    }

    pub fn notify(&self, method: &str, params: &Value) -> io::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn send(&self, message: &Value) -> io::Result<()> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let input = input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{message}").and_then(|()| input.flush())
    }
}

impl Drop for McpServerProcess {
    /// Ends the input, as a client does, so that the server can write down what it has done.
    fn drop(&mut self) {
        drop(self.input.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        let _ended =
            self.output.get_mut().unwrap_or_else(PoisonError::into_inner).recv_timeout(END_TAKES_MAX);
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        signal(group_of(child), Signal::KILL);
        let _reaped = child.wait();
    }
}
