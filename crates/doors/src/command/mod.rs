//! The command-line door: any command, wrapped by `semel run`.
pub mod child;
pub mod classify;
pub mod intent;
pub mod render;
pub mod serve;
pub mod stream;
