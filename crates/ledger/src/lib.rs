//! placeholder
pub mod error;
pub mod failpoint;
pub mod memory;
pub mod owner;
pub mod place;
mod precondition;
pub mod sqlite;
pub mod store;
pub use error::Error;
