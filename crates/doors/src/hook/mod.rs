//! The hook of a coding agent: it reads each shell command before the agent's client runs it, and puts a claim before and
//! a settlement behind a command that changes something outside (`spec/hook.md`).
pub mod client;
pub mod event;
pub mod plan;
pub mod reading;
pub mod render;
pub mod serve;
pub mod settle;
