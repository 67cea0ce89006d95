//! placeholder
pub mod digest;
pub mod lifecycle;
pub mod time;
