//! The operator's settings for servers: those behind semel, and semel itself as one.

use super::file::MetricsFor;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Where `semel serve` listens unless told otherwise: this machine alone.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7777);

/// `[mcp.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// The file and line that say so.
    pub path: PathBuf,
    pub line: usize,
    pub reach: McpEndpoint,
    pub trusted: Option<bool>,
    pub decorate: Option<bool>,
    pub own_tools: Option<bool>,
    pub dry_run_argument: Option<bool>,
    pub run: Option<String>,
}

/// The way to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpEndpoint {
    Command {
        /// Never empty.
        argv: Vec<String>,
        env: Vec<(String, String)>,
        /// Relative to the file's directory.
        cwd: Option<PathBuf>,
    },
    Url {
        /// As it is written; whether it may be asked is the client's matter.
        url: String,
        private: bool,
        headers: Vec<(String, String)>,
        /// Header and the environment variable that holds its value.
        headers_env: Vec<(String, String)>,
    },
}

/// `[serve]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Serve {
    pub listen: Option<SocketAddr>,
    pub allow_remote: Option<bool>,
    pub tls: Option<TlsFiles>,
    pub allowed_origins: Vec<String>,
    pub allowed_hosts: Vec<String>,
    pub require_token: Option<bool>,
    pub metrics: Option<MetricsFor>,
    /// As it is written; whether it may be asked is the client's matter.
    pub otlp: Option<String>,
    pub grace: Option<Duration>,
}

/// `[serve.tls]`. Relative paths are relative to the policy's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// `[notify]`: at least one of both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notify {
    pub command: Option<NotifyCommand>,
    pub url: Option<NotifyUrl>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyCommand {
    /// Never empty.
    pub argv: Vec<String>,
    /// The policy's.
    pub directory: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyUrl {
    /// As it is written; whether it may be asked is the client's matter.
    pub url: String,
    pub secret_env: Option<String>,
    pub private: bool,
}

impl Serve {
    /// These, and the others' where these are silent.
    pub fn or(self, others: Serve) -> Serve {
        let or = |mine: Vec<String>, theirs| if mine.is_empty() { theirs } else { mine };
        Serve {
            listen: self.listen.or(others.listen),
            allow_remote: self.allow_remote.or(others.allow_remote),
            tls: self.tls.or(others.tls),
            allowed_origins: or(self.allowed_origins, others.allowed_origins),
            allowed_hosts: or(self.allowed_hosts, others.allowed_hosts),
            require_token: self.require_token.or(others.require_token),
            metrics: self.metrics.or(others.metrics),
            otlp: self.otlp.or(others.otlp),
            grace: self.grace.or(others.grace),
        }
    }
}
