//! Translates: request to intent, upstream answer to outcome, decision to response.
//!
//! Every door has the same files in the order in which data flows: `serve`, `intent`, `classify`, `render`. A door
//! refuses to know transitions, retries and settling: it never decides.
pub mod api;
pub mod ask;
pub mod busy;
pub mod call_options;
pub mod caller;
pub mod command;
pub mod delivery;
pub mod effect_json;
pub mod entrance;
pub mod hall;
pub mod http;
pub mod known_run;
pub mod llm;
mod local_tasks;
mod marks;
pub mod mcp;
pub mod neutral;
pub mod proxy;
pub mod redact;
pub mod run_summary;
pub mod runtime;
pub mod stats;
pub mod telemetry;
pub mod undo;
pub mod unstoppable;
pub mod wire;
