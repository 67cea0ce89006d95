//! `/p/NAME/…` of `semel serve`, before an API of our own that counts what it was made to do.

pub mod api;
pub mod stage;

mod bodies;
mod document;
mod dodges;
mod doubts;
mod gateways;
mod graphql;
mod identity;
mod keys;
mod modes;
mod passing;
mod places;
mod presets;
mod questions;
mod read_only;
mod repeats;
mod secrets;
mod smuggling;
