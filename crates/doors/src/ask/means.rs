//! What there is to ask with. All of it is the operator's.

use super::origins::Origins;
use crate::mcp::link::Link;
use crate::mcp::server::{Server, Servers};
use rustix::process::Signal;
use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Default)]
pub struct Means {
    /// Servers that run already, or need not be started.
    pub servers: Servers,
    /// Starts another one, for as long as it is asked.
    pub starts: Option<Box<dyn Starts>>,
    pub origins: Origins,
    pub shell: Shell,
}

/// Where commands are found, and where they run.
#[derive(Debug, Clone, Default)]
pub struct Shell {
    /// `PATH` of this process.
    pub search: OsString,
    pub cwd: PathBuf,
    /// Where `curl` looks for settings of its own.
    pub curl_settings: Vec<PathBuf>,
}

/// Starts configured servers, or begins sessions with them.
pub trait Starts: fmt::Debug + Send + Sync {
    /// Within a runtime. `None` if there is no server of that name.
    fn start(&self, name: &str) -> Option<Starting>;
}

pub type Starting = Pin<Box<dyn Future<Output = Result<Arc<Server>, String>> + Send>>;

/// How long a server that was started for one question may take to end once its input has.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

impl Means {
    /// A configured server, and whether it was started only now.
    pub async fn server(&self, name: &str) -> Result<(Arc<Server>, bool), String> {
        if let Some(server) = self.servers.get(name) {
            return Ok((Arc::clone(server), false));
        }
        let starting = self.starts.as_ref().and_then(|starts| starts.start(name));
        let started = starting
            .ok_or_else(|| format!("there is no server {name}; [mcp.{name}] in semel.toml would name it"))?
            .await;
        started.map(|server| (server, true))
    }
}

/// Ends what was begun for one question: a session with a word, a process by its input first, then by force.
pub async fn end(server: &Server) {
    let child = match &server.link {
        Link::Child(child) => child,
        Link::Remote(remote) => return remote.close().await,
    };
    child.close();
    if tokio::time::timeout(ENDS_WITHIN, child.exit()).await.is_err() {
        child.signal(Signal::KILL);
        let _unkillable = tokio::time::timeout(ENDS_WITHIN, child.exit()).await;
    }
}
