//! The doors from outside, in process.

mod golden;
