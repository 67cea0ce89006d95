//! The configured servers, for questions and undos that need one.

use super::era;
use super::link::Link;
use super::message::{MessageKind, text};
use super::result as tool_result;
use super::server::{Server, Servers};
use crate::query::no_server;
use crate::query::pages::next_page;
use crate::query::response::{QueryResponse, ResponseKind, TAKES_MAX};
use crate::query::tools::{ToolQuestion, ToolResponse, ToolServer, ToolServers};
use crate::wire::members::{Members, quoted};
use rustix::process::Signal;
use semel_core::class::Class;
use semel_core::json::Json;
use semel_core::policy::ActionFacts;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Default)]
pub struct ConfiguredServers {
    /// Servers that run already, or need not be started.
    pub running: Servers,
    /// Starts another one, for as long as it is asked.
    pub starter: Option<Box<dyn StartServer>>,
}

/// Starts configured servers, or begins sessions with them.
pub trait StartServer: fmt::Debug + Send + Sync {
    /// Within a runtime. `None` if there is no server of that name.
    fn start(&self, name: &str) -> Option<StartingServer>;
}

pub type StartingServer = Pin<Box<dyn Future<Output = Result<Arc<Server>, String>> + Send>>;

/// How long a server that was started for one question may take to end once its input has.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

impl ConfiguredServers {
    /// A configured server, and whether it was started only now.
    pub async fn get(&self, name: &str) -> Result<(Arc<Server>, bool), String> {
        if let Some(server) = self.running.get(name) {
            return Ok((Arc::clone(server), false));
        }
        let starting = self.starter.as_ref().and_then(|starter| starter.start(name));
        starting.ok_or_else(|| no_server(name))?.await.map(|server| (server, true))
    }
}

/// Ends a server that was started for one question: a session with a word, a process by its input first, then by force.
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

impl ToolServers for ConfiguredServers {
    fn ask<'a>(&'a self, name: &'a str, question: &'a ToolQuestion<'_>) -> ToolResponse<'a> {
        Box::pin(async move {
            let (server, started) = self.get(name).await?;
            let response = ask(&server, &era::meta_for(&server), question).await;
            if started {
                end(&server).await;
            }
            response
        })
    }
}

impl ToolServer for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask<'a>(&'a self, question: &'a ToolQuestion<'_>, meta: &'a str) -> ToolResponse<'a> {
        Box::pin(ask(self, meta, question))
    }
}

async fn ask(server: &Server, meta: &str, question: &ToolQuestion<'_>) -> Result<QueryResponse, String> {
    let ToolQuestion { tool, arguments, policy } = question;
    let tools = server.tools(meta).await;
    let action = server.action(tool);
    // Whether that is a read depends on the question, and not on its subject.
    let seen = Json::object([("args", arguments.clone())]);
    let annotations = tools.get(tool).map(|definition| definition.annotations).unwrap_or_default();
    let trusted = server.settings.trusted;
    let facts = ActionFacts { annotations, trusted, ..ActionFacts::new(&action, &seen) };
    if policy.rule_for(&facts).class != Class::Read {
        return Err(format!("{action} is not known to be read-only, so it cannot be asked"));
    }
    let mut params = Members::default();
    params.set("name", quoted(tool));
    params.set("arguments", arguments.canonical());
    if meta != "{}" {
        params.set("_meta", meta.to_owned());
    }
    let response = tokio::time::timeout(TAKES_MAX, server.ask("tools/call", &params.to_string())).await;
    let response = response.map_err(|_| format!("{action} did not answer"))??;
    let body = response.body.as_ref().map_or("null", text);
    let result = Members::parse(body).unwrap_or_default();
    let complete = result.text("resultType").is_none_or(|kind| kind == "complete");
    let failed = matches!(response.kind, MessageKind::Response { failed: true, .. });
    if failed || result.is_true("isError") || !complete {
        return Err(format!("{action} answered with an error"));
    }
    let resp = tool_result::whole(&result)
        .ok_or_else(|| format!("{action} answered more than can be looked through"))?;
    // A tool may speak of the next page beside its findings, in text or in structure.
    let more = next_page(&resp).or_else(|| {
        let result = semel_core::json::parse(body).ok()?;
        ["structuredContent", "_meta"].iter().find_map(|member| next_page(result.get(member)?))
    });
    Ok(QueryResponse { resp, kind: ResponseKind::Tool, more })
}
