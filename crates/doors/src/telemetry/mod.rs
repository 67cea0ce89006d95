//! What an operator's machines ask: is it alive, is it ready, how much was done; and what is told without being asked.

mod health;
mod metrics;

pub use health::{Operation, router};
