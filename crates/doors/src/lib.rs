//! Translates: request to intent, upstream answer to outcome, decision to response.
//!
//! Every door has the same files in the order in which data flows: `serve`, `intent`, `classify`, `render`. A door
//! refuses to know transitions, retries and settling: it never decides.
pub mod command;
pub mod http;
pub mod mcp;
pub mod runtime;
