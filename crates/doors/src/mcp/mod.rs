//! The MCP door: any MCP server, guarded with one word in front of its command.
//!
//! In the order in which data flows: `serve` reads a client's messages and dispatches them by method; `route` finds the
//! way of a tool call; `intent` says what it means; `guard` takes it through the gate; `upstream` sends it over a
//! `link`; `classify` reads the answer; `render` writes the response. All other messages pass as the bytes that came.

pub mod call;
pub mod classify;
pub mod configured;
pub mod connection;
pub mod decorate;
pub mod effect_word;
pub mod era;
pub mod frame;
pub mod frame_writer;
pub mod guard;
pub mod guarded_calls;
pub mod id;
pub mod input_line;
pub mod intent;
pub mod limits;
pub mod line_reader;
pub mod link;
mod listing;
pub mod message;
mod own_key;
pub mod own_tools;
pub mod probe;
pub mod render;
pub mod result;
pub mod route;
pub mod serve;
pub mod server;
pub mod task;
pub mod tools;
pub mod upstream;
pub mod version;
