//! Models behind `semel serve`: who gets which answer, counted where the answers are made.

mod model;
mod stage;

mod cancelling;
mod counting;
mod failing;
mod forms;
mod joining;
mod leaving;
mod limits;
mod steps;
mod twins;
