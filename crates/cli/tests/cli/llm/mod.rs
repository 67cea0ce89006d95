//! Models behind `semel serve`: who gets which answer, counted where the answers are made.

pub mod model;
pub mod stage;

mod cancelling;
mod counting;
mod failing;
mod forms;
mod joining;
mod leaving;
mod limits;
mod steps;
mod twins;
