//! What the project's own tasks are made of. The benches use some of it too.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task talks to whoever started it")]

pub mod dist;
pub mod docs;
pub mod peers;
pub mod peers_packs;
pub mod project;
pub mod sdk;
pub mod test;
pub mod tools;
pub mod weigh;
