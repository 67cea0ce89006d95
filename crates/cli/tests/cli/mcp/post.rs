//! A scripted client over HTTP: one request a connection, with sessions as the 2025 era has them.

use semel_testkit::http::{RawClient, Response};
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub struct Post {
    authority: String,
    path: String,
    session: Option<String>,
}

impl Post {
    pub fn to(url: &str) -> Post {
        let rest = url.strip_prefix("http://").expect("a plain URL");
        let (authority, path) = rest.split_once('/').expect("a URL with a path");
        Post { authority: authority.to_owned(), path: format!("/{path}"), session: None }
    }

    /// Opens a new session, forgetting any other.
    pub fn initialize(&mut self) {
        self.session = None;
        let about = json!({"name": "post", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about});
        let reply = self.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(reply.status, 200, "{reply:?}");
        self.session = reply.header("mcp-session-id").map(str::to_owned);
        let reply = self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(reply.status, 202, "{reply:?}");
    }

    pub fn opened(url: &str) -> Post {
        let mut post = Post::to(url);
        post.initialize();
        post
    }

    pub fn call(&self, id: u64, tool: &str, arguments: &Value, meta: &Value) -> Response {
        self.send(&Post::calling(id, tool, arguments, meta))
    }

    pub fn calling(id: u64, tool: &str, arguments: &Value, meta: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    }

    pub fn send(&self, message: &Value) -> Response {
        self.post(message).answer_so_far()
    }

    /// Sends a message; the answer is left on the connection.
    pub fn post(&self, message: &Value) -> RawClient {
        let session = self.session.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let headers = format!(
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2025-06-18\r\n{session}"
        );
        let line = format!("POST {} HTTP/1.1", self.path);
        RawClient::ask(&self.authority, &line, &headers, &message.to_string())
    }
}
