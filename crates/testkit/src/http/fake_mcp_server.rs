//! A remote MCP server that does what its tools are called, and counts how often it changed the world.

use super::request::Request;
use super::server::{FakeServer, ServedExchange};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Clone)]
pub struct FakeMcpServer {
    server: FakeServer,
    /// Subscriptions that are open.
    streams: Arc<AtomicUsize>,
}

/// Tools with arguments that are mirrored into headers: each argument and the name of its header.
const MARKED: [(&str, &[(&str, &str)]); 2] = [
    ("charge_marked", &[("request_id", "Request"), ("region", "Region")]),
    ("get_charges", &[("account", "Account")]),
];

/// The eras of the protocol that it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum McpEra {
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

impl Deref for FakeMcpServer {
    type Target = FakeServer;

    fn deref(&self) -> &FakeServer {
        &self.server
    }
}

impl FakeMcpServer {
    pub fn start() -> FakeMcpServer {
        FakeMcpServer::speaking(McpEra::Unsaid)
    }

    pub fn speaking(speaks: McpEra) -> FakeMcpServer {
        let streams: Arc<AtomicUsize> = Arc::default();
        let open = Arc::clone(&streams);
        let server = FakeServer::start(move |exchange| {
            Conversation { exchange, speaks, streams: &open }.answer();
            // One request a connection.
            None
        });
        FakeMcpServer { server, streams }
    }

    pub fn url(&self) -> String {
        format!("{}/mcp", self.server.url())
    }

    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::SeqCst)
    }
}

/// One request and its answer. A client that goes away in the middle ends it.
struct Conversation<'a, 'b> {
    exchange: &'a mut ServedExchange<'b>,
    speaks: McpEra,
    streams: &'a AtomicUsize,
}

impl Conversation<'_, '_> {
    fn answer(&mut self) -> Option<()> {
        let request = self.exchange.request;
        match request.head.method.as_str() {
            "POST" => self.post(),
            "GET" if request.header("last-event-id") == Some("call-1") => {
                self.exchange.wait_for_release();
                let answer = self.charged(&self.asked_in_poll()?);
                self.stream_head()?;
                self.exchange.write(&format!("id: call-2\ndata: {answer}\n\n"))
            }
            "GET" => {
                self.stream_head()?;
                self.exchange.write(
                    ": hello\n\nid: own-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n",
                )
            }
            _ => self.reply(200, "", ""),
        }
    }

    fn reply(&mut self, status: u16, headers: &str, body: &str) -> Option<()> {
        self.exchange.reply(status, &format!("{headers}Connection: close\r\n"), body)
    }

    fn stream_head(&mut self) -> Option<()> {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        self.exchange.write(head)
    }

    /// The id of the call whose stream is polled.
    fn asked_in_poll(&self) -> Option<Value> {
        let requests = self.exchange.server.requests();
        let call = requests.iter().find(|request| request.text().contains("charge_polled"))?;
        Some(call.json()["id"].clone())
    }

    fn charged(&self, id: &Value) -> Value {
        let text = format!("charged {}", self.exchange.server.effects());
        json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
    }

    fn post(&mut self) -> Option<()> {
        let request = self.exchange.request;
        let message = request.json();
        let id = &message["id"];
        let result =
            |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result, "trace": "t-1"}).to_string();
        let unknown = |status| {
            let error = json!({"code": -32601, "message": "no such method"});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            (status, answer)
        };
        match (message["method"].as_str(), self.speaks) {
            (Some("initialize"), McpEra::Stateless) => {
                let (status, answer) = unknown(404);
                return self.reply(status, "", &answer);
            }
            (Some("server/discover"), McpEra::Session) => {
                let (status, answer) = unknown(200);
                return self.reply(status, "", &answer);
            }
            (Some(method), McpEra::SessionAlone) if method != "initialize" => {
                let error = json!({"code": -32000, "message": "no session"});
                let answer = json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string();
                return self.reply(400, "", &answer);
            }
            (Some("server/discover"), McpEra::Stateless | McpEra::Both) => {
                let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
                return self.reply(200, "", &result(found));
            }
            _ => {}
        }
        match message["method"].as_str() {
            _ if id.is_null() => self.reply(202, "", ""),
            Some("initialize") => {
                // It takes its time to greet some.
                if message["params"]["clientInfo"]["name"] == "impatient" {
                    self.exchange.wait_for_release();
                }
                let version = &message["params"]["protocolVersion"];
                let about = json!({"name": "hand-written", "version": "1"});
                let hello =
                    json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about});
                self.reply(200, "Mcp-Session-Id: s-1\r\n", &result(hello))
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
                let reads = request.header("authorization") == Some("Bearer xenia");
                let mut tweak = tool("tweak");
                tweak["annotations"] = json!({"readOnlyHint": reads});
                tools.push(tweak);
                self.reply(200, "", &result(json!({"tools": tools})))
            }
            Some("tools/call") if !is_mirrored(request, &message) => {
                let error = json!({"code": -32020, "message": "the headers are not what the body says"});
                let answer = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
                self.reply(400, "", &answer)
            }
            Some("tools/call") => self.call(&message),
            Some("subscriptions/listen") => self.listen(id),
            // An answer with spaces, numbers and members that nobody knows, to be given on as it is.
            Some(_) => {
                self.reply(200, "X-Own: 1\r\n", &format!(r#"{{"id":{id},  "x":1.0e2,"result":{{}}}}"#))
            }
            None => self.reply(202, "", ""),
        }
    }

    /// A stream without an answer: what has changed is told on it once the tools that wait go on.
    fn listen(&mut self, id: &Value) -> Option<()> {
        let named = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
        let notice = |method: &str| json!({"jsonrpc": "2.0", "method": method, "params": named}).to_string();
        self.stream_head()?;
        self.streams.fetch_add(1, Ordering::SeqCst);
        self.exchange.write(&format!("data: {}\n\n", notice("notifications/subscriptions/acknowledged")))?;
        self.exchange.wait_for_release();
        self.exchange.write(&format!("data: {}\n\n", notice("notifications/tools/list_changed")))?;
        // Until the client lets go of it.
        self.exchange.wait_for_close();
        self.streams.fetch_sub(1, Ordering::SeqCst);
        Some(())
    }

    fn call(&mut self, message: &Value) -> Option<()> {
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
            return self.reply(200, "", &answer.to_string());
        }
        if tool == "charge_refused" {
            return self.reply(
                401,
                "WWW-Authenticate: Bearer resource_metadata=\"https://a\"\r\n",
                "who are you?",
            );
        }
        if ["get_balance", "get_charges"].contains(&tool) {
            return self.reply(200, "", &self.charged(&message["id"]).to_string());
        }
        self.exchange.server.count_effect();
        let mut answer = self.charged(&message["id"]);
        if let Some(bytes) = message["params"]["arguments"]["bytes"].as_u64() {
            answer["result"]["content"][0]["text"] = "x".repeat(bytes as usize).into();
        }
        match tool {
            "charge_streamed" => {
                self.stream_head()?;
                let token = &message["params"]["_meta"]["progressToken"];
                let params = json!({"progressToken": token, "progress": 1});
                let progress =
                    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                self.exchange.write(&format!(": warm\n\nevent: message\ndata: {progress}\n\n"))?;
                self.exchange.wait_for_release();
                self.exchange.write(&format!("event: message\ndata: {answer}\n\n"))
            }
            "charge_polled" => {
                self.stream_head()?;
                self.exchange.write("id: call-1\nretry: 20\ndata:\n\n")
            }
            _ => {
                if message["params"]["arguments"]["waits"] == true {
                    self.exchange.wait_for_release();
                }
                if let Some(status) = message["params"]["arguments"]["fails"].as_u64() {
                    let says = &message["params"]["arguments"]["says"];
                    let error = json!({"code": -32001, "message": says});
                    let failed = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                    let answer = if says.is_null() { answer } else { failed };
                    return self.reply(status as u16, "", &answer.to_string());
                }
                self.reply(200, "", &answer.to_string())
            }
        }
    }
}

/// Whether the headers of a call in the stateless era are what it says in its body.
fn is_mirrored(request: &Request, call: &Value) -> bool {
    let marked = MARKED.iter().find(|(tool, _)| call["params"]["name"] == *tool);
    let Some((tool, arguments)) = marked.filter(|_| request.header("mcp-method").is_some()) else {
        return true;
    };
    let params =
        request.head.text.lines().filter(|line| line.to_lowercase().starts_with("mcp-param-")).count();
    let given = |argument: &str| call["params"]["arguments"][argument].as_str();
    request.header("mcp-name") == Some(*tool)
        && arguments
            .iter()
            .all(|(argument, name)| request.header(&format!("mcp-param-{name}")) == given(argument))
        && params == arguments.iter().filter(|(argument, _)| given(argument).is_some()).count()
}
