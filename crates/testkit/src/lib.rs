//! placeholder
pub mod store_suite;
