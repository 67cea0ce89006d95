//! The doors from outside, in process.

mod golden;
mod pack_answers;
