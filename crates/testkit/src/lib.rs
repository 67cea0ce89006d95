//! Shared tests: the store suite, the seeded simulation with its counting world, and an independent model.
//!
//! Nothing here is shipped.

pub mod model;
pub mod simulation;
pub mod store_suite;
