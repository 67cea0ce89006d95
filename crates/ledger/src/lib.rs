//! placeholder
pub mod error;
pub mod store;
pub use error::Error;
