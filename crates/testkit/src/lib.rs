//! Shared tests: the store suite, the counting world, the seeded simulation, and an independent model. Nothing here
//! is shipped.
pub mod model;
pub mod store_suite;
