//! What an operator's machines see of `semel serve`, and what people are told.

mod ending;
mod health;
mod metrics;
mod notify;
mod traces;
mod webhook;
