//! The doors from outside, in process.

mod api;
mod golden;
mod house;
mod llm;
mod pack_answers;
mod proxy;
mod remote_gate;
