//! Translates: request to intent, upstream answer to outcome, decision to response.
//!
//! Every door has the same files in the order in which data flows: `serve`, `intent`, `classify`, `render`. A door
//! refuses to know transitions, retries and settling: it never decides.
//!
//! The doors are `command`, `mcp`, `proxy` (HTTP), `llm` (on `proxy`) and `api`. No other door is imported by one. Below
//! them lie the rooms that all share: `services` (gate, policy, clock), `query` (probes and confirms), `reply` (kept
//! replies), `redact`, `http`, `process`, `wire` and `remote_gate` (a gate behind a server on another
//! machine). Above them lie `undo`, which takes effects back through the doors, `router`, and `sidecar`, which serves the API on
//! pipes.
pub mod api;
pub mod background_confirm;
pub mod call_options;
pub mod caller;
pub mod command;
pub mod delivery;
mod delivery_batch;
pub mod effect_json;
pub mod finish_detached;
pub mod hook;
pub mod http;
pub mod in_flight;
pub mod known_run;
pub mod llm;
mod local_tasks;
pub mod mcp;
pub mod notify;
pub mod process;
pub mod proxy;
pub mod query;
pub mod redact;
pub mod remote_gate;
pub mod reply;
pub mod router;
pub mod run_summary;
pub mod services;
pub mod sidecar;
pub mod stats;
pub mod telemetry;
pub mod terminal_text;
pub mod undo;
pub mod wire;

pub use semel::runtime;
