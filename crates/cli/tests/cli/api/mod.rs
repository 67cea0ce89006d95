//! `/api/v1` of `semel serve`: for programs that look, decide, and call tools themselves.

pub mod client;

mod access;
mod begin;
mod document;
mod effects;
mod shown;
