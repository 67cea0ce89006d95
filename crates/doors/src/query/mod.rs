//! Questions through a call that a rule names: an MCP tool, an HTTP request, a command. They only read.
//!
//! In the order in which data flows: `subject` is asked about, `backends` are asked with; `tools`, `http` and `command`
//! ask; `response` is the response as expressions see it, `finding` its meaning.
pub mod active_confirms;
pub mod backends;
mod command;
pub mod finding;
pub mod http;
pub mod listing;
pub mod origins;
pub mod pages;
pub mod response;
pub mod subject;
pub mod tools;
pub mod witness;

pub use backends::Backends;
pub use finding::{FoundReply, QueryFinding};
pub use subject::{Credentials, Subject};

use crate::process::child::Signals;
use response::QueryResponse;
use semel_core::json::{Json, Object};
use semel_core::policy::Policy;
use semel_core::policy::rule::{Confirm, Probe, RuleCall, server_and_tool};
use semel_core::policy::template::Template;
use std::future::Future;
use tools::ToolQuestion;

/// One subject, and the backends to ask about it.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub backends: &'a Backends,
    /// Says of an MCP tool whether it only reads.
    pub policy: &'a Policy,
    pub subject: Subject<'a>,
    /// A program that does one thing forwards its signals to the command that it runs.
    pub signals: Option<&'a Signals>,
}

impl Query<'_> {
    /// Did it happen?
    pub async fn probe(&self, probe: &Probe) -> QueryFinding {
        match self.ask(&probe.call).await {
            Ok(response) => finding::read_probe(probe, &self.subject.places(), &response),
            Err(why) => QueryFinding::Unknown(why),
        }
    }

    /// It said yes: is it true? An error means that nobody can tell.
    pub async fn confirm(&self, confirm: &Confirm) -> Result<bool, String> {
        let response = self.ask(&confirm.call).await?;
        finding::read_confirm(confirm, &self.subject.places(), &response)
    }

    async fn ask(&self, call: &RuleCall) -> Result<QueryResponse, String> {
        let Query { backends, subject, signals, .. } = self;
        let places = subject.places();
        match call {
            RuleCall::Mcp { tool, args } => in_runtime(self.ask_tool(tool, args, &places)).await?,
            RuleCall::Http { method, url, .. } => {
                let url = url.render_url(&places).map_err(|missing| missing.to_string())?;
                in_runtime(http::ask(method, &url, &backends.origins, subject.credentials)).await?
            }
            RuleCall::Command { argv } => command::ask(argv, &places, &backends.shell, *signals).await,
        }
    }

    async fn ask_tool(
        &self,
        tool: &str,
        args: &[(String, Template)],
        places: &Json,
    ) -> Result<QueryResponse, String> {
        let (name, tool) = server_and_tool(tool, self.subject.action).ok_or("it does not name a server")?;
        let mut arguments = Object::new();
        for (name, template) in args {
            arguments.insert(name.as_str(), template.value(places).map_err(|missing| missing.to_string())?);
        }
        let question = ToolQuestion { tool, arguments: Json::Object(arguments), policy: self.policy };
        match (self.subject.credentials, &self.backends.tools) {
            (Credentials::Server { server, meta }, _) if server.name() == name => {
                server.ask(&question, meta).await
            }
            (_, Some(servers)) => servers.ask(name, &question).await,
            (_, None) => Err(no_server(name)),
        }
    }
}

pub fn no_server(name: &str) -> String {
    format!("there is no server {name}; [mcp.{name}] in semel.toml would name it")
}

/// Sockets and server processes need a runtime. A program that does one thing at a time has none, and starts one for as
/// long as it asks.
async fn in_runtime<F: Future>(asking: F) -> Result<F::Output, String> {
    if tokio::runtime::Handle::try_current().is_ok() {
        return Ok(asking.await);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| error.to_string())?.block_on(asking))
}
