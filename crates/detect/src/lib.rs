//! Finds effects that ran twice, in the records that agents and tracers keep, and tries guards, tools and policies.
//!
//! The audit is pure at its heart: [`transcript`] entries go in, [`audit`] findings come out. Its edge reads files
//! ([`source`], [`formats`]) and writes reports ([`report`]). [`eval`] and [`check`] start processes and open sockets. The
//! crate holds no opinion of its own about which calls are the same or what a failure means: `semel_core` says that, as it
//! does for the guard.
pub mod audit;
pub mod check;
pub mod child_process;
pub mod ending;
pub mod eval;
pub mod formats;
pub mod judge;
pub mod mcp_server_process;
pub mod policy_test;
pub mod reconcile;
pub mod report;
pub mod shell;
pub mod source;
pub mod transcript;
