//! placeholder
pub mod answer;
pub mod class;
pub mod digest;
pub mod identity;
pub mod json;
pub mod lifecycle;
pub mod normalise;
pub mod policy;
pub mod time;
