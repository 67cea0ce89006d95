//! What an operator's machines see of `semel serve`.

mod ending;
mod health;
mod metrics;
mod traces;
mod webhook;
