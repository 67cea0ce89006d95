//! Remembers: claim, settle, resolve, journal, over stores that keep bytes.
//!
//! The ledger refuses to know about rules, waiting and upstreams. Every change of an effect goes through
//! [`semel_core::lifecycle::next`], and every write through one [`store::Commit`].
pub mod cancel;
pub mod checksum;
pub mod claim;
mod clock;
pub mod clock_skew;
pub mod command_key;
pub mod copy;
pub mod counts;
pub mod doubt_observer;
mod duplicate_reply;
pub mod engine_facts;
pub mod entropy;
mod epoch;
pub mod error;
pub mod failpoint;
pub mod fleet_holders;
pub mod histogram;
pub mod holders;
pub mod journal;
pub mod known_servers;
pub mod kv;
pub mod lapses;
pub mod ledger;
pub mod memory;
pub mod memory_boundary;
pub mod observed;
pub mod outbox;
pub mod owner;
pub mod place;
pub mod position;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod probe_notes;
pub mod prune;
mod prune_cells;
pub mod record;
pub mod rulings;
pub mod server_address;
mod server_io;
pub mod small_records;
pub mod spool;
pub mod sqlite;
pub mod store;
pub mod tokens;
mod undo;
mod unheld;
mod waiters;
pub mod write_check;

mod precondition;

pub use error::Error;
pub use ledger::{Late, Ledger, RecordSnapshot, RecordUpdate};
