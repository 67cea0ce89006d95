//! A remote MCP server that does what its tools are called, and counts how often it changed the world.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// One request, as it arrived.
#[derive(Debug, Clone)]
pub struct Heard {
    pub head: String,
    pub body: String,
}

impl Heard {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

#[derive(Debug, Clone)]
pub struct Upstream {
    address: SocketAddr,
    state: Arc<State>,
}

/// Tools with arguments that are mirrored into headers: each argument and the name of its header.
const MARKED: [(&str, &[(&str, &str)]); 2] = [
    ("charge_marked", &[("request_id", "Request"), ("region", "Region")]),
    ("get_charges", &[("account", "Account")]),
];

/// The eras of the protocol that it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Speaks {
    /// Nobody asked it.
    #[default]
    Unsaid,
    /// With `initialize`, and without sessions: it carries out whatever comes.
    Session,
    /// It names no request that comes without a session.
    SessionAlone,
    Stateless,
    Both,
}

#[derive(Debug, Default)]
struct State {
    speaks: Speaks,
    effects: AtomicUsize,
    /// Subscriptions that are open.
    streams: AtomicUsize,
    heard: Mutex<Vec<Heard>>,
    /// Tools that wait do so until this.
    released: Mutex<bool>,
    changed: Condvar,
}

impl Upstream {
    pub fn start() -> Upstream {
        Upstream::speaking(Speaks::Unsaid)
    }

    pub fn speaking(speaks: Speaks) -> Upstream {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let state = Arc::new(State { speaks, ..State::default() });
        let upstream = Upstream { address: listener.local_addr().expect("an address"), state };
        let serving = upstream.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        upstream
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub fn effects(&self) -> usize {
        self.state.effects.load(Ordering::SeqCst)
    }

    pub fn streams(&self) -> usize {
        self.state.streams.load(Ordering::SeqCst)
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.state.heard.lock().expect("nobody panicked").clone()
    }

    /// Lets the tools that wait go on.
    pub fn release(&self) {
        *self.state.released.lock().expect("nobody panicked") = true;
        self.state.changed.notify_all();
    }

    fn wait(&self) {
        let released = self.state.released.lock().expect("nobody panicked");
        drop(self.state.changed.wait_while(released, |released| !*released));
    }

    /// A client that goes away in the middle is none of its business.
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let heard = Heard { head, body: String::new() };
        let mut body = vec![0; heard.header("content-length").map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).ok()?;
        let heard = Heard { body: String::from_utf8(body).ok()?, ..heard };
        self.state.heard.lock().expect("nobody panicked").push(heard.clone());
        let method = heard.head.split(' ').next()?.to_owned();
        match method.as_str() {
            "POST" => self.post(&mut stream, &heard),
            "GET" if heard.header("last-event-id") == Some("call-1") => {
                self.wait();
                let answer = self.charged(&json!(self.asked_in_poll()?));
                stream_head(&mut stream)?;
                write(&mut stream, &format!("id: call-2\ndata: {answer}\n\n"))
            }
            "GET" => {
                stream_head(&mut stream)?;
                write(
                    &mut stream,
                    ": hello\n\nid: own-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n",
                )
            }
            _ => reply(&mut stream, 200, "", ""),
        }
    }

    /// The id of the call whose stream is polled.
    fn asked_in_poll(&self) -> Option<Value> {
        let heard = self.heard();
        let call = heard.iter().find(|heard| heard.body.contains("charge_polled"))?;
        Some(serde_json::from_str::<Value>(&call.body).ok()?["id"].clone())
    }

    fn charged(&self, id: &Value) -> Value {
        let text = format!("charged {}", self.effects());
        json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
    }

    fn post(&self, stream: &mut TcpStream, heard: &Heard) -> Option<()> {
        let message: Value = serde_json::from_str(&heard.body).ok()?;
        let id = &message["id"];
        let result =
            |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result, "trace": "t-1"}).to_string();
        let unknown = |status| {
            let error = json!({"code": -32601, "message": "no such method"});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            reply(&mut stream.try_clone().ok()?, status, "", &answer)
        };
        match (message["method"].as_str(), self.state.speaks) {
            (Some("initialize"), Speaks::Stateless) => return unknown(404),
            (Some("server/discover"), Speaks::Session) => return unknown(200),
            (Some(method), Speaks::SessionAlone) if method != "initialize" => {
                let error = json!({"code": -32000, "message": "no session"});
                let answer = json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string();
                return reply(stream, 400, "", &answer);
            }
            (Some("server/discover"), Speaks::Stateless | Speaks::Both) => {
                let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
                return reply(stream, 200, "", &result(found));
            }
            _ => {}
        }
        match message["method"].as_str() {
            _ if id.is_null() => reply(stream, 202, "", ""),
            Some("initialize") => {
                // It takes its time to greet some.
                if message["params"]["clientInfo"]["name"] == "impatient" {
                    self.wait();
                }
                let version = &message["params"]["protocolVersion"];
                let about = json!({"name": "hand-written", "version": "1"});
                let hello =
                    json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about});
                reply(stream, 200, "Mcp-Session-Id: s-1\r\n", &result(hello))
            }
            Some("tools/list") => {
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                let names = ["charge", "charge_streamed", "charge_polled", "charge_refused", "get_balance"];
                let mut tools = names.map(tool).to_vec();
                tools.extend(MARKED.iter().map(|(name, arguments)| {
                    let marked = |(argument, header): &(&str, &str)| {
                        ((*argument).to_owned(), json!({"type": "string", "x-mcp-header": header}))
                    };
                    let properties: serde_json::Map<_, _> = arguments.iter().map(marked).collect();
                    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
                }));
                // It shows each of its users what it wants to.
                let reads = heard.header("authorization") == Some("Bearer xenia");
                let mut tweak = tool("tweak");
                tweak["annotations"] = json!({"readOnlyHint": reads});
                tools.push(tweak);
                reply(stream, 200, "", &result(json!({"tools": tools})))
            }
            Some("tools/call") if !is_mirrored(heard, &message) => {
                let error = json!({"code": -32020, "message": "the headers are not what the body says"});
                let answer = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
                reply(stream, 400, "", &answer)
            }
            Some("tools/call") => self.call(stream, &message),
            Some("subscriptions/listen") => self.listen(stream, id),
            // An answer with spaces, numbers and members that nobody knows, to be given on as it is.
            Some(_) => {
                reply(stream, 200, "X-Own: 1\r\n", &format!(r#"{{"id":{id},  "x":1.0e2,"result":{{}}}}"#))
            }
            None => reply(stream, 202, "", ""),
        }
    }

    /// A stream without an answer: what has changed is told on it once the tools that wait go on.
    fn listen(&self, stream: &mut TcpStream, id: &Value) -> Option<()> {
        let named = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
        let notice = |method: &str| json!({"jsonrpc": "2.0", "method": method, "params": named}).to_string();
        stream_head(stream)?;
        self.state.streams.fetch_add(1, Ordering::SeqCst);
        write(stream, &format!("data: {}\n\n", notice("notifications/subscriptions/acknowledged")))?;
        self.wait();
        write(stream, &format!("data: {}\n\n", notice("notifications/tools/list_changed")))?;
        // Until the client lets go of it.
        let _let_go = stream.read(&mut [0]);
        self.state.streams.fetch_sub(1, Ordering::SeqCst);
        Some(())
    }

    fn call(&self, stream: &mut TcpStream, message: &Value) -> Option<()> {
        let tool = message["params"]["name"].as_str()?;
        // It asks twice, and then charges.
        let next = match message["params"]["requestState"].as_str() {
            None => Some("one"),
            Some("one") => Some("two"),
            Some(_) => None,
        };
        if let (Some(next), "charge_asking") = (next, tool) {
            let asks = json!({"sure": {"method": "elicitation/create", "params": {"message": next}}});
            let result = json!({"resultType": "input_required", "inputRequests": asks, "requestState": next});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            return reply(stream, 200, "", &answer.to_string());
        }
        if tool == "charge_refused" {
            return reply(
                stream,
                401,
                "WWW-Authenticate: Bearer resource_metadata=\"https://a\"\r\n",
                "who are you?",
            );
        }
        if ["get_balance", "get_charges"].contains(&tool) {
            return reply(stream, 200, "", &self.charged(&message["id"]).to_string());
        }
        self.state.effects.fetch_add(1, Ordering::SeqCst);
        let mut answer = self.charged(&message["id"]);
        if let Some(bytes) = message["params"]["arguments"]["bytes"].as_u64() {
            answer["result"]["content"][0]["text"] = "x".repeat(bytes as usize).into();
        }
        match tool {
            "charge_streamed" => {
                stream_head(stream)?;
                let token = &message["params"]["_meta"]["progressToken"];
                let params = json!({"progressToken": token, "progress": 1});
                let progress =
                    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                write(stream, &format!(": warm\n\nevent: message\ndata: {progress}\n\n"))?;
                self.wait();
                write(stream, &format!("event: message\ndata: {answer}\n\n"))
            }
            "charge_polled" => {
                stream_head(stream)?;
                write(stream, "id: call-1\nretry: 20\ndata:\n\n")
            }
            _ => {
                if message["params"]["arguments"]["waits"] == true {
                    self.wait();
                }
                if let Some(status) = message["params"]["arguments"]["fails"].as_u64() {
                    let error = json!({"code": -32001, "message": message["params"]["arguments"]["says"]});
                    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                    return reply(stream, status as u16, "", &answer.to_string());
                }
                reply(stream, 200, "", &answer.to_string())
            }
        }
    }
}

/// Whether the headers of a call in the stateless era are what it says in its body.
fn is_mirrored(heard: &Heard, call: &Value) -> bool {
    let marked = MARKED.iter().find(|(tool, _)| call["params"]["name"] == *tool);
    let Some((tool, arguments)) = marked.filter(|_| heard.header("mcp-method").is_some()) else {
        return true;
    };
    let params = heard.head.lines().filter(|line| line.to_lowercase().starts_with("mcp-param-")).count();
    let given = |argument: &str| call["params"]["arguments"][argument].as_str();
    heard.header("mcp-name") == Some(*tool)
        && arguments
            .iter()
            .all(|(argument, name)| heard.header(&format!("mcp-param-{name}")) == given(argument))
        && params == arguments.iter().filter(|(argument, _)| given(argument).is_some()).count()
}

fn write(stream: &mut TcpStream, text: &str) -> Option<()> {
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).ok()
}

fn stream_head(stream: &mut TcpStream) -> Option<()> {
    write(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
}

fn reply(stream: &mut TcpStream, status: u16, headers: &str, body: &str) -> Option<()> {
    let kind = if body.starts_with('{') { "Content-Type: application/json\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} X\r\n{kind}{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    write(stream, &format!("{head}{body}"))
}
