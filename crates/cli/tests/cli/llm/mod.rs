//! Models behind `semel serve`: who gets which answer, counted where the answers are made.

mod model;
mod stage;

mod joining;
