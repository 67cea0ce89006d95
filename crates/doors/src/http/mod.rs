//! HTTP, as far as it is the same for every door: a client that knows what it has sent, a server with limits, events.
mod beside;
pub mod body;
pub mod client;
pub mod headers;
pub mod server;
pub mod sse;
pub mod target;
pub mod turns;

pub use beside::beside;
