//! HTTP, as far as it is the same for every door: a client that knows what it has sent, a server with limits, events.
pub mod body;
pub mod client;
mod client_hints;
pub mod headers;
pub mod large_body_permits;
pub mod server;
mod socket;
pub mod sse;
pub mod target;

pub use client_hints::call_metadata;

/// The headers of a message, all together: a page of cookies fits, a flood does not. It bounds also how much of a body
/// is read or written at once.
const HEADER_BYTES_MAX: usize = 64 * 1024;

/// An error with its causes, in one line.
fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = next.source();
    }
    text
}
