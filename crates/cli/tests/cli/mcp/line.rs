//! A scripted client over stdio: one message a line, and nothing that an SDK would smooth over.

use super::Way;
use super::peers::Server;
use crate::home::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Longer than semel waits for a twin; a message that has not come by then never will.
const PATIENCE: Duration = Duration::from_secs(40);

#[derive(Debug)]
pub struct Line {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    last_id: u64,
}

impl Line {
    /// Starts the server, with or without semel, and does the handshake of the 2025 era.
    pub fn open(home: &Home, way: Way, server: Server) -> Line {
        let mut line = Line::start(home, &home.stdio(way, server));
        let about = json!({"name": "line", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about});
        let said = line.request("initialize", params);
        assert_eq!(said["result"]["protocolVersion"], "2025-06-18", "{said}");
        line.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        line
    }

    /// The same without a handshake.
    pub fn start(home: &Home, words: &[String]) -> Line {
        Line::to(&mut home.program(words))
    }

    /// A conversation with this program.
    pub fn to(command: &mut Command) -> Line {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let input = child.stdin.take();
        let mut reader = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let (sender, output) = channel();
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match reader.read_until(b'\n', &mut line) {
                    Ok(1..) if sender.send(line).is_ok() => {}
                    _ => break,
                }
            }
        });
        Line { child, input, output, last_id: 0 }
    }

    pub fn send(&mut self, message: &Value) {
        self.send_raw(message.to_string().as_bytes());
    }

    /// Sends a line as it is.
    pub fn send_raw(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(&[line, b"\n"].concat()).expect("the line is taken");
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The next line as it came, or none at the end.
    pub fn read(&mut self) -> Option<Vec<u8>> {
        match self.output.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came"),
        }
    }

    /// The next line that answers a request, with its bytes. Questions of the server are answered on the way.
    pub fn read_answer(&mut self) -> Option<(Value, Vec<u8>)> {
        while let Some(line) = self.read() {
            let Ok(message) = serde_json::from_slice::<Value>(&line) else {
                panic!("not a message: {}", String::from_utf8_lossy(&line));
            };
            if message.get("method").is_none() {
                return Some((message, line));
            }
            if let Some(id) = message.get("id") {
                self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
            }
        }
        None
    }

    /// Sends a request and returns its id.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    /// Sends requests at once, so that they come together.
    pub fn ask_all(&mut self, method: &str, all: impl IntoIterator<Item = Value>) -> Vec<u64> {
        let first = self.last_id + 1;
        let mut lines = Vec::new();
        for params in all {
            self.last_id += 1;
            lines.push(
                json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}).to_string(),
            );
        }
        self.send_raw(lines.join("\n").as_bytes());
        (first..=self.last_id).collect()
    }

    /// Sends a request and waits for its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer_to(id).expect("the request is answered")
    }

    /// The answer to a request, or none at the end. Answers under ids that were never used are passed over, as the
    /// protocol has it.
    fn answer_to(&mut self, id: u64) -> Option<Value> {
        while let Some((answer, _)) = self.read_answer() {
            if answer["id"] == id {
                return Some(answer);
            }
            let used = answer["id"].as_u64().is_some_and(|other| (1..=self.last_id).contains(&other));
            assert!(!used, "an answer to a request that has its answer: {answer}");
        }
        None
    }

    /// The result of a tool call.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.call_with(json!({"name": tool, "arguments": arguments}))
    }

    /// The result of a tool call with these `params`.
    pub fn call_with(&mut self, params: Value) -> Value {
        let mut answer = self.request("tools/call", params);
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].take()
    }

    /// The result of a tool call, or none if the server went away instead.
    pub fn call_if_it_lives(&mut self, tool: &str, arguments: Value) -> Option<Value> {
        let id = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        self.answer_to(id).map(|mut answer| answer["result"].take())
    }

    /// Closes the input, as a client does that has finished, and waits for the end.
    pub fn close(mut self) -> ExitStatus {
        drop(self.input.take());
        self.child.wait().expect("the server ends")
    }

    /// Ends the process without warning.
    pub fn kill(mut self) {
        self.child.kill().expect("it was running");
        self.child.wait().expect("it has ended");
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
