//! The world behind a door: it counts what was done to it, and answers as it is told. MCP and HTTP reach it over a
//! socket, commands through a script.

use super::cases::{Answer, World as Deed};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};

#[derive(Debug)]
pub struct World {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    serving: tokio::task::JoinHandle<()>,
    files: PathBuf,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    arrived: Notify,
    /// Has room once answers need not wait any more.
    go_on: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    /// What it does with the next request, and with those after it.
    next: Option<Deed>,
    then: Deed,
    /// Requests that may change something.
    arrivals: usize,
    effects: usize,
    /// Results by idempotency key, where keys are honoured.
    keys: HashMap<String, String>,
    honours_key: bool,
    /// The key of each request that may change something.
    given: Vec<Option<String>>,
    tools: Vec<Value>,
    /// An answer waits until it is let go on.
    holds: bool,
}

impl Drop for World {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl World {
    pub async fn start(files: &Path, honours_key: bool, tools: Vec<Value>) -> World {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let state = Mutex::new(State { honours_key, tools, ..State::default() });
        let shared = Arc::new(Shared { state, arrived: Notify::new(), go_on: Semaphore::new(0) });
        let serves = Arc::clone(&shared);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&serves);
                tokio::spawn(async move { shared.talk(stream).await });
            }
        });
        World { address, shared, serving, files: files.to_owned() }
    }

    /// What it does with the next call.
    pub fn will(&self, deed: &Deed) {
        let mut state = self.shared.lock();
        state.next = Some(deed.clone());
        state.then = deed.then.as_deref().cloned().unwrap_or_default();
        let put = |name: &str, text: &str| std::fs::write(self.files.join(name), text).expect("a file");
        let (end, stderr) = match &deed.answer {
            Answer::Ok => ("0".to_owned(), ""),
            Answer::Lost => ("kill".to_owned(), ""),
            Answer::Error(text) => (deed.exit.unwrap_or(1).to_string(), text.as_str()),
        };
        put("end", &end);
        put("stderr", stderr);
        let said = if deed.answer == Answer::Ok { deed.reply.as_deref().unwrap_or("ok\n") } else { "" };
        put("stdout", deed.stdout.as_deref().unwrap_or(said));
        put("done", if deed.done { "yes" } else { "no" });
    }

    /// How often something was done, and how often it was asked for.
    pub fn counts(&self) -> (usize, usize) {
        let lines =
            |name: &str| std::fs::read_to_string(self.files.join(name)).unwrap_or_default().lines().count();
        let state = self.shared.lock();
        (state.effects + lines("effects"), state.arrivals + lines("arrivals"))
    }

    /// The keys that its requests came with.
    pub fn keys(&self) -> Vec<Option<String>> {
        self.shared.lock().given.clone()
    }

    pub fn hold(&self) {
        self.shared.lock().holds = true;
    }

    pub async fn has_arrived(&self) {
        self.shared.arrived.notified().await;
    }

    pub fn go_on(&self) {
        self.shared.lock().holds = false;
        self.shared.go_on.add_permits(1);
    }

    /// A program of the world.
    pub fn install(&self, program: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let bin = self.files.join("bin");
        std::fs::create_dir_all(&bin).expect("a directory");
        let path = bin.join(program);
        let script = "#!/bin/sh
cd \"$(dirname \"$0\")/..\" || exit 99
echo x >> arrivals
[ \"$(cat done)\" = yes ] && echo x >> effects
cat stdout
cat stderr >&2
end=$(cat end)
[ \"$end\" = kill ] && kill -9 $$
exit \"$end\"
";
        std::fs::write(&path, script).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a script that runs");
        bin
    }
}

/// A request, as far as the world cares.
#[derive(Debug)]
struct Request {
    method: String,
    path: String,
    key: Option<String>,
    body: Vec<u8>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics with it")
    }

    async fn talk(&self, mut stream: TcpStream) {
        while let Some(request) = read(&mut stream).await {
            let Some(answer) = self.answer(&request).await else { return };
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// `None`: the connection breaks off.
    async fn answer(&self, request: &Request) -> Option<String> {
        if !request.path.starts_with("/mcp/") {
            return match request.method.as_str() {
                "GET" => {
                    self.lock().arrivals += 1;
                    Some(page(200, r#"{"data":[]}"#))
                }
                _ => self.act(request, None).await,
            };
        }
        let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let id = &message["id"];
        let answered = |member: &str, value: Value| {
            let mut answer =
                Map::from_iter([("jsonrpc".to_owned(), json!("2.0")), ("id".to_owned(), id.clone())]);
            answer.insert(member.to_owned(), value);
            Some(page(200, &Value::Object(answer).to_string()))
        };
        match message["method"].as_str() {
            Some("tools/list") => answered("result", json!({"tools": self.lock().tools})),
            Some("tools/call") if !self.knows(&message["params"]["name"]) => {
                answered("error", json!({"code": -32602, "message": "Unknown tool"}))
            }
            Some("tools/call") => self.act(request, Some(id)).await,
            Some(_) if !id.is_null() => {
                answered("error", json!({"code": -32601, "message": "Method not found"}))
            }
            _ => Some(page(202, "")),
        }
    }

    fn knows(&self, tool: &Value) -> bool {
        self.lock().tools.iter().any(|known| known["name"] == *tool)
    }

    async fn act(&self, request: &Request, id: Option<&Value>) -> Option<String> {
        let (deed, number, holds) = {
            let mut state = self.lock();
            state.arrivals += 1;
            state.given.push(request.key.clone());
            let deed = state.next.take().unwrap_or_else(|| state.then.clone());
            let key = request.key.clone().filter(|_| state.honours_key);
            let known = key.as_ref().and_then(|key| state.keys.get(key).cloned());
            let number = match (known, deed.done) {
                (Some(number), _) => number,
                (None, false) => String::new(),
                (None, true) => {
                    state.effects += 1;
                    let number = state.effects.to_string();
                    state.keys.extend(key.map(|key| (key, number.clone())));
                    number
                }
            };
            (deed, number, state.holds)
        };
        if holds {
            self.arrived.notify_one();
            let _released = self.go_on.acquire().await;
        }
        let reply =
            || deed.reply.clone().unwrap_or_else(|| format!(r#"{{"id":"obj_{number}","status":"ok"}}"#));
        let result = |text: &str, failed: bool| {
            let result = json!({"content": [{"type": "text", "text": text}], "isError": failed});
            page(200, &json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
        };
        match (&deed.answer, id) {
            (Answer::Lost, _) => None,
            (Answer::Ok, Some(_)) => Some(result(&reply(), false)),
            (Answer::Error(text), Some(_)) => Some(result(text, true)),
            (Answer::Ok, None) => Some(page(deed.status.unwrap_or(201), &reply())),
            (Answer::Error(text), None) => {
                Some(page(deed.status.unwrap_or(500), &json!({"error": {"message": text}}).to_string()))
            }
        }
    }
}

fn page(status: u16, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.lines();
    let mut words = lines.next()?.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = bytes[head..head + length].to_vec();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let argument = |name: &str| message["params"]["arguments"][name].as_str().map(str::to_owned);
    let key = headers.get("idempotency-key").cloned();
    let key = key.or_else(|| argument("idempotency_key")).or_else(|| argument("idempotencyKey"));
    Some(Request { method, path, key, body })
}
