//! placeholder
pub mod digest;
pub mod time;
