//! HTTP/1.1 over plain sockets: a server that a test tells what to do, and a client that shows every byte.

pub mod api_client;
pub mod client;
pub mod fake_mcp_server;
pub mod fake_model;
pub mod request;
pub mod routed_api;
pub mod scripted_api;
pub mod server;

pub use api_client::{ApiClient, charge};
pub use client::{RawClient, Response, became};
pub use fake_mcp_server::{FakeMcpServer, McpEra};
pub use fake_model::{FakeModel, FakeModelApi};
pub use request::Request;
pub use routed_api::{RouteReply, RoutedApi};
pub use scripted_api::{ApiAct, ScriptedApi};
pub use server::{FakeServer, ServedExchange};
