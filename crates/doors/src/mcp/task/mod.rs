//! Tasks: a tool answers with a handle, and its effect is in flight until the task has ended.
//!
//! `follow` asks the server for the end, `query` reads the client's own questions for it, `registry` knows whose each
//! task is, `record` keeps handle and end.

pub mod follow;
pub mod query;
pub mod record;
pub mod registry;
