//! The MCP door: any MCP server, guarded with one word in front of its command.
//!
//! In the order in which data flows: `serve` reads a client's messages and dispatches them by method; `route` finds the way of
//! a tool call; `intent` says what it means; `guard` takes it through the gate; `upstream` sends it over a `link`; `classify` reads the answer; `render` writes the response.
//! Whatever is not a guarded call passes as the bytes that came.
pub mod call;
pub mod classify;
pub mod confirm;
pub mod connection;
pub mod decorate;
pub mod era;
pub mod frame;
pub mod guard;
pub mod guarded_calls;
pub mod inlet;
pub mod intent;
pub mod kept_task;
pub mod limits;
pub mod lines;
pub mod link;
mod listing;
pub mod message;
pub mod outbox;
mod own_key;
pub mod own_tools;
pub mod probe;
pub mod render;
pub mod route;
pub mod serve;
pub mod server;
pub mod task;
pub mod task_query;
pub mod tasks;
pub mod tools;
pub mod upstream;
pub mod word;
