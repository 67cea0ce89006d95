//! The command-line door: any command, wrapped by `semel run`.
pub mod classify;
pub mod confirm;
pub mod intent;
pub mod render;
pub mod serve;
