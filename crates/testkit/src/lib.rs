//! Shared tests: the store suite, the counting world and its judge, the seeded simulation, and an independent model.
//! Nothing here is shipped.
pub mod boundary;
pub mod history;
pub mod model;
pub mod random;
pub mod signals;
pub mod simulation;
pub mod store_suite;
pub mod upstream;
pub mod world;
