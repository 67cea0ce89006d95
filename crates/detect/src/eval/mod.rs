//! Tries a guard: scripted agents work on a small world whose answers get lost, and the world counts what was done to it.
//!
//! A [`scenario`] names an agent, a task and a fault. The [`world`] lives in a directory, so that the processes of a
//! guard's tools share it; a [`port`] is the way of the agent's calls to the world, through the guard or without one.
//! [`score`] compares what was intended, what happened, and what the agent was told.

pub mod agent;
pub mod mcp_server;
pub mod port;
pub mod run;
pub mod scenario;
pub mod score;
pub mod world;
