//! placeholder
pub mod digest;
pub mod identity;
pub mod json;
pub mod lifecycle;
pub mod normalise;
pub mod time;
