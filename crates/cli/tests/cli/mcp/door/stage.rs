//! A home, a server that does as it is told, and semel between it and a client.

use crate::home::Home;
use crate::mcp::line::Line;
use crate::mcp::peers::{NAME, script};
use serde_json::{Value, json};
use std::fs::File;
use std::ops::Deref;
use std::process::Command;

#[derive(Debug)]
pub struct Stage {
    home: Home,
}

impl Deref for Stage {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.home
    }
}

impl Stage {
    /// A server that plays by this.
    pub fn telling(told: Value) -> Stage {
        let stage = Stage { home: Home::new() };
        stage.tell(told);
        stage
    }

    /// A server with these tools, which do what tools do that nobody said anything about: one effect for each call.
    pub fn with_tools(names: &[&str]) -> Stage {
        Stage::telling(json!({"pages": [listing(names)]}))
    }

    /// The same, with what some of the tools do.
    pub fn with_calls(names: &[&str], calls: Value) -> Stage {
        Stage::telling(json!({"pages": [listing(names)], "calls": calls}))
    }

    /// From its next request on, the server plays by this.
    pub fn tell(&self, told: Value) {
        self.file("told.next", &told.to_string());
        // In one step: the server may read it at any moment.
        std::fs::rename(self.work().join("told.next"), self.work().join("told.json")).expect("it is told");
    }

    /// Rules for the servers' tools: everything after `match`.
    pub fn rule(self, tool: &str, says: &str) -> Stage {
        let policy = self.work().join("semel.toml");
        let before = std::fs::read_to_string(&policy).unwrap_or_else(|_| "version = 1\n".to_owned());
        let rule = format!("{before}\n[[rule]]\nmatch = \"mcp:{NAME}/{tool}\"\n{says}\n");
        std::fs::write(policy, rule).expect("the policy is written");
        self
    }

    pub fn mode(self, mode: &str) -> Stage {
        self.file("semel.toml", &format!("version = 1\nmode = \"{mode}\"\n"));
        self
    }

    fn server() -> Vec<String> {
        vec!["python3".into(), "-S".into(), script("told.py")]
    }

    /// semel before the server, not started yet.
    pub fn guarded(&self, flags: &[&str]) -> Command {
        self.guarded_as(NAME, flags)
    }

    fn guarded_as(&self, name: &str, flags: &[&str]) -> Command {
        let semel = [env!("CARGO_BIN_EXE_semel"), "mcp", "--name", name];
        let words: Vec<String> =
            semel.iter().chain(flags).chain(&["--"]).map(|word| word.to_string()).collect();
        let mut command = self.program(&[words, Stage::server()].concat());
        command.stderr(File::create(self.work().join("stderr")).expect("a file for stderr"));
        command
    }

    /// The server alone.
    pub fn bare(&self) -> Command {
        let mut command = self.program(&Stage::server());
        command.stderr(File::create(self.work().join("stderr")).expect("a file for stderr"));
        command
    }

    /// A guarded conversation of the 2025 era.
    pub fn open(&self) -> Line {
        self.open_with(&[])
    }

    pub fn open_with(&self, flags: &[&str]) -> Line {
        greeted(Line::to(&mut self.guarded(flags)))
    }

    /// The same, with a server that is registered under this name.
    pub fn open_as(&self, name: &str) -> Line {
        greeted(Line::to(&mut self.guarded_as(name, &[])))
    }

    /// The same command as another server, under a name of its own.
    pub fn open_another(&self, flags: &[&str], name: &str) -> Line {
        greeted(Line::to(&mut self.guarded_as(name, flags)))
    }

    /// A guarded conversation of the stateless era, which begins with nothing.
    pub fn open_stateless(&self) -> Line {
        Line::to(&mut self.guarded(&[]))
    }

    /// What the last process wrote to stderr, after the line in which semel names its policy.
    pub fn stderr(&self) -> String {
        let all = std::fs::read_to_string(self.work().join("stderr")).unwrap_or_default();
        match all.split_once('\n') {
            Some((first, rest)) if first.starts_with("semel: guarding billing") => rest.to_owned(),
            _ => all,
        }
    }

    /// The lines that the server heard, as they came.
    pub fn heard(&self) -> Vec<String> {
        let heard = std::fs::read_to_string(self.work().join("heard")).unwrap_or_default();
        heard.lines().map(str::to_owned).collect()
    }

    /// The `params` of the tool calls that the server heard.
    pub fn heard_calls(&self) -> Vec<Value> {
        let calls = self.heard_requests("tools/call").into_iter();
        calls.map(|mut call| call["params"].take()).collect()
    }

    pub fn heard_requests(&self, method: &str) -> Vec<Value> {
        let heard = self.heard().into_iter();
        let read = heard.map(|line| serde_json::from_str::<Value>(&line).expect("it heard JSON"));
        read.filter(|message| message["method"] == method).collect()
    }

    /// All effects on record.
    pub fn recorded(&self) -> Vec<Value> {
        self.json(["ledger", "list"])["items"].as_array().cloned().unwrap_or_default()
    }
}

/// The handshake of the 2025 era.
pub fn greeted(mut line: Line) -> Line {
    let about = json!({"name": "line", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about});
    let said = line.request("initialize", params);
    assert_eq!(said["result"]["protocolVersion"], "2025-06-18", "{said}");
    line.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    line
}

/// One page with tools of these names.
pub fn listing(names: &[&str]) -> String {
    let schema = json!({"type": "object", "properties": {"order": {"type": "string"}}});
    let tool =
        |name: &&str| json!({"name": name, "description": format!("It is {name}."), "inputSchema": schema});
    json!({"tools": names.iter().map(tool).collect::<Vec<_>>()}).to_string()
}

/// The `_meta` of the stateless era.
pub fn stateless() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    })
}
