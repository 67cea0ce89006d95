//! Shared tests: the store suite, the counting world and its judge, the seeded simulation, and an independent model.
//! Nothing here is shipped.
pub mod etcd_cluster;
pub mod history;
pub mod http;
pub mod ledger_server;
pub mod model;
pub mod postgres_server;
pub mod proxy;
pub mod random;
pub mod redis_server;
pub mod semel_process;
pub mod signals;
pub mod simulation;
pub mod store_suite;
pub mod upstream;
mod wait;
pub mod world;

pub use wait::wait_until;
