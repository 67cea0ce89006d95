//! Tools of MCP servers, as questions reach them. The MCP door provides the servers.

use super::response::QueryResponse;
use semel_core::json::Json;
use semel_core::policy::Policy;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// One call of a tool that only reads.
#[derive(Debug)]
pub struct ToolQuestion<'a> {
    pub tool: &'a str,
    pub arguments: Json,
    /// Says of a tool whether it only reads.
    pub policy: &'a Policy,
}

pub type ToolResponse<'a> = Pin<Box<dyn Future<Output = Result<QueryResponse, String>> + Send + 'a>>;

/// The server of the call that is asked about.
pub trait ToolServer: fmt::Debug + Send + Sync {
    fn name(&self) -> &str;

    /// `meta`: the `_meta` of the request.
    fn ask<'a>(&'a self, question: &'a ToolQuestion<'_>, meta: &'a str) -> ToolResponse<'a>;
}

/// Every configured server.
pub trait ToolServers: fmt::Debug + Send + Sync {
    fn ask<'a>(&'a self, server: &'a str, question: &'a ToolQuestion<'_>) -> ToolResponse<'a>;
}
