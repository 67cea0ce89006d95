//! An MCP server as a child process, and the client's side of the talk with it.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A server whose input has ended is given this long to end by itself.
const END_TAKES_MAX: Duration = Duration::from_secs(1);
/// A server may be slow to start, on a machine that starts many.
const START_TAKES_MAX: Duration = Duration::from_secs(60);

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
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take().expect("it was asked for");
        let output = BufReader::new(child.stdout.take().expect("it was asked for"));
        let waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>> = Arc::default();
        let readers = Arc::clone(&waiting);
        let (reads, output_end) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
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
        let listed = server.request("tools/list", &json!({}), START_TAKES_MAX);
        let listed = listed.ok_or_else(|| io::Error::other("the server did not list its tools"))?;
        server.tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
        Ok(server)
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
        let _gone = child.kill();
        let _reaped = child.wait();
    }
}
