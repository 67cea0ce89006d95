//! The one integration binary of this crate.

mod begun;
mod counted;
mod flipped_bits;
mod generate;
mod house;
mod keys;
mod lookalikes;
mod occurrences;
mod policy_changes;
mod retention;
mod scenarios;
mod server_clock;
mod silence;
mod simulation;
mod spool;
mod truths;
mod unheld;
