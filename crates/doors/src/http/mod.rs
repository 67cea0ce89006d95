//! HTTP, as far as it is the same for every door: a client that knows what it has sent, a server with limits, events.
mod beside;
pub mod body;
pub mod client;
pub mod headers;
mod outgoing;
mod reading;
pub mod server;
pub mod sse;
pub mod target;
pub mod turns;
mod wire;

pub use beside::call_metadata;
