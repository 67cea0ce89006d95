//! A gate as a server would have it, for the benches and for `cargo xtask weigh`.

pub mod house;

/// Whoever measures has no callers that tell failures apart.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
