//! Tries a guard: agents work on a small world whose answers get lost, and the world counts what was done to it.
//!
//! A [`scenario`] names an agent, a task and a fault. The [`world`] lives in a directory, so that the processes of a
//! guard's tools share it; a [`port`] is the way of the agent's calls to the world, through the guard or without one.
//! [`score`] compares what was wanted, what happened, and what the agent was told.

mod agent;
mod command_port;
pub mod command_world;
pub mod fault;
pub mod golden;
mod http_port;
pub mod http_world;
mod mcp_port;
pub mod mcp_world;
pub mod model;
pub mod port;
pub mod run;
pub mod scenario;
pub mod score;
pub mod world;
pub mod world_tools;
