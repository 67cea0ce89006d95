//! The hook of a coding agent: it reads each line of shell before the agent's client runs it, and puts `semel began` before
//! and `semel ended` behind a command that changes something outside (`spec/hook.md`).
//!
//! | module | does |
//! |---|---|
//! | `event`, `client` | reads the event, and knows what each client calls things |
//! | `serve` | answers it: pass, plan, deny, or show the record |
//! | `plan` | keeps a guarded command for `semel began` and `semel ended` |
//! | `shell` | takes it through the gate |
//! | `ending` | finds out how it went, where `semel ended` did not say |
//! | `transcript` | looks for an end in the client's own record |
//! | `render` | writes the answer as the client wants it |
pub mod client;
pub mod ending;
pub mod event;
pub mod plan;
pub mod render;
pub mod serve;
pub mod shell;
mod transcript;
