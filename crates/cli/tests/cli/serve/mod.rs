//! `semel serve` before servers of our own: what passes, what is guarded, who is let in.

pub mod served;
mod smuggling;
pub mod stateless;

mod call_options;
mod cancels;
mod eras;
mod front;
mod guarded;
mod limits;
mod listening;
mod mirrored;
mod passing;
mod readings;
mod stdio;
mod structures;
mod tasks;
mod tls;
mod tokens;
