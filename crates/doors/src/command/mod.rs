//! The command-line door: any command, wrapped by `semel run`.
pub mod child;
pub mod classify;
pub mod confirm;
pub mod intent;
pub mod program;
pub mod render;
pub mod serve;
pub mod stream;
