//! Child processes: where a program is, how it is run, and what is done with its output.
pub mod child;
pub mod program;
pub mod stream;
