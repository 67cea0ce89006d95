//! Which clients there are, and how they spell a server.

use super::format::Format;
use crate::args::ClientChoice;

/// A client's names for the parts of a server's entry.
#[derive(Debug)]
pub struct McpClient {
    pub choice: ClientChoice,
    /// As people write it.
    pub title: &'static str,
    /// As `--client` and `--json` write it.
    pub name: &'static str,
    /// Where a file that is for servers keeps them.
    pub containers: Containers,
    /// Members that hold the address of a remote server, the most telling first.
    pub urls: &'static [&'static str],
    /// The one of them at which the client speaks SSE unless `type` says otherwise.
    pub sse_url: Option<&'static str>,
    pub headers: &'static str,
    pub kind: TypeMember,
    pub format: Format,
}

/// The paths to the objects of a file that hold servers; `*` is any name.
pub type Containers = &'static [&'static [&'static str]];

/// The new `type` when a remote server turns into a local one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeMember {
    /// The client knows the word `stdio`.
    Named,
    /// The client tells them apart by the other members.
    Dropped,
}

const JSON: McpClient = McpClient {
    choice: ClientChoice::ClaudeCode,
    title: "",
    name: "",
    containers: &[&["mcpServers"]],
    urls: &["url"],
    sse_url: None,
    headers: "headers",
    kind: TypeMember::Named,
    format: Format::Json,
};

pub const CLIENTS: [McpClient; 7] = [
    McpClient {
        title: "Claude Code",
        name: "claude-code",
        containers: &[&["mcpServers"], &["projects", "*", "mcpServers"]],
        ..JSON
    },
    McpClient {
        choice: ClientChoice::ClaudeDesktop,
        title: "Claude Desktop",
        name: "claude-desktop",
        kind: TypeMember::Dropped,
        ..JSON
    },
    McpClient { choice: ClientChoice::Cursor, title: "Cursor", name: "cursor", ..JSON },
    McpClient {
        choice: ClientChoice::VsCode,
        title: "VS Code",
        name: "vscode",
        containers: &[&["servers"]],
        ..JSON
    },
    McpClient {
        choice: ClientChoice::Windsurf,
        title: "Windsurf",
        name: "windsurf",
        urls: &["serverUrl", "url"],
        kind: TypeMember::Dropped,
        ..JSON
    },
    McpClient {
        choice: ClientChoice::Gemini,
        title: "Gemini CLI",
        name: "gemini",
        urls: &["httpUrl", "url"],
        sse_url: Some("url"),
        kind: TypeMember::Dropped,
        ..JSON
    },
    McpClient {
        choice: ClientChoice::Codex,
        title: "Codex",
        name: "codex",
        containers: &[&["mcp_servers"]],
        headers: "http_headers",
        kind: TypeMember::Dropped,
        format: Format::Toml,
        ..JSON
    },
];
