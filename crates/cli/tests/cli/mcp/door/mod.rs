//! The stdio door, sentence by sentence, before a server that does as it is told.

pub mod stage;

pub mod answers;
mod bad_input;
mod cancelling;
mod confirms;
mod dry_runs;
mod eras;
mod error_texts;
mod identity;
mod keys;
mod large;
mod listings;
mod modes;
mod named;
mod own_tools;
mod probes;
mod process;
mod repeats;
mod secrets;
mod tasks;
mod timeouts;
mod transparency;
mod unmarked;
