//! The way of an agent's calls to the world: as commands, over MCP or over HTTP, through a guard or without one.

use super::world::{ToolReply, World};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An agent waits this long for an answer.
pub const PATIENCE: Duration = Duration::from_millis(1_500);

/// What the agent hears of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Done,
    /// It failed, clearly.
    Failed(String),
    /// Nobody says whether it happened.
    Unknown(String),
}

/// One call of an agent.
#[derive(Debug, Clone)]
pub struct AgentCall<'a> {
    pub tool: &'a str,
    pub args: &'a Value,
    /// The agent's own name for the step.
    pub step: &'a str,
    /// It repeats an earlier one on purpose.
    pub again: Option<&'a str>,
}

pub trait Port: Send + Sync {
    fn call(&self, call: &AgentCall<'_>) -> (Heard, Option<Value>);
}

/// Words of an answer that leave the outcome open.
const OPEN_WORDS: [&str; 11] = [
    "in_doubt",
    "in doubt",
    "may have",
    "in_flight",
    "still running",
    "timed out",
    "timeout",
    "not known",
    "unknown",
    "looks like",
    "connection",
];

fn failure(text: String) -> Heard {
    let lower = text.to_lowercase();
    if OPEN_WORDS.iter().any(|word| lower.contains(word)) {
        Heard::Unknown(text)
    } else {
        Heard::Failed(text)
    }
}

/// Starts a process for each call.
#[derive(Debug)]
pub struct CommandPort {
    /// The guard's words, in which `{step}` stands for the agent's name of the step. Empty: no guard.
    pub guard: Vec<String>,
    /// The command of the world, without tool and arguments.
    pub tool: Vec<String>,
    pub environment: Vec<(String, String)>,
}

impl Port for CommandPort {
    fn call(&self, call: &AgentCall<'_>) -> (Heard, Option<Value>) {
        let guard = self.guard.iter().map(|word| word.replace("{step}", call.step));
        let own = [call.tool.to_owned(), call.args.to_string()];
        let words: Vec<String> = guard.chain(self.tool.iter().cloned()).chain(own).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.environment.iter().map(|(name, value)| (name, value)));
        let ran = command.stdin(Stdio::null()).output();
        match ran {
            Ok(output) if output.status.success() => {
                (Heard::Done, serde_json::from_slice(&output.stdout).ok())
            }
            Ok(output) => {
                let said = [&output.stderr[..], &output.stdout[..]].concat();
                let said = String::from_utf8_lossy(&said).into_owned();
                let died = output.status.code().is_none();
                (if died { Heard::Unknown(said) } else { failure(said) }, None)
            }
            Err(error) => (Heard::Failed(error.to_string()), None),
        }
    }
}

/// Speaks MCP with a process.
#[derive(Debug)]
pub struct McpPort {
    child: Mutex<Child>,
    input: Mutex<std::process::ChildStdin>,
    waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>>,
    next: AtomicU64,
    /// The server's own listing.
    pub tools: Vec<Value>,
}

impl McpPort {
    pub fn start(words: &[String], environment: &[(String, String)]) -> io::Result<McpPort> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take().expect("it was asked for");
        let output = BufReader::new(child.stdout.take().expect("it was asked for"));
        let waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>> = Arc::default();
        let readers = Arc::clone(&waiting);
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
        });
        let mut port = McpPort {
            child: Mutex::new(child),
            input: Mutex::new(input),
            waiting,
            next: AtomicU64::new(1),
            tools: Vec::new(),
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "eval", "version": "1"}});
        let patient = PATIENCE * 10;
        port.request("initialize", &hello, patient)
            .ok_or_else(|| io::Error::other("the server did not greet"))?;
        port.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        let listed = port.request("tools/list", &json!({}), patient);
        let listed = listed.ok_or_else(|| io::Error::other("the server did not list its tools"))?;
        port.tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
        Ok(port)
    }

    /// Whether a tool takes a reason for a deliberate repeat.
    fn takes_reason(&self, name: &str) -> bool {
        let tool = self.tools.iter().find(|tool| tool["name"].as_str() == Some(name));
        tool.is_some_and(|tool| !tool["inputSchema"]["properties"]["semel_again"].is_null())
    }

    fn send(&self, message: &Value) -> io::Result<()> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(input, "{message}").and_then(|()| input.flush())
    }

    fn request(&self, method: &str, params: &Value, patience: Duration) -> Option<Value> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (to, answer): (Sender<Value>, Receiver<Value>) = mpsc::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, to);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).ok()?;
        answer.recv_timeout(patience).ok()
    }
}

impl Port for McpPort {
    fn call(&self, call: &AgentCall<'_>) -> (Heard, Option<Value>) {
        let mut args = call.args.clone();
        if let (Some(reason), Some(members)) = (call.again, args.as_object_mut())
            && self.takes_reason(call.tool)
        {
            members.insert("semel_again".to_owned(), json!(reason));
        }
        let params = json!({"name": call.tool, "arguments": args});
        let Some(answer) = self.request("tools/call", &params, PATIENCE) else {
            return (Heard::Unknown("timed out".to_owned()), None);
        };
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        if let Some(error) = answer["error"]["message"].as_str() {
            return (failure(error.to_owned()), None);
        }
        if answer["result"]["isError"].as_bool().unwrap_or(false) {
            return (failure(answer["result"].to_string()), None);
        }
        (Heard::Done, serde_json::from_str(&text).ok())
    }
}

impl Drop for McpPort {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _gone = child.kill();
        let _reaped = child.wait();
    }
}

/// Sends HTTP requests below an address.
#[derive(Debug)]
pub struct HttpPort {
    pub address: SocketAddr,
    pub host: String,
    /// The path before the tool's name.
    pub base: String,
}

impl Port for HttpPort {
    fn call(&self, call: &AgentCall<'_>) -> (Heard, Option<Value>) {
        match self.exchange(call) {
            Ok((status, body)) => {
                let value = serde_json::from_str(&body).ok();
                if (200..300).contains(&status) {
                    (Heard::Done, value)
                } else {
                    (failure(format!("{status} {body}")), None)
                }
            }
            Err(error) => (Heard::Unknown(error.to_string()), None),
        }
    }
}

impl HttpPort {
    fn exchange(&self, call: &AgentCall<'_>) -> io::Result<(u16, String)> {
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = call.args.to_string();
        let is_read = call.tool.starts_with("list_");
        // A read asks with its arguments as a query.
        let query: Vec<String> = call
            .args
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| {
                format!(
                    "{name}={}",
                    encoded(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                )
            })
            .collect();
        let target = match is_read {
            true => format!("GET {}/{}?{}", self.base, call.tool, query.join("&")),
            false => format!("POST {}/{}", self.base, call.tool),
        };
        let mut head = format!(
            "{target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n",
            self.host
        );
        if let Some(reason) = call.again {
            head.push_str(&format!("Semel-Again: {reason}\r\n"));
        }
        let body = if is_read { String::new() } else { body };
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("the connection ended without an answer"))?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        // A chunked body has its sizes on lines of their own; the document is what stands between braces.
        let document = body.find('{').zip(body.rfind('}')).map_or(body, |(from, to)| &body[from..=to]);
        Ok((status, document.to_owned()))
    }
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The world behind HTTP, one directory for each scenario: `/DIRECTORY/TOOL`.
pub fn serve_http(listener: TcpListener, worlds: PathBuf) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let worlds = worlds.clone();
            std::thread::spawn(move || answer_http(stream, &worlds));
        }
    });
}

fn answer_http(mut stream: TcpStream, worlds: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let target = line.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (world, tool) = path.split_once('/').unwrap_or((path, ""));
    // A name with a slash or dots would leave the directory.
    let is_plain = !world.is_empty() && world.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_plain || !worlds.join(world).is_dir() {
        return write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    let args = match line.starts_with("GET") {
        true => asked(query),
        false => serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let (status, answer) = match World::open(&worlds.join(world)).call(tool, &args)? {
        ToolReply::Success(value) => (200, value.to_string()),
        ToolReply::Error(status, words) => (status, json!({ "error": words }).to_string()),
        ToolReply::Lost | ToolReply::Crash => return Ok(()),
    };
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    )
}

/// The arguments of a query. Numbers are numbers again.
fn asked(query: &str) -> Value {
    let decoded = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            if byte == b'%' {
                let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                let digits = std::str::from_utf8(&digits).unwrap_or("00");
                bytes.push(u8::from_str_radix(digits, 16).unwrap_or(b'?'));
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = |text: String| text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number));
    Value::Object(pairs.map(|(name, text)| (name.to_owned(), value(decoded(text)))).collect())
}
