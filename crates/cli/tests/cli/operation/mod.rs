//! What an operator's machines see of `semel serve`.

mod health;
mod metrics;
