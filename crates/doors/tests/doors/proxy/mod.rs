//! `/p/NAME/…`, before an API of our own that counts what it was made to do.

mod stage;

mod bodies;
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
mod repeats;
mod secrets;
mod smuggling;
