//! Scores tools: which of their operations change the world, and what a repeat of each would do.
//!
//! [`help`] reads the help texts of a command-line tool, [`tool`] walks and tries it, [`surface`] judges the operations of
//! an MCP server or, by its [`openapi`] document, of an HTTP API. The core says which operations change something.

pub mod help;
pub mod known_help;
pub mod openapi;
pub mod surface;
pub mod tool;
