//! A server behind Streamable HTTP: each request is a POST of its own, whose answer is one document or a stream.

mod carry;
mod events;
mod exchange;
pub mod headers;
mod link;
mod mirror;
mod renewal;
mod session;

pub use events::EventStream;
pub use exchange::{is_stream, request};
pub use link::{RemoteBody, RemoteLink, RemoteResponse, ResponseObserver};
pub use session::{ClientQueue, RemoteSession};
