//! Remembers: claim, settle, resolve, journal, over stores that keep bytes.
//!
//! The ledger refuses to know about rules, waiting and upstreams. Every change of an effect goes through
//! [`semel_core::lifecycle::next`], and every write through one [`store::Commit`].
pub mod asked_in_vain;
pub mod cancel;
pub mod cells;
pub mod claim;
pub mod counts;
mod disproved;
pub mod entropy;
pub mod error;
pub mod failpoint;
pub mod holders;
pub mod journal;
pub mod known_servers;
pub mod lapses;
pub mod ledger;
pub mod lines;
pub mod memory;
pub mod observed;
pub mod outbox;
pub mod owner;
pub mod pins;
pub mod place;
pub mod prune;
pub mod ready;
pub mod record;
pub mod rulings;
pub mod second_answer;
pub mod sqlite;
pub mod store;
pub mod times;
pub mod tokens;
mod undo;
pub mod witness;

mod precondition;

pub use error::Error;
pub use ledger::{Changed, Found, Late, Ledger};
