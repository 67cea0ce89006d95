//! One file per command.
pub mod audit;
pub mod cancel;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod eval;
pub mod explain;
pub mod init;
pub mod key;
pub mod ledger;
pub mod man;
pub mod mcp;
pub mod policy;
pub mod run;
pub mod serve;
pub mod stats;
pub mod token;
